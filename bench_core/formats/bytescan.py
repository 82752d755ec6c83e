"""Compiled kernels that read SVMlight bytes. Imported only where files are large.

Numbers are read exactly: up to 19 digits are gathered into an integer w, and w * 10**e is rounded
once to the nearest float64, by one exact multiplication or division where w < 2**53 and |e| <= 22
(Clinger), else by the 128-bit product of Eisel and Lemire ("Number Parsing at a Gigabyte per
Second", Lemire 2021, section 5). What neither settles is left to Python: the kernel notes where it
stands. A line the kernel cannot read stops it; ``linegrammar`` then says what is wrong.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_core.formats.linegrammar import LARGEST

LOWEST, HIGHEST = -342, 308
DONE, FULL, FAULT = 0, 1, 2

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]


@cache
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


POW10 = np.array([10.0**e for e in range(23)])


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
def _eisel_lemire(w: Any, e: Any, powers: Any) -> Any:
    """Bits of the float64 nearest to w * 10**e, w > 0; the top bit is set where undecided."""
    undecided = np.uint64(1) << np.uint64(63)
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
    high, low = _product(w, powers[row, 0])
    if (high & np.uint64(0x1FF)) == np.uint64(0x1FF) and low + w < w:
        high2, low2 = _product(w, powers[row, 1])
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
    return (np.uint64(exponent) << np.uint64(52)) | (mantissa & np.uint64((1 << 52) - 1))


@njit(cache=True, nogil=True)
def _number(buf: Any, at: Any, stop: Any, powers: Any, pow10: Any, bits: Any) -> Any:
    """Read a number that begins at ``at``.

    Returns (value, position after it, status): DONE, FAULT, or FULL where Python must decide.
    """
    start = at
    negative = False
    if at < stop and (buf[at] == 45 or buf[at] == 43):  # - +
        negative = buf[at] == 45
        at += 1
    w = np.uint64(0)
    digits = 0
    exponent = np.int64(0)
    any_digit = False
    while at < stop and buf[at] - np.uint8(48) < 10:
        if digits > 0 or buf[at] != 48:
            digits += 1
        w = w * np.uint64(10) + np.uint64(buf[at] - np.uint8(48))
        any_digit = True
        at += 1
    if at < stop and buf[at] == 46:  # .
        at += 1
        before = at
        while at < stop and buf[at] - np.uint8(48) < 10:
            if digits > 0 or buf[at] != 48:
                digits += 1
            w = w * np.uint64(10) + np.uint64(buf[at] - np.uint8(48))
            at += 1
        exponent = np.int64(before - at)
        any_digit = any_digit or at > before
    if not any_digit:
        return 0.0, start, FULL if start < stop else FAULT
    if at < stop and (buf[at] == 101 or buf[at] == 69):  # e E
        at += 1
        sign = np.int64(1)
        if at < stop and (buf[at] == 45 or buf[at] == 43):
            sign = np.int64(-1) if buf[at] == 45 else np.int64(1)
            at += 1
        written = np.int64(0)
        before = at
        while at < stop and buf[at] - np.uint8(48) < 10:
            if written < 100000:
                written = written * 10 + np.int64(buf[at] - np.uint8(48))
            at += 1
        if at == before:
            return 0.0, start, FAULT
        exponent += sign * written
    if digits > 19:
        return 0.0, start, FULL
    value = 0.0
    if w != 0:
        if w < np.uint64(1 << 53) and -22 <= exponent <= 22:
            value = float(w)
            value = value / pow10[-exponent] if exponent < 0 else value * pow10[exponent]
        else:
            found = _eisel_lemire(w, exponent, powers)
            if found >> np.uint64(63):
                return 0.0, start, FULL
            bits[0] = found
            value = bits.view(np.float64)[0]
    return (-value if negative else value), at, DONE


@njit(cache=True, nogil=True, inline="always")
def _blank(c: Any) -> Any:
    return c == 32 or c == 9 or c == 13 or c == 11 or c == 12


@njit(cache=True, nogil=True)
def count_rows(buf: Any, at: Any, stop: Any) -> Any:
    """Rows in ``buf[at:stop]`` and the largest index on them (as written, at least -1).

    Looks at the last cell of each line only: a line whose indices do not rise is found later.
    """
    rows = 0
    largest = np.int64(-1)
    while at < stop:
        while at < stop and _blank(buf[at]):
            at += 1
        colon = np.int64(-1)
        if at < stop and buf[at] != 10 and buf[at] != 35:
            rows += 1
            while at < stop and buf[at] != 10 and buf[at] != 35:
                if buf[at] == 58:
                    colon = at
                at += 1
        while at < stop and buf[at] != 10:
            at += 1
        at += 1
        index = np.int64(0)
        scale = np.int64(1)
        length = 0
        before = colon - 1
        while before >= 0 and buf[before] - np.uint8(48) < 10 and length < 18:
            index += scale * np.int64(buf[before] - np.uint8(48))
            scale *= 10
            length += 1
            before -= 1
        if length > 0 and colon > 0 and _blank(buf[before]):
            largest = max(largest, index)
    return rows, largest


@njit(cache=True, nogil=True)
def read_rows(
    buf: Any, at: Any, stop: Any, row: Any, base: Any, column: Any, X: Any, y: Any, qid: Any,
    powers: Any, pow10: Any, slow: Any,
) -> Any:  # fmt: skip
    """Read the lines of ``buf[at:stop]`` into rows ``row``... of X, y and qid.

    ``column`` (d,) says where feature j is kept, -1 nowhere. ``slow`` (m, 4) takes cells whose
    number Python must read: row, feature (-1: the label), begin and end in ``buf``. Returns
    (status, position, row, slow cells): DONE, FULL (call again from the position, which begins a
    line) or FAULT at the line that begins at the position.
    """
    d = len(column)
    bits = np.zeros(1, dtype=np.uint64)
    used = 0
    while at < stop:
        line = at
        if used + d + 1 > len(slow):
            return FULL, line, row, used
        while at < stop and _blank(buf[at]):
            at += 1
        if at < stop and buf[at] != 10 and buf[at] != 35:
            value, after, status = _number(buf, at, stop, powers, pow10, bits)
            if status == FAULT:
                return FAULT, line, row, used
            if status == FULL:
                after = at
                while after < stop and not _blank(buf[after]) and buf[after] not in (10, 35):
                    after += 1
                slow[used, 0], slow[used, 1], slow[used, 2], slow[used, 3] = row, -1, at, after
                used += 1
            y[row] = value
            at = after
            query = np.int64(-1)
            last = np.int64(-1)
            first = True
            while True:
                gap = at
                while at < stop and _blank(buf[at]):
                    at += 1
                if at >= stop or buf[at] == 10 or buf[at] == 35:
                    break
                if at == gap:
                    return FAULT, line, row, used
                if first and at + 4 < stop and buf[at] == 113:  # qid:
                    if buf[at + 1] != 105 or buf[at + 2] != 100 or buf[at + 3] != 58:
                        return FAULT, line, row, used
                    at += 4
                    query = np.int64(0)
                    length = 0
                    while at < stop and buf[at] - np.uint8(48) < 10:
                        query = query * 10 + np.int64(buf[at] - np.uint8(48))
                        length += 1
                        at += 1
                    if length == 0 or length > 18:
                        return FAULT, line, row, used
                    first = False
                    continue
                first = False
                index = np.int64(0)
                length = 0
                while at < stop and buf[at] - np.uint8(48) < 10:
                    index = index * 10 + np.int64(buf[at] - np.uint8(48))
                    length += 1
                    at += 1
                if length == 0 or length > 18 or at >= stop or buf[at] != 58:
                    return FAULT, line, row, used
                at += 1
                feature = index - base
                if feature <= last or feature >= d:
                    return FAULT, line, row, used
                last = feature
                value, after, status = _number(buf, at, stop, powers, pow10, bits)
                if status == FAULT:
                    return FAULT, line, row, used
                kept = column[feature]
                if status == FULL:
                    after = at
                    while after < stop and not _blank(buf[after]) and buf[after] not in (10, 35):
                        after += 1
                    slow[used, 0], slow[used, 1] = row, feature
                    slow[used, 2], slow[used, 3] = at, after
                    used += 1
                elif abs(value) > LARGEST:
                    return FAULT, line, row, used
                elif kept >= 0:
                    X[row, kept] = np.float32(value)
                at = after
            qid[row] = query
            row += 1
        while at < stop and buf[at] != 10:
            at += 1
        at += 1
    return DONE, at, row, used
