"""The step over q (OPT1), the probability that a row goes to f0, and f0's outputs and costs.

With l1 and l0 the losses of f1 and f0 on a row and g its gate score,

    A = l1 + log(1 + e^g),   B = l0 + log(1 + e^-g),   A - B = l1 - l0 + g,

so q = 1 / (1 + e^(B - A + b)): the gate shifted by f1's excess loss and by the smallest bias b >= 0
that keeps the mean of q within ``p_full``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from bench_models.calibration import Line
from bench_models.large_model import bill_of, last_prediction
from bench_models.links import logit, sigmoid, softplus_and_sigmoid

from bench_core import Acquired, Examples, Features, FitContext, Prices
from bench_core.arrays import BitArray, FloatArray

CLIP = 1e-6  # p(y | f0) is clipped to [CLIP, 1 - CLIP]
_NEVER = 1e-300  # probability 0 in a logarithm
_BIAS = 1e-13  # tolerance of the bias: descents amplify the error
_NEAR = 1e-6  # Newton step at which the remaining error is below _BIAS
_DIGITS = 9  # decimal digits of f0's scores
_BLOCK = 8000  # rows per prediction of f0
_CONVEX = 10.0  # |p| sigma'' <= p / (6 sqrt 3) < 1: the squared distance has one minimum
_PARTS = 16  # grid steps if it may have several minima


def softplus(z: FloatArray) -> FloatArray:
    """log(1 + e^z)."""
    return softplus_and_sigmoid(z)[0]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingRows:
    """The n training rows in the alternation.

    ``sign`` +1 or -1; ``share`` multiplicities over their sum; ``loss0`` -log p(y | f0); ``bits0``
    (n, w) the sensors that f0 buys, ``evaluation0`` the price of its splits and trees.
    ``calibration`` converts f0's scores to log-odds where needed.
    """

    sign: FloatArray
    share: FloatArray
    loss0: FloatArray
    bits0: BitArray
    evaluation0: FloatArray
    calibration: Line | None = None

    @classmethod
    def of(cls, train: Examples, f0: Mapping[str, Any], line: Line | None = None) -> TrainingRows:
        """The rows with f0's outputs (``f0_outputs``)."""
        sign, found = np.where(train.y > 0, 1.0, -1.0), f0["scores"]
        # p(y | f0) of the true label
        right = np.clip(sigmoid(sign * (line(found) if line else found)), CLIP, 1 - CLIP)
        share = train.weights / train.weights.sum()
        return cls(sign, share, -np.log(right), f0["bits"], f0["evaluation"], line)

    def excess(self, f1: FloatArray) -> FloatArray:
        """l1 - l0 for the scores of f1."""
        return softplus(-self.sign * f1) - self.loss0

    def mean(self, values: FloatArray) -> float:
        """Mean over rows, copies counted."""
        return float(self.share @ values)

    def premium(
        self, gate: BitArray, kept: BitArray, cost1: FloatArray | float, prices: Prices, tau: float
    ) -> FloatArray:
        """``tau`` times the extra cost of f0 over f1, per row, used if ``p_full`` is none.

        ``gate`` and ``kept`` (n or 1, w): sensors bought by the gate, and by gate and f1.
        ``cost1``: price of f1's splits and trees.
        """
        # the gate is paid in both cases
        sent = Acquired(self.bits0 | gate, prices.sensors).cost(prices.sensor) + self.evaluation0
        stay = Acquired(kept, prices.sensors).cost(prices.sensor) + cost1
        return tau * (sent - stay)


def f0_outputs(f0: Any, rows: Examples, prices: Prices, context: FitContext) -> Mapping[str, Any]:
    """f0's last ``scores`` (n,), the ``bits`` (n, w) of its sensors and its ``evaluation`` (n,),
    the price of splits and trees: predicted once for all settings.

    Scores are rounded: last bits differ between processors and versions, and would change the end
    of descents.
    """

    def build() -> Mapping[str, Any]:
        scores, bits, evaluation = [], [], []
        for start in range(0, len(rows), _BLOCK):
            output = last_prediction(f0, Features(rows.X[start : start + _BLOCK]))
            bill = bill_of(output)
            scores.append(np.round(output.scores, _DIGITS))
            bits.append(bill.acquired.bits)
            evaluation.append(bill.evaluation_cost(prices, len(output.scores)))
        found: dict[str, list[Any]] = {"scores": scores, "bits": bits, "evaluation": evaluation}
        return {key: np.concatenate(blocks) for key, blocks in found.items()}

    return context.trained(("f0", f0, rows.X, prices), build)


class KullbackLeibler:
    """Distance D(q, g) = KL(q || sigma(g)) of gate and q in ADAPT-LIN and ADAPT-GBRT."""

    def log_odds(
        self, excess: FloatArray, g: FloatArray, bias: FloatArray | float, near: FloatArray
    ) -> FloatArray:
        """Log-odds of the optimal q if sending a row costs ``bias``, in closed form."""
        return g + excess - bias  # OPT1

    def fall(self, q: FloatArray, price: FloatArray) -> FloatArray:
        """Minus the derivative of q by ``price``, its bias less the excess."""
        return q * (1 - q)

    def gate_loss(self, q: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """D per row without the term ``rest``, and its derivative by g: logistic loss on the soft
        labels q."""
        value, slope = softplus_and_sigmoid(g)
        return value - q * g, slope - q

    def rest(self, q: FloatArray) -> FloatArray:
        """The term of D that depends only on q: its negative entropy."""
        inside, outside = np.maximum(q, _NEVER), np.maximum(1 - q, _NEVER)  # 0 log 0 counts as 0
        return q * np.log(inside) + (1 - q) * np.log(outside)


class SquaredLogOdds:
    """D = (log(q / (1 - q)) - g)^2 / 2 in ADAPT-LSTSQ [M]."""

    def log_odds(
        self, excess: FloatArray, g: FloatArray, bias: FloatArray | float, near: FloatArray
    ) -> FloatArray:
        """The u that minimises p sigma(u) + (u - g)^2 / 2, with p = bias - excess; q is sigma(u).

        At a minimum g - u = p sigma'(u), which has the sign of p. For p > 0 it is at most p / 4,
        and at most g, 1 or g + log p, the last because sigma'(u) < e^u. The same holds for p < 0.
        If there may be several minima, the best of evenly spaced points is refined. Newton's method
        starts from ``near`` and is kept in a bracket of the minimum.
        """
        p = np.broadcast_to(bias - excess, g.shape)  # (n,), of either sign
        side, size = np.sign(p), np.abs(p)
        far = np.maximum(side * g + np.log(np.maximum(size, 1.0)), 1.0)
        reach = -side * np.minimum(size / 4, far)
        low, high = np.minimum(g, g + reach), np.maximum(g, g + reach)
        if (some := np.flatnonzero(size > _CONVEX)).size:
            near, width = near.copy(), np.abs(reach[some]) / _PARTS
            grid = g[some] + reach[some] * np.linspace(0, 1, _PARTS + 1)[:, None]
            values = p[some] * sigmoid(grid) + (grid - g[some]) ** 2 / 2
            near[some] = best = grid[values.argmin(axis=0), np.arange(len(some))]
            low[some] = np.maximum(low[some], best - width)
            high[some] = np.minimum(high[some], best + width)
        u = np.clip(near, low, high)
        on, solution = np.arange(len(g)), u.copy()  # rows that have not settled
        for _ in range(60):
            s = sigmoid(u)
            bend = p * s * (1 - s)
            slope, curve = bend + u - g, 1 + bend * (1 - 2 * s)
            new = u - slope / np.maximum(curve, 0.1)
            out = np.flatnonzero((curve < 0.1) | (new < low) | (new > high))
            # bisect towards the minimum
            new[out] = (u[out] + np.where(slope[out] > 0, low[out], high[out])) / 2
            solution[on] = new
            # quadratic convergence: the next step would be its square
            moving = np.flatnonzero(np.abs(new - u) > 1e-6 * np.maximum(1.0, np.abs(new)))
            if not moving.size:
                break
            parts: list[Any] = [on, p, g, low, high, slope, u, new]
            on, p, g, low, high, slope, last, u = (part[moving] for part in parts)
            low, high = np.where(slope > 0, low, last), np.where(slope > 0, last, high)
        return solution

    def fall(self, q: FloatArray, price: FloatArray) -> FloatArray:
        """Minus the derivative of q by ``price``, its bias less the excess."""
        s = q * (1 - q)
        return s**2 / np.maximum(1 + price * s * (1 - 2 * q), 0.1)

    def gate_loss(self, q: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """D and its derivative by g, the log-odds of q kept within [1e-12, 1 - 1e-12]."""
        difference = g - logit(np.clip(q, 1e-12, 1 - 1e-12))
        return difference**2 / 2, difference

    def rest(self, q: FloatArray) -> FloatArray:
        """Zero: ``gate_loss`` is complete."""
        return np.zeros_like(q)


GateDistance = KullbackLeibler | SquaredLogOdds


def smallest_bias(
    mean: Callable[[float], tuple[float, float]],
    p_full: float,
    near: float = 0.0,
    close: float = 0.0,
) -> float:
    """The smallest b >= 0 at which the ``mean`` of q is at most ``p_full`` > 0, by Newton's method
    in a bracket.

    ``mean`` gives the mean of q at b, which must fall as b rises, and its derivative. The result
    satisfies the constraint up to ``close``. The search starts at ``near``.
    """
    low, high, bias = -1.0, np.inf, near  # -1: the mean at 0 is not known
    while high - low > _BIAS * max(1.0, low):  # q may jump over the limit
        now, slope = mean(bias)
        if abs(now - p_full) <= close or (bias == 0 and now <= p_full):
            return bias
        if now <= p_full:
            high = bias
        else:
            low = bias
        new = bias + (now - p_full) / max(-slope, _NEVER)
        if new <= 0 and low < 0:
            new = 0.0
        elif not low < new < high or abs(new - bias) > 10 * max(1.0, bias):
            new = (max(low, 0.0) + high) / 2 if high < np.inf else 2 * bias + 1
        elif abs(new - bias) <= _NEAR * max(1.0, bias):  # the next step would be its square
            high = new + _BIAS * max(1.0, new)
            break
        bias = new
    step = _BIAS
    while mean(high)[0] > p_full:  # rounding
        high, step = high + step * max(1.0, high), 2 * step
    return high


@dataclass(slots=True, eq=False)
class F0Limit:
    """Limit of the use of f0: ``p_full`` bounds the mean of q, or each row pays ``price`` (n,).

    The next search starts from the last ``bias`` and the last log-odds of q, ``near`` (n,).
    """

    p_full: float | None
    price: FloatArray | None = None
    bias: float = 0.0
    near: FloatArray | None = None

    def best(
        self,
        D: GateDistance,
        excess: FloatArray,
        g: FloatArray,
        share: FloatArray,
        close: float = 0.0,
    ) -> FloatArray:
        """The optimal q, its mean within ``close``. Sets ``bias``, the price of sending a row."""
        near = g if self.near is None else self.near

        @cache
        def q(bias: float) -> FloatArray:
            self.near = D.log_odds(excess, g, bias, near)
            return sigmoid(self.near)

        def mean(bias: float) -> tuple[float, float]:
            return float(share @ q(bias)), -float(share @ D.fall(q(bias), bias - excess))

        if self.p_full is None:
            assert self.price is not None
            return sigmoid(D.log_odds(excess, g, self.price, near))
        self.bias = smallest_bias(mean, self.p_full, self.bias, close)
        return q(self.bias)

    def q(self, D: GateDistance, rows: TrainingRows, f1: FloatArray, g: FloatArray) -> FloatArray:
        """The step over q. With ``p_full`` 0 no row is sent."""
        if self.p_full == 0:
            return np.zeros(len(g))
        return self.best(D, rows.excess(f1), g, rows.share)

    def objective(
        self, D: GateDistance, rows: TrainingRows, f1: FloatArray, g: FloatArray, q: FloatArray
    ) -> float:
        """(OPT) without the price of features; q must come from ``q``, so the limit holds."""
        loss = (1 - q) * softplus(-rows.sign * f1) + q * rows.loss0  # OPT
        if self.p_full != 0:
            loss = loss + D.gate_loss(q, g)[0] + D.rest(q)
        if self.price is not None:
            loss = loss + self.price * q
        return rows.mean(loss)
