"""Best cuts from tables of bins against every cut of plain rows."""

import math

import numpy as np
import pytest
from bench_trees.kernels.table_cuts import ENTROPY, SQUARES, best_cuts

BINS = 5  # the code of missing cells
LEAST = 3


def entropy(y, w):
    """Rows times their entropy in bits."""
    parts = [w[y == k].sum() for k in np.unique(y)]
    return -sum(p * math.log2(p / w.sum()) for p in parts)


def squares(y, w):
    return float((w * (y - np.average(y, weights=w)) ** 2).sum())


def best(code, y, w, spread):
    """The largest fall of the spread by a cut, with missing cells on either side."""
    gains = [0.0]
    for cut in range(BINS):
        for side in (False, True):
            left = np.where(code == BINS, side, code <= cut)
            if min(w[left].sum(), w[~left].sum()) >= LEAST:
                gains.append(spread(y, w) - spread(y[left], w[left]) - spread(y[~left], w[~left]))
    return max(gains)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("criterion", [ENTROPY, SQUARES])
def test_no_other_cut_of_a_node_is_better(criterion, missing):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, BINS, (3, 40)).astype(np.uint8)
        codes[rng.random(codes.shape) < missing] = BINS
        w = rng.integers(1, 4, 40).astype(float)
        label = (codes[0] + rng.integers(0, 3, 40)).astype(np.int32) % 3
        value = codes[1] + rng.normal(size=40)
        rows = np.flatnonzero(rng.random(40) < 0.7).astype(np.int32)
        y, spread = (label, entropy) if criterion == ENTROPY else (value, squares)
        classes, number = (3, np.zeros(0)) if criterion == ENTROPY else (2, w[rows] * value[rows])
        labels = label[rows] if criterion == ENTROPY else np.zeros(len(rows), np.int32)
        gain, cut, side = np.zeros(3), np.zeros(3, np.int64), np.zeros(3, bool)
        members = rows, labels, w[rows], number
        counts = np.full(3, BINS)
        best_cuts(codes, counts, members, criterion, classes, float(LEAST), (gain, cut, side))
        for f in range(3):
            code, y_there, w_there = codes[f, rows], y[rows], w[rows]
            assert gain[f] == pytest.approx(best(code, y_there, w_there, spread), abs=1e-9)
            if gain[f] > 0:
                left = np.where(code == BINS, side[f], code <= cut[f])
                parts = [spread(y_there[part], w_there[part]) for part in (left, ~left)]
                assert gain[f] == pytest.approx(spread(y_there, w_there) - sum(parts), abs=1e-9)
