"""What the rows of one block pay and buy at one operating point after the other.

Along a path a row buys little that is new, so only what changed is priced: a compiled pass that
agrees bit for bit with ``Acquired.cost``. Where float64 sums of the prices are exact in any order
(prices 1, 5, 20 ...), the price of each new sensor is added; else the changed words of 64 sensors
are summed again in the order of ``Acquired.cost``.
"""

from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import FloatArray
from bench_core.costs.acquired import Acquired, byte_sums


class Meter:
    """Prices the sensors (s,) that rows buy at consecutive points, and counts who buys them.

    ``copies`` (n,) says how many rows each row stands for.
    """

    def __init__(self, price: FloatArray, copies: FloatArray) -> None:
        rows = len(copies)
        self._copies = np.ascontiguousarray(copies, dtype=np.float64).view()
        self._copies.flags.writeable = False
        self._tables = byte_sums(price)
        count = len(self._tables)
        self._price = np.zeros(64 * count)
        self._price[: len(price)] = price
        self._exact = sums_exactly(price)
        self._known = np.zeros((rows, count), np.uint64)
        self._words = np.zeros((0 if self._exact else rows, count))
        self._total = np.zeros(rows)
        self._buyers = np.zeros(64 * count)
        self._sensors = len(price)

    def cost(self, acquired: Acquired) -> tuple[FloatArray, FloatArray]:
        """The price of what each row bought (n,), and how many copies bought each sensor (s,)."""
        bits = np.ascontiguousarray(acquired.bits).view()
        bits.flags.writeable = False  # one kind of argument: compiled once
        who = self._copies, self._buyers
        if self._exact:
            _add_new(bits, self._price, self._known, self._total, *who)
        else:
            _sum_words(bits, self._tables, self._known, self._words, self._total, *who)
        return self._total.copy(), self._buyers[: self._sensors].copy()


def buyers(acquired: Acquired, copies: FloatArray) -> FloatArray:
    """How many copies bought each sensor (s,), of many rows."""
    found = np.zeros(64 * acquired.bits.shape[1])
    bits = np.ascontiguousarray(acquired.bits)
    if len(bits) == len(copies):
        _count(bits, np.ascontiguousarray(copies, dtype=np.float64), found)
    else:  # one row of bits for all
        _count(bits, np.full(1, float(copies.sum())), found)
    return found[: acquired.sensors]


def sums_exactly(price: FloatArray) -> bool:
    """Whether all sums of these prices are exact: whole multiples of one power of two, of which
    their total has less than 2^53."""
    shift = 53 - int(np.frexp(np.sum(price))[1])
    whole = np.rint(np.ldexp(price, shift))  # in units of 2^-shift
    return bool(np.all(np.ldexp(whole, -shift) == price))


@njit(cache=True, nogil=True)
def _count(bits: Any, copies: Any, buyers: Any) -> None:
    for i in range(len(bits)):
        for w in range(bits.shape[1]):
            word = bits[i, w]
            while word:
                last = word & (~word + np.uint64(1))
                buyers[64 * w + _place(last)] += copies[i]
                word ^= last


@njit(cache=True, nogil=True)
def _add_new(bits: Any, price: Any, known: Any, total: Any, copies: Any, buyers: Any) -> None:
    for i in range(len(bits)):
        cost = total[i]
        for w in range(bits.shape[1]):
            word = bits[i, w]
            changed = word ^ known[i, w]
            known[i, w] = word
            while changed:
                last = changed & (~changed + np.uint64(1))
                sensor = 64 * w + _place(last)
                new = word & last != 0
                cost += price[sensor] if new else -price[sensor]
                buyers[sensor] += copies[i] if new else -copies[i]
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
def _sum_words(
    bits: Any, tables: Any, known: Any, parts: Any, total: Any, copies: Any, buyers: Any
) -> None:
    for i in range(len(bits)):
        changed = False
        for w in range(bits.shape[1]):
            word = bits[i, w]
            other = word ^ known[i, w]
            if other:
                known[i, w] = word
                changed = True
                while other:
                    last = other & (~other + np.uint64(1))
                    buyers[64 * w + _place(last)] += copies[i] if word & last else -copies[i]
                    other ^= last
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
