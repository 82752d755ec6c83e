"""Histograms of the leaves that may be split, and the best cut of every feature in each.

A leaf's histogram lives in a ``slot``, which the larger of two siblings takes over from the parent;
its gains and cuts live in a ``row`` of their own. After two splits, of the root and of its smaller
child::

    slot 0   ROOT, kept for the next tree          row 0   root
    slot 1   root, then its larger child           row 1   smaller child
    slot 2   smaller child, then ITS larger one    row 2   larger child
    slot 3   the smaller one of these              row 3   ...
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import Int64Array, UInt64Array
from bench_trees.binning import Bins
from bench_trees.fixed_point import FixedPoint
from bench_trees.growing_tree import Leaf, Settings, Siblings
from bench_trees.kernels.leaves import PIECE, RowOrder, accumulate, add_counts, gather
from bench_trees.kernels.packed_codes import CODES_PER_WORD, codes_of
from bench_trees.kernels.splitting import Limits, Units, best_cuts
from bench_trees.threads import Piece, Workers

CHUNK = 4  # words (of eight features) that one thread takes at a time
SMALL = 200_000  # cells below which handing work to other threads costs more than it saves
ROOT = 0
"""The slot of the root's histogram, which outlasts the tree."""


class HistogramPool:
    """Histograms by slot, gains and cuts by row; all buffers only ever grow."""

    def __init__(
        self, words: UInt64Array, bins: Bins, settings: Settings, order: RowOrder, crew: Workers
    ) -> None:
        self.words = words
        least = float(settings.min_hessian) if settings.second_order else 0.0
        self.limits = Limits(float(settings.l2), int(settings.min_rows), least)
        self.order = order
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
        self.values = np.empty(words.shape[1], np.int64)
        self.hessians = np.empty(0, np.int64)
        # (slots, channels, bins), of which feature j has first[j]:first[j + 1]
        self.hist = np.zeros((0, 1, int(self.first[-1])), np.int64)
        self.gain = np.empty((0, d))  # (rows, d), as ``best_cuts`` leaves them, like ``cut``
        self.cut = np.empty((0, d), np.int32)
        self.root_known = False  # whether slot ROOT has the histogram of all rows already

    def begin(self, fixed: FixedPoint) -> None:
        """A new tree, nothing scored."""
        self.fixed = fixed
        self.units = Units(fixed.count_bits, fixed.gradient_unit, fixed.hessian_unit)
        channels = 1 if len(fixed.hessian) == 0 else 2
        if self.hist.shape[1] != channels:
            self.hist = np.zeros((0, channels, self.hist.shape[2]), np.int64)
        if len(self.hessians) != len(fixed.hessian):
            self.hessians = np.empty(len(fixed.hessian), np.int64)
        self.slots = 1
        self.rows = 0

    def below(self, leaf: Leaf, feature: int, code: int, missing_left: bool) -> tuple[int, int]:
        """Sums, packed and of hessians, of a scored leaf's rows left of a cut."""
        first, missing = int(self.first[feature]), int(self.first[feature + 1]) - 1
        sums = self.hist[leaf.slot, :, first : first + code + 1].sum(axis=1)
        if missing_left:
            sums += self.hist[leaf.slot, :, missing]
        return int(sums[0]), int(sums[1]) if len(sums) == 2 else 0

    def score(self, pairs: Sequence[Siblings]) -> None:
        """Histograms and best cuts of all leaves of the pairs."""
        if not pairs:
            return
        for slot, (small, _) in enumerate(pairs, self.slots):
            small.slot = slot
        leaves = [leaf for pair in pairs for leaf in pair if leaf is not None]
        for row, leaf in enumerate(leaves, self.rows):
            leaf.row = row
        self._make_room(len(pairs), len(leaves))
        root = pairs[0][0] if pairs[0][1] is None else None
        if root is None:
            for small, _ in pairs:
                self._gather(small)
            values = self.values, self.hessians
            work = self._work([(s.begin, s.end, s.slot, o.slot) for s, o in pairs if o is not None])
        else:
            values = self.fixed.packed, self.fixed.hessian
            work = self._work([(0, len(self.values), ROOT, -1)])
        rows = self.order.rows
        slots = np.array([leaf.slot for leaf in leaves], dtype=np.int64)
        table = np.array([leaf.row for leaf in leaves], dtype=np.int64)

        def piece(start: int, stop: int) -> None:
            if root is None or not self.root_known:
                groups = self.groups[start:stop]
                accumulate(self.words, rows, *values, work, groups, self.first, self.hist)
            if root is not None:
                bins = self._bins(start, stop)
                self.hist[root.slot, :, bins] = self.hist[ROOT, :, bins]
            features = self.features[self.begins[start] : self.begins[stop]]
            rules = self.first, self.units, self.limits
            best_cuts(self.hist, slots, table, features, *rules, self.gain, self.cut)

        self._run(piece, int((work[:, 1] - work[:, 0]).sum()))

    def carry(
        self, counted: Mapping[int, int], moved: Sequence[tuple[int, int, int]], copies: Int64Array
    ) -> None:
        """Bring the root's histogram up to date for the next tree.

        The gradient of every copy counted in a slot grows by the step counted[slot]; that of the
        rows at the positions begin:end of ``moved`` falls by a further step (begin, end, step).
        """
        bits, scratch, total = self.fixed.count_bits, self.slots, 0
        self._make_room(1, 0)
        slots, steps = (np.array(list(of), np.int64) for of in (counted, counted.values()))
        for begin, end, step in moved:
            rows = self.order.rows[begin:end]
            to = slice(total, total + end - begin)
            self.order.spare[to] = rows
            self.values[to] = (copies[rows] * step if len(copies) else step) << bits
            total += end - begin
        work = self._work([(0, total, scratch, ROOT)])

        def piece(start: int, stop: int) -> None:
            bins = self._bins(start, stop)
            add_counts(self.hist, slots, steps, bins.start, bins.stop, bits, ROOT)
            if total:
                groups, rows = self.groups[start:stop], (self.order.spare, self.values)
                none = self.fixed.hessian
                accumulate(self.words, *rows, none, work, groups, self.first, self.hist)

        self._run(piece, total)

    def _work(self, rows: Sequence[tuple[int, int, int, int]]) -> Int64Array:
        """The ``pairs`` of ``accumulate``; rows of any leaf but the root have gaps between them."""
        n = self.words.shape[1]
        return np.array([(*row, row[1] - row[0] < n) for row in rows], np.int64)

    def _bins(self, start: int, stop: int) -> slice:
        """Where the bins of some usable words lie."""
        features = self.features[self.begins[start] : self.begins[stop]]
        return slice(int(self.first[features[0]]), int(self.first[features[-1] + 1]))

    def _gather(self, leaf: Leaf) -> None:
        def piece(start: int, stop: int) -> None:
            a, b = leaf.begin + start, leaf.begin + stop
            gather(self.fixed.packed, self.order.rows, a, b, self.values)
            if len(self.hessians):
                gather(self.fixed.hessian, self.order.rows, a, b, self.hessians)

        self.crew.run(piece, leaf.end - leaf.begin, PIECE)

    def _run(self, piece: Piece, rows: int) -> None:
        if len(self.groups):
            few = rows * len(self.features) <= SMALL
            self.crew.run(piece, len(self.groups), len(self.groups) if few else CHUNK)

    def _make_room(self, slots: int, rows: int) -> None:
        self.slots, self.rows = self.slots + slots, self.rows + rows
        self.hist = _grown(self.hist, self.slots, 0)
        self.gain = _grown(self.gain, self.rows, -np.inf)
        self.cut = _grown(self.cut, self.rows, -1)


def _grown(array: NDArray[Any], length: int, new: float) -> NDArray[Any]:
    """The array if it is as long as that, else a longer one that begins with it."""
    if len(array) >= length:
        return array
    grown = np.full((max(length, 2 * len(array)), *array.shape[1:]), new, array.dtype)
    grown[: len(array)] = array
    return grown
