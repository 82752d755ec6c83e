"""Gradients as integers, in the order of leaves, and the scores that they lead to."""

import math

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array, UInt32Array
from bench_trees.kernels.compiling import inner, inner_summing

FINEST = 1000  # exponent of a unit
NEAR = 1 << 15  # rows whose numbers stay in the second cache


@inner
def _finest_unit(size: float, room: float) -> float:
    """The finest power of two, of which ``size`` has at most ``room``; NaN where it is not
    finite."""
    if not np.isfinite(size):
        return np.nan
    exponent = 0
    if size > 0.0:  # frexp: 2^e is the least power of two above the quotient
        exponent = math.frexp(max(room / max(size, room * 2.0**-FINEST), 2.0**-FINEST))[1] - 1
    return math.ldexp(1.0, -exponent)


@inner
def _write_integers(
    values: Float64Array,
    copies: Int64Array,
    unit: float,
    shift: int,
    ones: int,
    out: Int64Array,
    channel: int,
) -> None:
    """Values (m,) in units, rounded, moved ``shift`` bits up, with ``ones`` below, and times
    ``copies`` (m,), if there are any, to out[:, channel]."""
    scale = 1.0 / unit  # a power of two
    for i in range(len(values)):
        out[i, channel] = (np.int64(np.rint(values[i] * scale)) << shift) + ones
    for i in range(len(copies)):
        out[i, channel] *= copies[i]


@inner_summing
def _sum_of_sizes(values: Float64Array, copies: Int64Array) -> float:
    """The sum of |values| times copies, if there are any."""
    total = 0.0
    for i in range(len(values)):
        total += abs(values[i]) * (copies[i] if len(copies) > 0 else 1)
    return total


@inner_summing
def _sum(values: Float64Array, copies: Int64Array, rows: UInt32Array) -> float:
    """The sum over rows, times copies, if there are any."""
    total = 0.0
    for r in rows:
        total += values[r] * (copies[r] if len(copies) > 0 else 1)
    return total


@inner
def _add_steps(
    out: Float64Array | Int64Array,
    rows: UInt32Array,
    spans: Int64Array,
    steps: Float64Array | Int64Array,
    copies: Int64Array,
) -> None:
    """Add steps[i], times copies, if there are any, to out[:, 0] for the rows at the positions
    spans[i, 0]:spans[i, 1], where they rise; NEAR rows at a time, so that what is added to stays
    near while all spans pass over it."""
    at = spans[:, 0].copy()
    for end in range(NEAR, len(rows) + NEAR, NEAR):
        for i in range(len(spans)):
            step, k = steps[i], at[i]
            at[i] = _first_from(rows, k, spans[i, 1], end)
            if len(copies) == 0:
                for r in rows[k : at[i]]:
                    out[r, 0] += step
            else:
                for r in rows[k : at[i]]:
                    out[r, 0] += step * copies[r]


@inner
def _first_from(rows: UInt32Array, low: int, high: int, least: int) -> int:
    """The position of the first of the rising ``rows[low:high]`` that is ``least`` or more."""
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _collect(
    moved: Int64Array,
    rows: UInt32Array,
    copies: Int64Array,
    count_bits: int,
    rows_out: UInt32Array,
    out: Int64Array,
) -> int:
    """The rows at the positions begin:end of every (begin, end, step) of ``moved``, one after the
    other, with a packed step for each of their copies; their number."""
    at = 0
    for begin, end, step in moved:
        for i in range(begin, end):
            rows_out[at] = rows[i]
            out[at, 0] = (step * copies[rows[i]] if len(copies) else step) << count_bits
            at += 1
    return at
