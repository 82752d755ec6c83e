"""Operating points of one gate: the paper's threshold 0, and thresholds that send given shares."""

from __future__ import annotations

import numpy as np

from bench_core.arrays import FloatArray


def thresholds(
    g: FloatArray, share: FloatArray, count: int, *, zero: bool = True
) -> list[tuple[float, float]]:
    """(threshold, share of rows with a higher g) by rising share, for gate scores ``g`` (n,).

    With ``zero`` threshold 0 is among them; ``count`` others send as near as possible to 1, 2, ...
    of ``count + 1`` equal shares, each halfway between two neighbouring scores. Equal ways to cut
    the rows are listed once, and one that sends all rows is left out.
    """
    values, place = np.unique(g, return_inverse=True)
    mass = np.bincount(place, share, minlength=len(values))
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # share of rows from value k on
    by_cut: dict[int, tuple[float, float]] = {}
    for k in range(count):
        wanted = (k + 1) / (count + 1)
        cut = int(np.argmin(np.abs(above - wanted)))
        if 0 < cut < len(values):
            by_cut[cut] = (_between(values[cut - 1], values[cut]), _share(above[cut]))
    if zero:
        cut = int(np.searchsorted(values, 0.0, side="right"))
        by_cut[cut] = (0.0, _share(above[cut]))
    by_cut.pop(0, None)
    by_share = {sent: (threshold, sent) for threshold, sent in by_cut.values()}
    return [by_share[sent] for sent in sorted(by_share)]


def _between(low: float, high: float) -> float:
    middle = float(low + (high - low) / 2)
    return middle if low <= middle < high else float(low)


def _share(value: float) -> float:
    return round(float(value), 6)
