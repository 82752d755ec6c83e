"""Histograms of the leaves that may be split, and the best cut of every feature in each.

A leaf's histogram lives in a ``slot``, which the larger of two siblings takes over from the parent.
After two splits, of the root and of its smaller child::

    slot 0   ROOT, kept for the next tree
    slot 1   root, then its larger child
    slot 2   smaller child, then ITS larger one
    slot 3   the smaller one of these

With hessians no root is kept, and the slots begin with the root's own.
"""

import numpy as np

from bench_trees.arrays import UInt64Array, grown
from bench_trees.binning import Bins
from bench_trees.fixed_point import FixedPoint
from bench_trees.kernels.growth import Sums
from bench_trees.kernels.packed_codes import CODES_PER_WORD, codes_of
from bench_trees.kernels.splitting import Limits
from bench_trees.kernels.tree import KNOWN, Carried
from bench_trees.settings import Settings

FEATURES, PER_BIN = 256, 10
"""Histograms are not kept with at least so many features and at most so many rows for each bin."""


class HistogramPool:
    """Histograms by slot, gains and cuts by node; all buffers only ever grow."""

    def __init__(self, words: UInt64Array, bins: Bins, settings: Settings) -> None:
        least = float(settings.min_hessian) if settings.second_order else 0.0
        self.limits = Limits(float(settings.l2), int(settings.min_rows), least)
        d, counts = bins.features, bins.counts
        self.first = np.concatenate([[0], np.cumsum(counts + 1)])
        # columns of one value cannot be split (NaN beside it can)
        usable = counts > 1
        for j in np.flatnonzero(~usable):
            usable[j] = bool(codes_of(words, int(j)).any())
        self.features = np.flatnonzero(usable)
        word = self.features // CODES_PER_WORD
        self.groups = np.unique(word)
        self.begins = np.searchsorted(word, np.append(self.groups, len(words)))
        rows_per_bin = words.shape[1] * d / max(1, int(self.first[-1]))
        self.few_rows = d >= FEATURES and rows_per_bin <= PER_BIN
        # those of smaller children, in leaf order
        self.values = np.empty((words.shape[1], 1), np.int64)
        # (slots, channels, bins), of which feature j has first[j]:first[j + 1]
        self.hist = np.zeros((0, 1, int(self.first[-1])), np.int64)
        self.gain = np.empty((0, d))  # (nodes, d), where ``best_cuts`` was, like ``cut``
        self.cut = np.empty((0, d), np.int32)
        self.reached = np.empty(0)  # (nodes,), as ``best_cuts`` uses it
        self.carried = Carried(np.zeros(3, np.int64), np.empty((0, 2), np.int64))

    def begin(self, fixed: FixedPoint) -> None:
        """Room for a new tree's root."""
        self.fixed = fixed
        channels = fixed.values.shape[1]
        if self.hist.shape[1] != channels:
            self.hist = np.zeros((0, channels, self.hist.shape[2]), np.int64)
            self.values = np.empty(fixed.values.shape, np.int64)
        self.reserve(2, 0)

    def sums(self) -> Sums:
        """The histograms, as growth reads them."""
        return Sums(self.hist, self.first, self.fixed.count_bits, self.fixed.units)

    def reserve(self, slots: int, nodes: int) -> None:
        """Room for so many slots, and for the gains of so many nodes."""
        self.carried = self.carried._replace(counted=grown(self.carried.counted, nodes))
        self.hist = grown(self.hist, slots)
        self.gain = grown(self.gain, nodes)
        self.cut = grown(self.cut, nodes)
        self.reached = grown(self.reached, nodes)

    def count_root(self) -> None:
        """The next root's histogram has nothing to do with the last one's."""
        self.carried.state[KNOWN] = False
