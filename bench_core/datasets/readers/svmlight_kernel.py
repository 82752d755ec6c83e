"""The compiled kernel that reads SVMlight bytes. Imported only where files are large.

A number's first 18 digits become an integer w, its value is w * 10**scale. That is exact where w
and the power of ten are float64 without rounding (Clinger 1990). Elsewhere it is within 4e-16 of
the number, relatively, which nearly always settles the float32. What is not settled, or not in the
grammar, is left to ``svmlight.parse_line``, which reads or refuses the line.

The buffer must end with a line break: loops stop there without asking for the length. Nothing here
may raise, which would have numba count the arrays' owners at every cell.
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
BREAK, HASH, COLON, POINT, PLUS, MINUS = b"\n#:.+-"
_E, _N, _A, _Q, _I, _D = b"enaqid"
LOWER = 32  # the bit that makes a letter a small one


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _after_blanks(buf: Any, at: Any) -> Any:
    while True:
        c = buf[np.uint64(at)]
        if c != 32 and (c < 9 or c > 13 or c == BREAK):
            return at
        at += 1


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
    sign = -1.0 if buf[at] == MINUS else 1.0
    begin = at + (buf[at] == MINUS or buf[at] == PLUS)
    w, at, scale = _digits(buf, begin, np.int64(0))
    sound = at > begin
    if buf[at] == POINT:
        begin = at + 1
        w, at, excess = _digits(buf, begin, w)
        scale += excess + begin - at
        sound = sound or at > begin
    elif not sound and buf[at] | LOWER == _N and buf[at + 1] | LOWER == _A:
        return np.nan, buf[at + 2] | LOWER == _N, at + 3
    if buf[at] | LOWER == _E:
        raised = buf[at + 1] != MINUS
        begin = at + 1 + (buf[at + 1] == MINUS or buf[at + 1] == PLUS)
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
def read_rows(
    buf: Any, at: Any, row: Any, base: Any, column: Any, huge: Any, X: Any, y: Any, qid: Any
) -> Any:
    """Read lines from position ``at`` into X (n, kept), 0 before, y (n,) and qid (n,), -1 before.

    ``column`` (d,) is the place of feature j, -1 for none. Values beyond float32 are NaN if
    ``huge``. Stops before a line that it cannot settle: returns its position and row.
    """
    while at < len(buf):
        line = at
        at = _after_blanks(buf, at)
        if buf[at] != BREAK and buf[at] != HASH:
            y[row], settled, at = _number(buf, at)
            settled = settled and np.isfinite(y[row])
            last = -1
            while settled:
                gap = at
                at = _after_blanks(buf, at)
                if buf[at] == BREAK or buf[at] == HASH:
                    break
                settled = at > gap
                if last < 0 and qid[row] < 0 and buf[at] == _Q:
                    settled = settled and buf[at + 1] == _I and buf[at + 2] == _D
                    if settled and buf[at + 3] == COLON:
                        qid[row], at = _whole(buf, at + 4)
                    settled = settled and qid[row] >= 0
                    continue
                feature, at = _whole(buf, at)
                feature -= base
                if feature <= last or feature >= len(column) or buf[at] != COLON or not settled:
                    settled = False
                    break
                last = feature
                value, sure, at = _number(buf, at + 1)
                cell = np.float32(value)
                settled = sure or np.float32(value * BELOW) == np.float32(value * ABOVE)
                if np.isinf(cell):
                    cell, settled = np.float32(np.nan), settled and huge
                if column[feature] >= 0:
                    X[row, column[feature]] = cell
            if not settled:
                return line, row
            row += 1
        while buf[at] != BREAK:
            at += 1
        at += 1
    return at, row
