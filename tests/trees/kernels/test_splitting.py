from __future__ import annotations

import numpy as np
import pytest
from bench_trees.kernels.splitting import Limits, Units, best_cuts

BITS = 10


def histogram(seed: int, rows: int, features: int, bins: int, channels: int) -> np.ndarray:
    """Packed sums of random rows by bin, those of the last one missing, and with two channels
    their hessians, some of which are nearly nothing; the first two features alike."""
    rng = np.random.default_rng(seed)
    gradient = rng.integers(-(2**30), 2**30, rows)
    values = [(gradient << BITS) + 1, (2.0 ** rng.uniform(0, 40, rows)).astype(np.int64)]
    out = np.zeros((channels, features, bins + 1), np.int64)
    for j in range(features):
        codes = rng.integers(0, bins + int(j % 3 == 0), rows)
        for channel in range(channels):
            np.add.at(out[channel, j], codes, values[channel])
    out[:, 1] = out[:, 0]
    return out.reshape(1, channels, -1)


@pytest.mark.parametrize("l2", [0.0, 2.5])
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-900, 2.0**400])
@pytest.mark.parametrize("channels", [1, 2])
def test_what_is_left_out_is_no_nodes_highest_gain(channels: int, l2: float, unit: float) -> None:
    """Where no split is charged; not at all where squares are too large or small."""
    left_out = 0
    for seed in range(8):
        hist = histogram(seed, 300, 30, 40, channels)
        first, pair = np.arange(0, 41 * 31, 41), np.array([[0, 300, 0, -1, 0, 0, -1]])
        found = []
        for free in (False, True):
            gain, cut = np.empty((1, 30)), np.empty((1, 30), np.int32)
            how = Units(BITS, unit, unit), Limits(l2, 5, 0.0, free)
            with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
                best_cuts(hist, pair, np.arange(30), first, *how, gain, cut)
            best = int(gain[0].argmax())
            found.append((best, gain[0, best], cut[0, best]))
            left_out += int(np.isneginf(gain).sum())
        assert found[0] == found[1]
    assert (left_out > 100) == (unit == 2.0**-30)
