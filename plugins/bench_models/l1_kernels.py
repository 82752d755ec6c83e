"""The compiled loop of the l1 path."""

# mypy: disallow-untyped-decorators=False
from bench_trees.kernels.compiling import kernel

from bench_core.arrays import FloatArray


@kernel
def descend(
    gram: FloatArray,
    left: FloatArray,
    penalty: FloatArray,
    b: FloatArray,
    sweeps: int,
    tolerance: float,
) -> None:
    """Minimise b'Gb / 2 - slope'b + sum_j penalty_j |b_j| over b (d,), starting from b, in place.
    ``left`` (d,) is slope - Gb, which changes with b.

    Cyclic coordinate descent. Sweeps over all coordinates alternate with sweeps over the non-zero
    ones, until a full sweep moves none by more than ``tolerance``. Coordinates with G_jj = 0 stay.
    """
    d = len(b)
    only_active = False
    for _ in range(sweeps):
        largest = 0.0
        for j in range(d):
            g_jj = gram[j, j]
            if g_jj <= 0.0 or (only_active and b[j] == 0.0):
                continue
            z = left[j] + g_jj * b[j]
            shrunk = abs(z) - penalty[j]
            new = 0.0 if shrunk <= 0.0 else (shrunk / g_jj if z > 0.0 else -shrunk / g_jj)
            move = new - b[j]
            if move != 0.0:
                b[j] = new
                for i in range(d):
                    left[i] -= move * gram[j, i]
                largest = max(largest, abs(move))
        if largest <= tolerance:
            if not only_active:
                return
            only_active = False
        else:
            only_active = True
