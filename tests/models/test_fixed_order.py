"""Sums in a fixed order: right, and the same bits with another BLAS and without AVX2."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from bench_models.fixed_order import (
    both,
    cholesky,
    inverse_lower,
    lbfgs,
    log,
    project,
    sigmoid,
    softplus_and_sigmoid,
    solve_lower,
)
from scipy.optimize import rosen, rosen_der
from scipy.special import expit

OTHER_LOOPS = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL "
    "AVX512_ICL AVX512_SPR X86_V3 X86_V4",
}
"""A processor of 2008, as far as NumPy and OpenBLAS choose their loops by it."""

RUN = """
import hashlib, sys, warnings
warnings.simplefilter("ignore")  # what NumPy was not built for cannot be switched off
import numpy as np
from bench_core import Features, Task
from bench_core._io.machine import kernels
from bench_core.conformance import task_splits
from bench_core.conformance.tasks import fit
from bench_core.plugins import load_registry

known = load_registry().learners
forest, trees = known["random-forest"](trees=5), known["gbrt"](trees=8)
splits = task_splits(Task.BINARY, 1500)
print(kernels(), file=sys.stderr)
for learner in (
    known["adapt-lin"](f0=forest, supports=3),
    known["adapt-lstsq"](f0=forest, supports=2),
    known["and-or"](base=trees, stages=3),
):
    found = hashlib.sha256()
    for prediction in fit(learner, splits).predict_path(Features(splits.test.X)):
        found.update(repr(dict(prediction.point)).encode() + prediction.scores.tobytes())
        found.update(prediction.bills["path"].acquired.bits.tobytes())
    print(learner.name, found.hexdigest())
"""


@pytest.mark.parametrize("n", [1, 255, 256, 1000])
def test_products_are_those_of_matrices(n: int) -> None:
    rng = np.random.default_rng(n)
    Z, weights, rows = rng.normal(size=(7, n)), rng.normal(size=(2, 7)), rng.normal(size=(9, n))
    assert np.allclose(both(Z, weights, np.array([1.0, -2.0])), weights @ Z + [[1.0], [-2.0]])
    assert np.allclose(project(Z, rows), rows @ Z.T, atol=1e-12)
    assert project(Z, rows[:0]).shape == (0, 7)
    assert both(Z[:0], weights[:, :0], np.array([1.0, 2.0])).tolist() == [[1.0] * n, [2.0] * n]


def test_functions_agree_with_libraries_to_a_few_ulp() -> None:
    z = np.concatenate([np.linspace(-800, 800, 2001), np.linspace(-3, 3, 2001), [0.0, -1e-300]])
    value, slope = softplus_and_sigmoid(z)
    near = z > -700  # below, numbers that are not normal count as 0
    assert np.abs(value[near] / np.logaddexp(0, z[near]) - 1).max() < 1e-15
    assert np.abs(slope[near] / expit(z[near]) - 1).max() < 1e-15
    assert np.array_equal(sigmoid(z), slope)
    assert np.abs(value[~near]).max() < 1e-300
    x = np.concatenate([np.geomspace(1e-300, 1e300, 2001), np.linspace(0.5, 2, 2001)])
    away = np.abs(x - 1) > 1e-12
    assert np.abs(log(x) / np.where(away, np.log(x), 1) - 1)[away].max() < 1e-15
    assert log(np.ones(1)) == 0


def test_triangles_solve_their_systems() -> None:
    A = np.random.default_rng(0).normal(size=(6, 9))
    L, b = cholesky(A @ A.T), np.arange(6.0)
    assert np.allclose(L @ L.T, A @ A.T)
    assert np.allclose(L @ solve_lower(L, b), b)
    assert np.allclose(L.T @ solve_lower(L, b, transposed=True), b)
    assert np.allclose(inverse_lower(L) @ L, np.eye(6))
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(-np.eye(2))


def test_descent_finds_the_valley_of_rosenbrock() -> None:
    start = np.array([-1.2, 1.0, -0.5, 2.0])
    valley = lambda x: (rosen(x), rosen_der(x))  # noqa: E731
    found, value = lbfgs(valley, start, steps=500, flat=0.0, slope=1e-10)
    assert value == rosen(found)
    assert np.allclose(found, 1.0, atol=1e-8)


@pytest.mark.slow
def test_another_blas_and_a_processor_without_avx2_change_no_bit() -> None:
    command = [sys.executable, "-c", RUN]
    ran = [
        subprocess.run(
            command, env=os.environ | more, check=True, timeout=1200, capture_output=True, text=True
        )
        for more in ({}, OTHER_LOOPS)
    ]
    assert "BLAS Nehalem, SIMD none" in ran[1].stderr  # the loops were other ones
    assert ran[0].stdout.count("\n") == 3
    assert ran[0].stdout == ran[1].stdout
