"""Compiled kernels that read SVMlight bytes. Imported only where files are large.

Numbers are read exactly: up to 19 digits are gathered into an integer w, and w * 10**e is rounded
once to the nearest float64, by one exact multiplication or division where w < 2**53 and |e| <= 22
(Clinger), else by the 128-bit product of Eisel and Lemire ("Number Parsing at a Gigabyte per
Second", Lemire 2021, section 5). What neither settles is left to Python: the kernel notes where it
stands. A line the kernel cannot read stops it; ``linegrammar`` then says what is wrong.

Most cells are read by ``_usual_cell`` with hardly a branch; what it does not take, sound or not,
is read again by the general way.

The bytes must end with line breaks (``PADDING``): loops stop there without asking for the length,
and a cell is looked at before it is known to be one, up to 25 bytes beyond the line.
"""

from __future__ import annotations

from math import ldexp
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_core.datasets.readers.svmlight_grammar import LARGEST

LOWEST, HIGHEST = -342, 308
PADDING = b"\n" * 32
DONE, FULL, FAULT = 0, 1, 2
NO_EXPONENT = 1 << 40

U64 = NDArray[np.uint64]


def powers_of_ten() -> U64:
    """The leading 128 bits (rounded down) of 10**e, e = -342..308: rows of (high, low)."""
    table = np.empty((HIGHEST - LOWEST + 1, 2), dtype=np.uint64)
    for e in range(LOWEST, HIGHEST + 1):
        if e >= 0:
            leading = 10**e << 128 >> (10**e).bit_length()
        else:
            leading = (1 << (127 + (10**-e).bit_length())) // 10**-e
        table[e - LOWEST] = (leading >> 64, leading & (2**64 - 1))
    return table


TOP = np.uint64(1 << 63)
ZEROS = np.uint64(0x3030303030303030)
POWERS = powers_of_ten()
POW10 = np.array([10.0**e for e in range(23)])
TENS = np.array([10**e for e in range(9)], dtype=np.uint64)


@njit(cache=True, nogil=True, inline="always")
def _product(a: Any, b: Any) -> Any:
    """High and low half of a 64 x 64 bit product."""
    mask = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a0, a1 = a & mask, a >> half
    b0, b1 = b & mask, b >> half
    low = a0 * b0
    t = a1 * b0 + (low >> half)
    w = a0 * b1 + (t & mask)
    high = a1 * b1 + (t >> half) + (w >> half)
    return high, a * b


@njit(cache=True, nogil=True)
def _eisel_lemire(w: Any, e: Any) -> Any:
    """The float64 nearest to w * 10**e, w > 0; -1 where undecided."""
    undecided = -1.0
    if e < LOWEST or e > HIGHEST:
        return undecided
    zeros = np.int64(0)
    while not (w >> np.uint64(63)):
        shift = np.int64(32) if not (w >> np.uint64(32)) else np.int64(1)
        if shift == 1 and not (w >> np.uint64(56)):
            shift = np.int64(8)
        w = w << np.uint64(shift)
        zeros += shift
    exponent = ((np.int64(217706) * e) >> np.int64(16)) + np.int64(64 + 1023) - zeros
    row = e - LOWEST
    high, low = _product(w, POWERS[row, 0])
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF) and low + w < w:
        high2, low2 = _product(w, POWERS[row, 1])
        merged = low + high2
        if merged < low:
            high += np.uint64(1)
        if (
            (high & np.uint64(0x1FF)) == np.uint64(0x1FF)
            and merged + np.uint64(1) == np.uint64(0)
            and low2 + w < w
        ):
            return undecided
        low = merged
    top = high >> np.uint64(63)
    mantissa = high >> (top + np.uint64(9))
    exponent -= np.int64(1) ^ np.int64(top)
    if low == 0 and (high & np.uint64(0x1FF)) == 0 and (mantissa & np.uint64(3)) == 1:
        return undecided
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >> np.uint64(53):
        mantissa = mantissa >> np.uint64(1)
        exponent += np.int64(1)
    if exponent < 1 or exponent >= 0x7FF:
        return undecided
    return ldexp(np.float64(mantissa), exponent - np.int64(1023 + 52))


@njit(cache=True, nogil=True)
def _eight(buf: Any, at: Any) -> Any:
    """Eight bytes as one number, the first the lowest; compiled to a single load."""
    i = np.uint64(at)
    return (
        np.uint64(buf[i])
        | np.uint64(buf[i + np.uint64(1)]) << np.uint64(8)
        | np.uint64(buf[i + np.uint64(2)]) << np.uint64(16)
        | np.uint64(buf[i + np.uint64(3)]) << np.uint64(24)
        | np.uint64(buf[i + np.uint64(4)]) << np.uint64(32)
        | np.uint64(buf[i + np.uint64(5)]) << np.uint64(40)
        | np.uint64(buf[i + np.uint64(6)]) << np.uint64(48)
        | np.uint64(buf[i + np.uint64(7)]) << np.uint64(56)
    )


@njit(cache=True, nogil=True)
def _no_digits(t: Any) -> Any:
    """The top bit of every byte that is above 9."""
    other = (t & np.uint64(0x7F7F7F7F7F7F7F7F)) + np.uint64(0x7676767676767676)
    return (other | t) & np.uint64(0x8080808080808080)


@njit(cache=True, nogil=True)
def _combined(t: Any) -> Any:
    """The number of eight decimal digits, one per byte, the first the lowest."""
    t = (t * np.uint64(2561)) >> np.uint64(8)
    t = ((t & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(6553601)) >> np.uint64(16)
    return ((t & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(42949672960001)) >> np.uint64(32)


@njit(cache=True, nogil=True)
def _lowest(bits: Any) -> Any:
    return bits & (~bits + np.uint64(1))


@njit(cache=True, nogil=True)
def _bytes_below(bit: Any) -> Any:
    """Which of the eight bytes has its top bit at ``bit``."""
    ones = ((bit - np.uint64(1)) & np.uint64(0x0101010101010101)) * np.uint64(0x0101010101010101)
    return (ones >> np.uint64(56)) - np.uint64(1)


@njit(cache=True, nogil=True)
def _digits(buf: Any, at: Any, w: Any) -> Any:
    """Append the decimal digits at ``at`` to w (modulo 2**64): (w, position after them).

    Eight characters at a time, without a branch on how many of them are digits: ``t`` holds the
    digits' values byte by byte, ``other`` the top bit of every byte that is none; the digits are
    shifted to the end of the eight and combined in pairs, fours and eights.
    """
    while True:
        t = _eight(buf, at) ^ ZEROS
        other = _no_digits(t)
        count = np.uint64(8)
        if other:
            count = _bytes_below(_lowest(other))
            if count == 0:
                return w, at
            t = t << (np.uint64(8) * (np.uint64(8) - count))
        w = w * TENS[count] + _combined(t)
        at += np.int64(count)
        if count < np.uint64(8):
            return w, at


@njit(cache=True, nogil=True, inline="always")
def _number(buf: Any, at: Any) -> Any:
    """Read the number that begins at ``at``: (value, position after it, status).

    The status is DONE, FAULT, or FULL where Python must decide; then the value is infinite if it is
    beyond float32 for certain.
    """
    sign = 1.0
    if buf[at] == 45:  # -
        sign = -1.0
        at += 1
    elif buf[at] == 43:  # +
        at += 1
    begin = at
    w, at = _digits(buf, at, np.uint64(0))
    digits = at - begin
    exponent = 0
    if buf[at] == 46:  # .
        point = at + 1
        w, at = _digits(buf, point, w)
        exponent = point - at
        digits += at - point
    if digits == 0:
        return 0.0, at, FULL
    if buf[at] == 101 or buf[at] == 69:  # e E
        written, at = _exponent(buf, at + 1)
        if written == NO_EXPONENT:
            return 0.0, at, FAULT
        exponent += written
    if digits > 19:
        digits -= _leading_zeros(buf, begin)
        if digits > 19:
            return (np.inf if exponent + digits > 39 else 0.0), at, FULL
    if w < np.uint64(1 << 53) and -22 <= exponent <= 22:
        if exponent < 0:
            return sign * (np.int64(w) / POW10[-exponent]), at, DONE
        return sign * (np.int64(w) * POW10[exponent]), at, DONE
    if w == 0:
        return sign * 0.0, at, DONE
    found = _eisel_lemire(w, exponent)
    if found < 0:
        return 0.0, at, FULL
    return sign * found, at, DONE


@njit(cache=True, nogil=True)
def _exponent(buf: Any, at: Any) -> Any:
    sign = 1
    if buf[at] == 45 or buf[at] == 43:
        sign = -1 if buf[at] == 45 else 1
        at += 1
    begin = at
    written: Any = 0
    while 48 <= buf[at] <= 57:
        if written < 1_000_000_000:
            written = written * 10 + np.int64(buf[at]) - 48
        at += 1
    return (NO_EXPONENT if at == begin else sign * written), at


@njit(cache=True, nogil=True)
def _leading_zeros(buf: Any, at: Any) -> Any:
    zeros = 0
    while buf[at] == 48 or buf[at] == 46:
        zeros += buf[at] == 48
        at += 1
    return zeros


@njit(cache=True, nogil=True, inline="always")
def _blank(c: Any) -> Any:
    return c == 32 or c == 9 or c == 13 or c == 11 or c == 12


@njit(cache=True, nogil=True)
def _token_end(buf: Any, at: Any) -> Any:
    while not _blank(buf[at]) and buf[at] != 10 and buf[at] != 35:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _has_end(eight: Any) -> Any:
    """Whether a line break or a # is among eight bytes."""
    breaks = eight ^ np.uint64(0x0A0A0A0A0A0A0A0A)
    hashes = eight ^ np.uint64(0x2323232323232323)
    low = np.uint64(0x0101010101010101)
    zero = ((breaks - low) & ~breaks) | ((hashes - low) & ~hashes)
    return (zero & np.uint64(0x8080808080808080)) != np.uint64(0)


@njit(cache=True, nogil=True)
def count_rows(buf: Any, at: Any, stop: Any) -> Any:
    """Rows in ``buf[at:stop]`` and the largest index on them (as written, at least -1).

    Looks at the last cell of each line only: a line whose indices do not rise is found later.
    """
    rows = 0
    largest = -1
    while at < stop:
        while _blank(buf[at]):
            at += 1
        colon = -1
        if buf[at] != 10 and buf[at] != 35:
            rows += 1
            begin = at
            while not _has_end(_eight(buf, at)):
                at += 8
            while buf[at] != 10 and buf[at] != 35:
                at += 1
            colon = at - 1
            while colon > begin and buf[colon] != 58:
                colon -= 1
        while buf[at] != 10:
            at += 1
        at += 1
        index: Any = 0
        scale: Any = 1
        before = colon - 1
        while before >= 0 and 48 <= buf[before] <= 57 and colon - before < 19:
            index += scale * (np.int64(buf[before]) - 48)
            scale *= 10
            before -= 1
        if colon - before > 1 and _blank(buf[before]):
            largest = max(largest, index)
    return rows, largest


@njit(cache=True, nogil=True, error_model="numpy")
def _usual_cell(index: Any, low: Any, high: Any, width: Any) -> Any:
    """Read ``index:value`` of the usual form: (index, value, length of the value, 0 if not usual).

    Given are eight characters from the index and sixteen from the value on, which is where it is
    if the index has ``width`` digits. Usual is a value of at most 15 characters whose point, if it
    has one, is among the first eight. Branches ask only what nearly always holds: so the processor
    reads the next cells before it has settled where this one ends. Without an array, because each
    array given to a function costs counting its owners up and down, in memory all threads share.
    """
    none = np.uint64(0), 0.0, np.uint64(0)
    past = np.uint64(8) * (np.uint64(7) - width)  # the colon becomes the last of the eight
    t = (index ^ ZEROS) << past
    if _no_digits(t) != TOP or t >> np.uint64(56) != np.uint64(58 ^ 48):
        return none
    found = _combined(t << np.uint64(8))
    t = low ^ ZEROS
    minus = np.uint64((t & np.uint64(255)) == np.uint64(45 ^ 48))
    t = t & ~(minus * np.uint64(255))
    other = _no_digits(t)
    first = _lowest(other)
    whole = _bytes_below(first)
    if first and (low >> (np.uint64(8) * whole)) & np.uint64(255) == np.uint64(46):
        # "12.5    " becomes "0125    ": what stands before the point moves over it
        before = (first >> np.uint64(7)) - np.uint64(1)
        t = ((t & before) << np.uint64(8)) | (t & ~(first + first - np.uint64(1)))
        other ^= first
        point = np.uint64(1)
    else:
        point = np.uint64(0)
    if other:
        length = _bytes_below(_lowest(other))
        if length < np.uint64(1) + minus + point:
            return none
        w = _combined(t << (np.uint64(8) * (np.uint64(8) - length)))
    else:
        other = _no_digits(high ^ ZEROS)
        if not other:
            return none
        more = _bytes_below(_lowest(other))
        length = np.uint64(8) + more
        w = _combined(t) * TENS[more]
        if more:
            w += _combined((high ^ ZEROS) << (np.uint64(8) * (np.uint64(8) - more)))
    # at most 15 digits, by at most 10**14: both exact as float64, so rounded once
    value = np.float64(np.int64(w)) / POW10[(length - whole - np.uint64(1)) * point]
    return found, (-value if minus else value), length


@njit(cache=True, nogil=True)
def read_rows(
    buf: Any, at: Any, stop: Any, row: Any, base: Any, column: Any, X: Any, y: Any, qid: Any,
    slow: Any, huge_is_missing: Any,
) -> Any:  # fmt: skip
    """Read the lines of ``buf[at:stop]`` into rows ``row``... of X, y and qid.

    ``column`` (d,) says where feature j is kept, -1 nowhere. ``slow`` (m, 4) takes cells whose
    number Python must read: row, feature (-1: the label), begin and end in ``buf``. Values beyond
    float32 are NaN if ``huge_is_missing``, else faults. Returns (status, position, row, slow
    cells): DONE, FULL (call again from the position, which begins a line) or FAULT at the line that
    begins at the position.
    """
    d = len(column)
    used = 0
    while at < stop:
        line = at
        if used + d + 1 > len(slow):
            return FULL, line, row, used
        while _blank(buf[at]):
            at += 1
        if buf[at] != 10 and buf[at] != 35:
            value, after, status = _number(buf, at)
            if status == FAULT:
                return FAULT, line, row, used
            if status == FULL:
                after = _token_end(buf, at)
                slow[used, 0], slow[used, 1], slow[used, 2], slow[used, 3] = row, -1, at, after
                used += 1
            y[row] = value
            at = after
            query = -1
            last = -1
            width = np.uint64(1)
            while True:
                begin = at + 2 + np.int64(width)
                index, value, length = _usual_cell(
                    _eight(buf, at + 1), _eight(buf, begin), _eight(buf, begin + 8), width
                )
                after = begin + np.int64(length)
                feature = np.int64(index) - base
                usual = length and buf[at] == 32 and (buf[after] == 32 or buf[after] == 10)
                if usual and last < feature < d:
                    last = feature
                    kept = column[feature]
                    if kept >= 0:
                        X[row, kept] = np.float32(value)
                    at = after
                    continue
                gap = at
                while _blank(buf[at]):
                    at += 1
                if buf[at] == 10 or buf[at] == 35:
                    break
                if at == gap:
                    return FAULT, line, row, used
                begin = at
                index, at = _digits(buf, at, np.uint64(0))
                if at == begin and query < 0 and last < 0 and _is_qid(buf, at):
                    query, at = _whole(buf, at + 4)
                    if query < 0:
                        return FAULT, line, row, used
                    continue
                feature = np.int64(index) - base
                if at == begin or at - begin > 18 or buf[at] != 58:
                    return FAULT, line, row, used
                if feature <= last or feature >= d:
                    return FAULT, line, row, used
                width = np.uint64(min(at - begin, 7))
                at += 1
                last = feature
                value, after, status = _number(buf, at)
                if huge_is_missing and abs(value) > LARGEST:
                    value, status = np.nan, DONE
                if status == DONE and not abs(value) > LARGEST:
                    kept = column[feature]
                    if kept >= 0:
                        X[row, kept] = np.float32(value)
                elif status == FULL:
                    after = _token_end(buf, at)
                    slow[used, 0], slow[used, 1] = row, feature
                    slow[used, 2], slow[used, 3] = at, after
                    used += 1
                else:
                    return FAULT, line, row, used
                at = after
            qid[row] = query
            row += 1
        while buf[at] != 10:
            at += 1
        at += 1
    return DONE, at, row, used


@njit(cache=True, nogil=True)
def _is_qid(buf: Any, at: Any) -> Any:
    return buf[at] == 113 and buf[at + 1] == 105 and buf[at + 2] == 100 and buf[at + 3] == 58


@njit(cache=True, nogil=True)
def _whole(buf: Any, at: Any) -> Any:
    """A whole number of 1 to 18 digits, else -1; and the position after it."""
    begin = at
    found: Any = 0
    while 48 <= buf[at] <= 57 and at - begin < 19:
        found = found * 10 + np.int64(buf[at]) - 48
        at += 1
    return (found if 0 < at - begin < 19 else -1), at
