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

from bench_trees.arrays import Int64Array, UInt32Array, UInt64Array, grown
from bench_trees.binning import Bins
from bench_trees.fixed_point import FixedPoint
from bench_trees.growing_tree import Settings
from bench_trees.kernels.few_rows import Leaves, candidates
from bench_trees.kernels.growth import COUNT, SLOT, Sums
from bench_trees.kernels.packed_codes import CODES_PER_WORD, codes_of
from bench_trees.kernels.pieces import KNOWN, Carried
from bench_trees.kernels.splitting import Limits, Owed, Units, best_cuts
from bench_trees.threads import Workers

FEATURES, PER_BIN = 2000, 10
"""From so many features on, with at most so many rows per bin, histograms are not kept."""


class HistogramPool:
    """Histograms by slot, gains and cuts by node; all buffers only ever grow."""

    def __init__(
        self,
        words: UInt64Array,
        bins: Bins,
        settings: Settings,
        rows: UInt32Array,
        crew: Workers,
    ) -> None:
        self.words = words
        least = float(settings.min_hessian) if settings.second_order else 0.0
        self.limits = Limits(float(settings.l2), int(settings.min_rows), least)
        self.rows = rows  # in leaf order
        self.crew = crew
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
        n, wide = words.shape[1], len(self.features) >= FEATURES
        self.few_rows = wide and n * d <= PER_BIN * int(self.first[-1])
        self.values = np.empty((n, 1), np.int64)  # those of smaller children, in leaf order
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

    def search(self, work: Int64Array, table: Int64Array, owed: Owed) -> None:
        """Best cuts of the nodes of ``work``, as ``score_words`` reads it, from their own rows;
        ``table`` has all nodes."""
        nodes = work[:, 5:7]
        self._search(nodes[nodes >= 0], self.features, self.groups, table, owed)

    def cut_anew(
        self, nodes: Int64Array, features: Int64Array, table: Int64Array, owed: Owed
    ) -> None:
        """Best cuts of these features at nodes that were scored."""
        if self.few_rows:
            groups = np.unique(features // CODES_PER_WORD)
            self._search(nodes, features, groups, table, owed)
        else:
            self._cut(_singly(nodes, table), features, owed)

    def _search(
        self,
        nodes: Int64Array,
        features: Int64Array,
        groups: Int64Array,
        table: Int64Array,
        owed: Owed,
    ) -> None:
        """Best cuts of these features, in these words, from the nodes' own rows."""
        asked = np.zeros(len(self.first) - 1, np.bool_)
        asked[features] = True
        charges = owed.coupled + np.outer(table[nodes, COUNT], owed.split)  # eq. 13
        charges += owed.lazy[nodes] if len(owed.lazy) else 0.0
        charges[:, ~asked] = np.inf
        rows, work = self.rows, _singly(nodes, table)
        some = Leaves(nodes, table, rows, self.fixed.values[rows])

        def piece(start: int, stop: int) -> None:
            found = np.empty((len(nodes), CODES_PER_WORD * (stop - start)), np.int64)
            counts, rules = np.zeros(len(nodes), np.int64), (self.sums(), self.limits, charges)
            candidates(self.words, some, groups[start:stop], *rules, self.gain, found, counts)
            for i, count in enumerate(counts.tolist()):
                self._cut(work[i : i + 1], found[i, :count], owed)

        if len(groups):
            self.crew.run(piece, len(groups), -(-len(groups) // self.crew.threads))

    def _cut(self, work: Int64Array, features: Int64Array, owed: Owed) -> None:
        """Best cuts of these features where there are histograms."""
        units = Units(self.fixed.count_bits, *self.fixed.units.tolist())
        rules = self.first, units, self.limits, owed
        reached = np.full(len(self.gain), -np.inf)
        best_cuts(self.hist, work, features, *rules, self.gain, self.cut, reached)

    def count_root(self) -> None:
        """The next root's histogram has nothing to do with the last one's."""
        self.carried.state[KNOWN] = False


def _singly(nodes: Int64Array, table: Int64Array) -> Int64Array:
    """Each node by itself, as ``best_cuts`` reads it."""
    work = np.full((len(nodes), 7), -1)
    work[:, 2], work[:, 5] = table[nodes, SLOT], nodes
    return work
