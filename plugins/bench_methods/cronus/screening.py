"""A stage's optimum on the few trees that can have a weight in it.

Of thousands of trees a stage ends with tens or hundreds, so the Gram matrix of all is never built.
The problem is solved on a working set; then one pass over all trees tells which of the others would
lower the loss (the optimality conditions of eq. 7), these join, and so on until there are none. The
result is the optimum over all trees, whatever the working set began with.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from bench_models.least_squares import BLOCK, Growing
from bench_models.problem import Problem

from bench_core.arrays import BoolArray, Float32Array, FloatArray

_CHUNK = 128
"""Trees whose products a thread computes at a time."""
_BALANCING = 20


def gradient(problem: Problem, growing: Growing, weights: FloatArray) -> FloatArray:
    """The derivative (T,) of a stage's squared loss, at its best constant, by every tree's weight.

    Columns and residuals are taken in float32: about six digits.
    """
    f = problem.score(weights, 0.0)[growing.rows]
    f += float(growing.omega @ (growing.y - f)) / growing.total
    pull = np.zeros(len(problem.y), dtype=np.float32)
    pull[growing.rows] = growing.omega * (f - growing.y)
    return products(problem.columns, pull, growing.threads)


def products(columns: Float32Array, vector: Float32Array, threads: int) -> FloatArray:
    """``columns @ vector`` for columns (T, n), (T,): float32 within a block of rows, float64 over
    blocks, the same for any number of threads."""
    total = np.zeros(len(columns))

    def chunk(start: int) -> None:
        stop = start + _CHUNK
        for i in range(0, len(vector), BLOCK):
            total[start:stop] += columns[start:stop, i : i + BLOCK] @ vector[i : i + BLOCK]

    with ThreadPoolExecutor(max(1, threads)) as pool:
        list(pool.map(chunk, range(0, len(columns), _CHUNK)))
    return total


def entering(excess: FloatArray, needs: FloatArray, capacity: FloatArray) -> BoolArray:
    """Which of c trees at weight zero may lower the loss by a weight, shape (c,).

    ``excess`` (c,) is by how much a tree's gradient outweighs its own l1 price (at least 0);
    ``needs`` (s, c) and ``capacity`` (s,), prices times d_k, are of the sensors nobody bought yet.
    No tree can enter if the excess of every tree can be shared out among its sensors so that
    within each sensor the Euclidean norm of the shares stays within the capacity. Shares move
    to the sensors with room left; trees at sensors that still overflow enter. That may be more than
    must, which costs time but changes no optimum.
    """
    share = needs * capacity[:, None]
    for _ in range(_BALANCING):
        total = share.sum(axis=0)
        share *= np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        load = np.sqrt(((share * excess) ** 2).sum(axis=1))
        if not (load > capacity).any():
            break
        share *= np.sqrt(np.divide(capacity, load, out=np.ones_like(load), where=load > 0))[:, None]
    free = ~needs.any(axis=0)
    overflows: BoolArray = needs[load > capacity].any(axis=0)
    return (excess > 0) & (free | overflows)
