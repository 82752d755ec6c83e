"""Compiled costs of one block of rows at consecutive operating points.

Rows buy few new sensors from point to point, so only new purchases are priced. If a row drops a
sensor, its sum is computed again: subtraction would keep the rounding error of a larger sum.
"""

from typing import Any

import numpy as np
from numba import njit

from bench_core.arrays import FloatArray
from bench_core.costs.model import Acquired, words


class Meter:
    """Sum prices (s,) of the sensors that rows buy at consecutive points, and count the buyers.

    ``copies`` (n,) is the multiplicity of each row.
    """

    def __init__(self, price: FloatArray, copies: FloatArray) -> None:
        width = words(len(price))
        self._copies = np.array(copies, dtype=np.float64)
        self._price = np.zeros(64 * width)
        self._price[: len(price)] = price
        self._known = np.zeros((len(copies), width), np.uint64)  # bought at the previous point
        self._total = np.zeros(len(copies))  # its price
        self._buyers = np.zeros(64 * width)
        self._sensors = len(price)

    def cost(self, acquired: Acquired) -> tuple[FloatArray, FloatArray]:
        """Return the cost of each row (n,), and the number of copies that buy each sensor (s,)."""
        bits = np.ascontiguousarray(acquired.bits).view()
        bits.flags.writeable = False  # one argument type: compiled once
        _charge(bits, self._price, self._known, self._total, self._copies, self._buyers)
        return self._total.copy(), self._buyers[: self._sensors].copy()


@njit(cache=True, nogil=True)
def _charge(bits: Any, price: Any, before: Any, total: Any, copies: Any, buyers: Any) -> None:
    for i in range(len(bits)):
        returned = False
        for w in range(bits.shape[1]):
            word = bits[i, w]
            changed = word ^ before[i, w]  # bought or dropped since
            before[i, w] = word
            while changed:
                last = changed & (~changed + np.uint64(1))  # the lowest set bit
                sensor = 64 * w + _place(last)
                if word & last:
                    total[i] += price[sensor]
                    buyers[sensor] += copies[i]
                else:
                    returned = True
                    buyers[sensor] -= copies[i]
                changed ^= last
        if returned:
            total[i] = 0.0
            for w in range(bits.shape[1]):
                word = bits[i, w]
                while word:
                    last = word & (~word + np.uint64(1))
                    total[i] += price[64 * w + _place(last)]
                    word ^= last


@njit(cache=True, nogil=True)
def count_steps(order: Any, first: int, copies: Any, counts: Any) -> None:
    """Add to row 0 of ``counts`` (1 + t, s) the sum over copies of each sensor's purchase step,
    ``order`` (n, s) + ``first``; to rows 1 to t the copies that buy it in that step."""
    for i in range(len(order)):
        for j in range(order.shape[1]):
            step = order[i, j] + first
            if order[i, j] >= 0 and step > 0:
                counts[0, j] += step * copies[i]
                if step < len(counts):
                    counts[step, j] += copies[i]


@njit(cache=True, nogil=True)
def _place(bit: Any) -> Any:
    """Index of the single set bit: the number of lower bits, counted in parallel."""
    x = bit - np.uint64(1)
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))
