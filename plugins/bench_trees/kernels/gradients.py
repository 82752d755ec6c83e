"""Gradients of classes; gradients as integers, in the order of leaves, and the resulting scores."""

import math

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array, UInt32Array
from bench_trees.kernels.compiling import calling, inner, inner_dividing, inner_summing

FINEST = 1000  # exponent of a unit
NEAR = 1 << 15  # rows whose numbers fit in the second cache
BLOCK = 512  # rows whose sums over classes fit in the nearest cache
LOWEST = -700.0  # exponent; below it a power would not be a normal number
WHOLE = 1.5 * 2.0**52  # adding it rounds a number to an integer
LOG2, LOG2_REST = 0.6931471803691238, 1.9082149292705877e-10  # its first 32 bits, and the rest


@calling(error_model="numpy")
def class_gradients(
    scores: Float64Array,
    y: Float64Array,
    begin: int,
    end: int,
    gradient: Float64Array,
    hessian: Float64Array,
) -> None:
    """Gradients p - [y = k] of rows begin:end at scores (K n, 1), class after class. Hessians are K
    / (K - 1) p (1 - p), unless ``hessian`` is (0,). One score is the log-odds of class 1."""
    n, f = len(y), scores.reshape(scores.size)
    outputs = len(f) // n
    factor = outputs / (outputs - 1) if outputs > 1 else 1.0
    top, total = np.empty(BLOCK), np.empty(BLOCK)
    for first in range(begin, end, BLOCK):
        labels = y[first : min(first + BLOCK, end)]
        for i in range(len(labels)):  # a single score's other class has score 0
            top[i] = 0.0 if outputs == 1 else -np.inf
        for at in range(first, len(f), n):
            logits = f[at : at + len(labels)]
            for i in range(len(logits)):
                top[i] = max(top[i], logits[i])
        for i in range(len(labels)):
            total[i] = -top[i]
        if outputs == 1:
            _raise_powers(total[: len(labels)])
        for at in range(first, len(f), n):
            logits, g = f[at : at + len(labels)], gradient[at : at + len(labels)]
            for i in range(len(logits)):
                g[i] = logits[i] - top[i]
            _raise_powers(g)
            for i in range(len(logits)):
                total[i] = g[i] + (0.0 if outputs > 1 and at == first else total[i])
        for at in range(first, len(f), n):
            g, h = gradient[at : at + len(labels)], hessian[at : at + len(labels)]
            label = 1 if outputs == 1 else at // n
            for i in range(len(g)):
                g[i] /= total[i]
            for i in range(len(h)):
                h[i] = (1.0 - g[i]) * g[i] * factor
            for i in range(len(g)):
                g[i] -= 1.0 if labels[i] == label else 0.0


@inner_dividing
def _raise_powers(values: Float64Array) -> None:
    """Replace each x, at most 0, by e^x to the last bit but one: a power of two times the series of
    the rest. Without calls it is vectorised, and the same on every machine."""
    for i in range(len(values)):
        x = LOWEST if values[i] < LOWEST else values[i]  # NaN stays
        shifted = x / (LOG2 + LOG2_REST) + WHOLE
        whole = shifted - WHOLE
        rest = (x - whole * LOG2) - whole * LOG2_REST
        series = 1.0
        for k in range(13, 0, -1):
            series = 1.0 + series * (rest * (1.0 / k))
        bits = np.float64(shifted).view(np.int64) + np.int64(1023)
        values[i] = series * np.int64(bits << np.int64(52)).view(np.float64)


@inner_summing
def _slope(
    gradient: Float64Array, scores: Float64Array, start: Float64Array, copies: Int64Array
) -> float:
    """Directional derivative of the summed loss at scores (K n, 1), from the start towards them."""
    total, f = 0.0, scores.reshape(scores.size)
    n = max(1, len(copies))
    for i in range(len(gradient)):
        total += gradient[i] * (f[i] - start[i]) * (copies[i % n] if len(copies) > 0 else 1)
    return total


@inner
def _finest_unit(size: float, room: float) -> float:
    """The finest power of two that fits ``size`` at most ``room`` times; NaN if not finite."""
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
    """Write values (m,) in units to out[:, channel]: rounded, shifted up by ``shift`` bits, with
    ``ones`` below, and times any ``copies`` (m,)."""
    scale = 1.0 / unit  # a power of two
    for i in range(len(values)):
        out[i, channel] = (np.int64(np.rint(values[i] * scale)) << shift) + ones
    for i in range(len(copies)):
        out[i, channel] *= copies[i]


@inner_summing
def _sum_of_sizes(values: Float64Array, copies: Int64Array) -> float:
    """The sum of |values| times any copies."""
    total = 0.0
    for i in range(len(values)):
        total += abs(values[i]) * (copies[i] if len(copies) > 0 else 1)
    return total


@inner_summing
def _sum(values: Float64Array, copies: Int64Array, rows: UInt32Array) -> float:
    """The sum over rows, times any copies."""
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
    """Add steps[i], times any copies, to out[:, 0] for the rows at the rising positions spans[i,
    0]:spans[i, 1]. NEAR rows at a time, so that the outputs stay in cache while all spans pass over
    them."""
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
    """The first position in the rising ``rows[low:high]`` with a value of at least ``least``."""
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
    """Copy the rows at the positions begin:end of every (begin, end, step) of ``moved`` one after
    another, with a packed step per copy; return their number."""
    at = 0
    for begin, end, step in moved:
        for i in range(begin, end):
            rows_out[at] = rows[i]
            out[at, 0] = (step * copies[rows[i]] if len(copies) else step) << count_bits
            at += 1
    return at
