"""Gradients and their sums as integers: fixed point.

A row's gradient and multiplicity share ONE 64-bit integer, so a row costs one add per feature::

    bit  63 ........................ count_bits ........ 0
         m * round(g * 2^gradient_exp)       |  m

Integer sums are associative. The result thus has the same bits for any number of threads. A parent
minus its smaller child is exactly the other child. Hessians that differ between rows use a second
integer, round(h * 2^hessian_exp).

Resolution: ``count_bits`` holds the sum of multiplicities N; the remaining 62 - count_bits bits (at
most 52) hold the largest possible sum of gradients, S = sum m |g|. A gradient is rounded by at most
S 2^(count_bits - 62): with 100000 rows about 2^-28 of the mean gradient, with 4 million 2^-17.
Scales are powers of two, so gradients that are short binary fractions stay exact.

Residuals of squared loss are exact from tree to tree: leaf values (learning rate included) are
rounded to multiples of the unit, so they ARE the model. Gradients g = f - y stay integers. The next
tree's root histogram follows exactly from the last one: every copy in a leaf of value v adds v to
its bins. The leaf's histogram holds its copies in each bin.

S is at most sqrt(N sum m g^2), and no tree raises that sum of squares: a leaf's step is at most its
mean (learning rate <= 1), and rounding keeps it within twice the mean. So sums can never overflow.
The unit becomes finer (with one full count of the root) when the sum allows it::

    N (with multiplicity)             1000   10^4   10^5   10^6   10^7
    bits of a sum                       52     48     45     42     38
    unit / root mean square, at most  2^-41  2^-33  2^-27  2^-21  2^-13

A label is rounded by half a unit once: the integers at a finer unit are the labels rounded there,
plus the steps taken. A leaf value is rounded by half a unit.
"""

import math

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array

SUM_BITS = 52  # every sum converts to float64 exactly
LARGEST = 2.0**62  # single labels stay below it in units, fitted outliers included


def bits_for(total: int) -> int:
    """Bits that hold counts. Raises ValueError for more than 2^31 - 1 rows."""
    if total >= 1 << 31:
        raise ValueError(f"{total} rows (with multiplicity) are more than 2^31 - 1")
    return int(total).bit_length()


def sum_bits(count_bits: int) -> int:
    """Bits left for a sum of gradients."""
    return min(62 - count_bits, SUM_BITS)


def room(bits: int, total: int) -> float:
    """The largest sum in ``bits`` bits: rounding adds at most 1/2 per copy."""
    return max(2.0**bits - total, 2.0 ** (bits - 1))


class Residuals:
    """Gradients f - y of rows (n,) in fixed point; f begins as the constant ``base``."""

    def __init__(self, y: Float64Array, base: float, copies: Int64Array, total: int) -> None:
        self.copies = copies  # (n,) the multiplicity, or (0,) where all are 1
        self.total = total
        self.start = base - y
        self.most = float(np.abs(self.start).max())
        self.count_bits = bits_for(total)
        self.exponent = 0
        if self.most > 0:
            self.squares = self._weighed((self.start / self.most) ** 2)
            self.exponent = self._finest()
        self._take(self._rounded(self.exponent))

    @property
    def unit(self) -> float:
        """The unit of integer gradients."""
        return float(self.units[0])

    @property
    def share(self) -> float:
        """Share of a squared unit in ``squares``."""
        return (self.unit / self.most) ** 2 if self.most > 0 else 0.0

    @property
    def least(self) -> float:
        """Value of ``squares`` above which no finer unit has room."""
        if self.most == 0 or self.exponent >= self._single():
            return -math.inf
        bound = self._room() - math.log2(self.most) - self.exponent - 1
        return math.exp2(2 * bound + 1e-6) / self.total

    def refine(self) -> bool:
        """Change to a finer unit if there is room; return True if changed."""
        if self.squares <= 0 or self._finest() <= self.exponent:
            return False
        g = self.packed >> self.count_bits
        if len(self.copies):
            g //= self.copies
        self.squares = self._sum_of_squares(g)  # without the rounding of many small changes
        finer = self._finest() if self.squares > 0 else 0
        if finer <= self.exponent:
            return False
        g -= self._rounded(self.exponent)  # the steps so far
        g <<= finer - self.exponent
        g += self._rounded(finer)
        self.exponent = finer
        self._take(g)
        return True

    def _finest(self) -> int:
        """The finest unit, as a power of 1/2, in which no sum can overflow."""
        bound = math.log2(self.most) + math.log2(self.total * self.squares) / 2
        exponent = math.floor(self._room() - bound - 1e-9)
        return min(max(min(exponent, self._single()), -1000), 1000)

    def _room(self) -> float:
        """The logarithm of the largest sum."""
        return math.log2(room(sum_bits(self.count_bits), self.total))

    def _single(self) -> int:
        """The finest unit in which no single label can overflow, as a power of 1/2."""
        return math.floor(math.log2(LARGEST) - math.log2(self.most)) - 1

    def _rounded(self, exponent: int) -> Int64Array:
        return np.rint(np.ldexp(self.start, exponent)).astype(np.int64)

    def _sum_of_squares(self, g: Int64Array) -> float:
        """The sum of squares in units of ``most`` squared."""
        if self.most == 0:
            return 0.0
        return self._weighed((np.ldexp(g.astype(np.float64), -self.exponent) / self.most) ** 2)

    def _weighed(self, values: Float64Array) -> float:
        # not @: the last bit of BLAS's sums depends on the processor and the number of threads
        return float((values * self.copies if len(self.copies) else values).sum())

    def _take(self, g: Int64Array) -> None:
        self.squares = self._sum_of_squares(g)
        g <<= self.count_bits
        g += 1
        if len(self.copies):
            g *= self.copies
        self.values = g.reshape(-1, 1)
        self.units = np.array([2.0**-self.exponent, 1.0])  # of gradients and hessians

    @property
    def packed(self) -> Int64Array:
        """Gradients of all rows (n,) at the current scores."""
        return self.values[:, 0]
