"""What the rows of one block pay at one operating point after the other.

Along a path a row buys little that is new, so only what changed is priced: a compiled pass that
agrees bit for bit with ``Acquired.cost``. Where float64 sums of the prices are exact in any order
(prices 1, 5, 20 ...), the price of each new sensor is added; else the changed words of 64 sensors
are summed again in the order of ``Acquired.cost``.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_core.arrays import FloatArray
from bench_core.costs.acquired import Acquired, byte_sums


class Meter:
    """Prices the sensors (s,) that ``rows`` rows buy at consecutive points."""

    def __init__(self, price: FloatArray, rows: int) -> None:
        self._tables = byte_sums(price)
        count = len(self._tables)
        self._price = np.zeros(64 * count)
        self._price[: len(price)] = price
        self._exact = sums_exactly(price)
        self._known = np.zeros((rows, count), np.uint64)
        self._words = np.zeros((0 if self._exact else rows, count))
        self._total = np.zeros(rows)

    def cost(self, acquired: Acquired) -> tuple[FloatArray, NDArray[np.uint64]]:
        """The price of what each row bought (n,), and what any row bought (w,)."""
        bits = np.ascontiguousarray(acquired.bits).view()
        bits.flags.writeable = False  # one kind of argument: compiled once
        union = np.zeros(bits.shape[1], np.uint64)
        if self._exact:
            _add_new(bits, self._price, self._known, self._total, union)
        else:
            _sum_words(bits, self._tables, self._known, self._words, self._total, union)
        return self._total.copy(), union


def sums_exactly(price: FloatArray) -> bool:
    """Whether all sums of these prices are exact: whole multiples of one power of two, of which
    their total has less than 2^53."""
    shift = 53 - int(np.frexp(np.sum(price))[1])
    whole = np.rint(np.ldexp(price, shift))  # in units of 2^-shift
    return bool(np.all(np.ldexp(whole, -shift) == price))


@njit(cache=True, nogil=True)
def _add_new(bits: Any, price: Any, known: Any, total: Any, union: Any) -> None:
    for i in range(len(bits)):
        cost = total[i]
        for w in range(bits.shape[1]):
            word = bits[i, w]
            union[w] |= word
            changed = word ^ known[i, w]
            known[i, w] = word
            while changed:
                last = changed & (~changed + np.uint64(1))
                sensor = 64 * w + _place(last)
                cost += price[sensor] if word & last else -price[sensor]
                changed ^= last
        total[i] = cost


@njit(cache=True, nogil=True)
def _place(bit: Any) -> Any:
    """The number of the one bit that is set: those below it, counted in parallel."""
    x = bit - np.uint64(1)
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True)
def _sum_words(bits: Any, tables: Any, known: Any, parts: Any, total: Any, union: Any) -> None:
    for i in range(len(bits)):
        changed = False
        for w in range(bits.shape[1]):
            word = bits[i, w]
            union[w] |= word
            if word != known[i, w]:
                known[i, w] = word
                changed = True
                part = 0.0
                for k in range(8):
                    part += tables[w, k, word & np.uint64(255)]
                    word >>= np.uint64(8)
                parts[i, w] = part
        if changed:
            cost = 0.0
            for w in range(bits.shape[1]):
                cost += parts[i, w]
            total[i] = cost
