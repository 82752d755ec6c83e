"""The relaxed cost of sparse weights: mixed norms over trees and sensors, and their bounds.

With ``squares`` (T,) the sum of a tree's squared weights over stages, the relaxed cost is

    sum_t e_t sqrt(squares_t) + sum_a c_a sqrt(sum_t F_at squares_t).

sqrt(g) = min_{z > 0} (g / z + z) / 2 is least at z = sqrt(g). With auxiliary variables kappa (T,)
and eta (s,) at that optimum the cost is a quadratic form in the weights, whose diagonal is
``quadratic_price``. |b| is treated alike, by sigma.
"""

from __future__ import annotations

import numpy as np

from bench_core.arrays import FloatArray
from bench_models.problem import Problem


def auxiliaries(problem: Problem, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """kappa (T,) and eta (s,), the square roots themselves."""
    return np.sqrt(squares), np.sqrt(problem.needs @ squares)


def relaxed_cost(problem: Problem, squares: FloatArray) -> float:
    """The two mixed norms of weights whose squares are given, (T,)."""
    kappa, eta = auxiliaries(problem, squares)
    return float(problem.tree_cost @ kappa + problem.sensor_cost @ eta)


def quadratic_price(problem: Problem, kappa: FloatArray, eta: FloatArray) -> FloatArray:
    """e_t / kappa_t + sum_a c_a F_at / eta_a: what b_t^2 / 2 costs, (T,)."""
    by_sensor = _divided(problem.sensor_cost, eta)
    return _divided(problem.tree_cost, kappa) + by_sensor @ problem.needs


def ridge(sigma: FloatArray, rho: float, lam: float, price: FloatArray) -> FloatArray:
    """rho / sigma_t + lam price_t: what b_t^2 / 2 costs with its l1 norm, sigma (T,) at |b|."""
    return _divided(np.full(len(sigma), rho), sigma) + lam * price


def _divided(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)
