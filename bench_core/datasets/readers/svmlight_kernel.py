"""Compiled kernels that read SVMlight bytes. Imported only where files are large.

A number's first 18 digits become an integer w, its value is w * 10**scale. That is exact where w
and the power of ten are float64 without rounding (Clinger 1990). Elsewhere it is within 4e-16 of
the number, relatively, which nearly always settles the float32. What is not settled, or not in the
grammar, is left to ``svmlight.parse_line``, which reads or refuses the line.

Every buffer must end with a line break: loops stop there without asking for the length.
For speed, nothing here may raise, which would have numba count the arrays' owners at every cell,
bytes are not compared in chains (``a < b < c``), which numba compiles badly, and the inner loops
index by unsigned numbers, which never count from the end.
"""

# mypy: disallow-untyped-decorators=False
from typing import Any

import numpy as np
from numba import njit

_njit: Any = njit  # whose types lack some options

# w * 1e80 is beyond float32 (or 0), w / 1e80 is 0 as float32: higher powers change nothing
POWERS = np.array([float(f"1e{e}") for e in range(81)])
EXACT, EXACT_POWER = 2**53, 22
FULL = 10**17  # w has 18 digits and cannot take another
BELOW, ABOVE = 1 - 9e-16, 1 + 9e-16


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _after_blanks(buf: Any, at: Any) -> Any:
    while True:
        c = buf[np.uint64(at)]
        if c != 32 and (c < 9 or c > 13 or c == 10):
            return at
        at += 1


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _content_end(buf: Any, at: Any) -> Any:
    while buf[np.uint64(at)] != 10 and buf[np.uint64(at)] != 35:  # line break, #
        at += 1
    return at


# not inlined by numba, which would compile it eight times; without ways in from Python and C
@_njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _digits(buf: Any, at: Any, w: Any) -> Any:
    """Append digits to w: (w, position after them, how many did not fit).

    One that does not fit and is not 0 makes w odd, so that w is never shortened to an exact one.
    """
    excess = 0
    while True:
        digit = np.int64(buf[np.uint64(at)]) - 48
        if digit < 0 or digit > 9:
            return w, at, excess
        if w < FULL:
            w = w * 10 + digit
        else:
            w |= digit != 0
            excess += 1
        at += 1


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _whole(buf: Any, at: Any) -> Any:
    """A whole number of 1 to 18 digits, else -1; and the position after it."""
    found, end, _ = _digits(buf, at, np.int64(0))
    return (found if 0 < end - at <= 18 else -1), end


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _number(buf: Any, at: Any) -> Any:
    """(float64, whether it is exact, position after it); NaN and not exact where is no number."""
    sign = -1.0 if buf[at] == 45 else 1.0
    begin = at + (buf[at] == 45 or buf[at] == 43)  # - +
    w, at, scale = _digits(buf, begin, np.int64(0))
    sound = at > begin
    if buf[at] == 46:  # .
        begin = at + 1
        w, at, excess = _digits(buf, begin, w)
        scale += excess + begin - at
        sound = sound or at > begin
    elif not sound and buf[at] | 32 == 110 and buf[at + 1] | 32 == 97 and buf[at + 2] | 32 == 110:
        return np.nan, True, at + 3
    if buf[at] | 32 == 101:  # e E
        raised = buf[at + 1] != 45
        begin = at + 1 + (buf[at + 1] == 45 or buf[at + 1] == 43)
        exponent, at, _ = _digits(buf, begin, np.int64(0))
        scale += exponent if raised else -exponent
        sound = sound and at > begin
    while w >= EXACT and w % 10 == 0:
        w //= 10
        scale += 1
    value = w / POWERS[min(-scale, 80)] if scale < 0 else w * POWERS[min(scale, 80)]
    exact = sound and w < EXACT and -EXACT_POWER <= scale <= EXACT_POWER
    return (sign * value if sound else np.nan), exact, at


@njit(cache=True, nogil=True, error_model="numpy")
def count_rows(buf: Any) -> Any:
    """Rows in ``buf`` and the largest index on them, as written, at least -1.

    Looks at the last cell of each line only: a line whose indices do not rise is found later.
    """
    at, rows, largest = 0, 0, -1
    while at < len(buf):
        begin = _after_blanks(buf, at)
        colon = at = _content_end(buf, begin)
        rows += at > begin
        while colon > begin and buf[colon] != 58:
            colon -= 1
        first = colon
        while first > begin and buf[first - 1] >= 48 and buf[first - 1] <= 57:
            first -= 1
        if first > begin and _after_blanks(buf, first - 1) == first:
            index, _ = _whole(buf, first)
            largest = max(largest, index)
        while buf[at] != 10:
            at += 1
        at += 1
    return rows, largest


@njit(cache=True, nogil=True, error_model="numpy")
def read_rows(
    buf: Any, base: Any, column: Any, huge_is_missing: Any, X: Any, y: Any, qid: Any, left: Any
) -> Any:
    """Read the lines of ``buf`` into X (n, kept), 0 before, y (n,) and qid (n,), -1 before.

    ``column`` (d,) is the place of feature j, -1 for none. Values beyond float32 are NaN if
    ``huge_is_missing``, else faults. Returns how many rows of ``left`` (n, 3) are written, each a
    data row and the begin and end of what Python must read for it: all of its line, or its label.
    """
    at, row, used = 0, 0, 0
    while at < len(buf):
        line = _after_blanks(buf, at)
        at = line
        if buf[at] != 10 and buf[at] != 35:
            y[row], exact, label_end = _number(buf, at)
            at, last, settled = label_end, -1, True
            while settled:
                gap = at
                at = _after_blanks(buf, at)
                if buf[at] == 10 or buf[at] == 35:
                    break
                settled = at > gap
                if last < 0 and qid[row] < 0 and buf[at] == 113:  # qid:
                    settled = settled and buf[at + 1] == 105 and buf[at + 2] == 100
                    if settled and buf[at + 3] == 58:
                        qid[row], at = _whole(buf, at + 4)
                    settled = settled and qid[row] >= 0
                    continue
                feature, at = _whole(buf, at)
                feature -= base
                if feature <= last or feature >= len(column) or buf[at] != 58 or not settled:
                    settled = False
                    break
                last = feature
                value, sure, at = _number(buf, at + 1)
                cell = np.float32(value)
                sure = sure or np.float32(value * BELOW) == np.float32(value * ABOVE)
                if np.isinf(cell):
                    cell, sure = np.float32(np.nan), sure and huge_is_missing
                settled = sure
                if column[feature] >= 0:
                    X[row, column[feature]] = cell
            at = _content_end(buf, at)
            if not (settled and exact and np.isfinite(y[row])):
                left[used, 0], left[used, 1] = row, line
                left[used, 2] = label_end if settled else at
                used += 1
            row += 1
        while buf[at] != 10:
            at += 1
        at += 1
    return used
