"""Points of the Sobol sequence without scrambling, as ``scipy.stats.qmc.Sobol`` gives them bit for
bit, without importing ``scipy.stats``: that takes longer than planning hundreds of trials.

Direction numbers: Joe and Kuo (2008), "Constructing Sobol sequences with better two-dimensional
projections", file new-joe-kuo-6. Order of points: Gray code (Antonov and Saleev, 1979).
"""

import numpy as np

from bench_core.arrays import FloatArray

_BITS = 30  # of a coordinate, as in scipy

# by dimension: a primitive polynomial, its coefficients as bits, and the first numbers m
_DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (1, ()),
    (3, (1,)),
    (7, (1, 3)),
    (11, (1, 3, 1)),
    (13, (1, 1, 1)),
    (19, (1, 1, 3, 3)),
    (25, (1, 3, 5, 13)),
    (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)),
    (47, (1, 1, 7, 11, 19)),
    (55, (1, 1, 5, 1, 1)),
    (59, (1, 1, 1, 3, 11)),
    (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)),
    (91, (1, 1, 1, 15, 21, 21)),
    (97, (1, 3, 1, 13, 27, 49)),
)


def sobol(dimensions: int, count: int) -> FloatArray:
    """The ``count`` points (count, dimensions) that follow the first, which is 0."""
    if dimensions > len(_DIRECTIONS):
        from scipy.stats.qmc import Sobol

        further: FloatArray = Sobol(dimensions, scramble=False).fast_forward(1).random(count)
        return further
    numbers = np.arange(1, count + 1)
    gray = numbers ^ numbers >> 1
    points = np.zeros((count, dimensions), np.int64)
    for column, (polynomial, first) in enumerate(_DIRECTIONS[:dimensions]):
        for bit, direction in enumerate(_directions(polynomial, first, count.bit_length())):
            points[:, column] ^= direction * (gray >> bit & 1)
    return np.ldexp(points.astype(np.float64), -_BITS)


def _directions(polynomial: int, first: tuple[int, ...], count: int) -> list[int]:
    """Direction numbers of one dimension (Joe and Kuo, 2008, eq. 2), as integers of ``_BITS``."""
    degree = len(first)
    m = list(first) or [1] * count
    while len(m) < count:
        new = m[-degree]
        for i in range(1, degree + 1):
            new ^= m[-i] << i if polynomial >> (degree - i) & 1 else 0
        m.append(new)
    return [number << (_BITS - 1 - bit) for bit, number in enumerate(m[:count])]
