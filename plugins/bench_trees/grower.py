"""Growing one tree at a time under a penalty.

Plain Python decides, kernels count. Every open leaf keeps the RAW gain of its best cut per feature;
what is owed is subtracted when a choice is made, from what has been bought by then. So a sensor
bought in one leaf is at once refunded in all others, and nothing is ever added to a stored gain.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bench_trees.binning import Bins
from bench_trees.histogram import FixedPoint, accumulate, to_fixed_point
from bench_trees.payments import count_unpaid, mark_paid
from bench_trees.penalties import Ledger
from bench_trees.settings import Settings
from bench_trees.splitting import best_cuts
from bench_trees.threads import Workers

CHUNK = 32  # features that one thread takes at a time
SMALL = 200_000  # cells below which handing work to other threads costs more than it saves
ROUNDING = 1e-12
"""A raw gain below this share of the node's own score is rounding, not gain."""

FloatArray = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Leaf:
    """An open leaf: rows at positions begin:end of the leaf order.

    ``path`` numbers the leaf within its level, left to right. ``slot`` holds its histogram and
    ``row`` its gains, -1 before they are computed. ``unpaid`` (s,) is None where nothing is lazy.
    ``best`` is its highest net gain and feature, None if unknown or stale after a purchase.
    """

    node: int
    depth: int
    path: int
    begin: int
    end: int
    count: int
    floor: float
    unpaid: NDArray[np.int64] | None
    slot: int = -1
    row: int = -1
    best: tuple[float, int] | None = None


@dataclass(slots=True, eq=False)
class Pair:
    """Siblings (or a root alone) whose histograms are still to be built."""

    small: Leaf
    large: Leaf | None
    slot: int  # where the parent's histogram is


@dataclass(slots=True, eq=False)
class GrownTree:
    """A tree in lists, children by their number in the tree, and its leaves' rows.

    ``leaves``: (node, rows) with rows uint32, valid until the next tree is grown.
    """

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    leaves: list[tuple[int, NDArray[np.uint32]]] = field(default_factory=list)

    def add_node(self) -> int:
        """A new leaf's number."""
        self.feature.append(-1)
        self.threshold.append(0.0)
        self.left.append(-1)
        self.right.append(-1)
        self.missing_left.append(False)
        self.value.append(0.0)
        return len(self.feature) - 1


class Grower:
    """Grows trees on the same rows, charging one ledger.

    ``codes`` uint8 (d, n); ``multiplicity`` int64 (n,) or None. All buffers are made once.
    """

    def __init__(
        self,
        codes: NDArray[np.uint8],
        bins: Bins,
        settings: Settings,
        ledger: Ledger,
        multiplicity: NDArray[np.int64] | None,
        crew: Workers,
    ) -> None:
        self.codes = codes
        self.bins = bins
        self.settings = settings
        self.ledger = ledger
        self.multiplicity = multiplicity
        self.crew = crew
        d, n = codes.shape
        self.total = n if multiplicity is None else int(multiplicity.sum())
        self.lazy = bool(ledger.penalty.lazy.any())
        self.copies = np.empty(0, np.int64) if multiplicity is None else multiplicity
        self.first = np.concatenate([[0], np.cumsum(bins.counts + 1)]).astype(np.int64)
        # columns of one value cannot be split (NaN beside it can)
        usable = [j for j in range(d) if bins.counts[j] > 1 or bool(codes[j].any())]
        self.features = np.array(usable, dtype=np.int64)
        self.order = np.empty(n, np.uint32)
        self.spare = np.empty(n, np.uint32)
        self.spare_packed = np.empty(n, np.int64)
        self.spare_hessian = np.empty(0, np.int64)
        self.hist = np.empty((0, 1, int(self.first[-1])), np.int64)
        self.gain = np.empty((0, d))
        self.cut = np.empty((0, d), np.int32)

    def grow(self, gradient: FloatArray, hessian: FloatArray | None) -> GrownTree | None:
        """One tree fitted to -gradient (n,) per copy, or None if the root is not split.

        ``hessian`` (n,) per copy, None where it is 1. Leaf values are Newton steps, computed
        from float64 sums, without the learning rate.
        """
        self._begin(gradient, hessian)
        limit = self.settings.max_leaves or self.codes.shape[1]
        while len(self.tree.leaves) + len(self.open) < limit:
            choice = self._choose()
            if choice is None:
                break
            self._split(*choice)
        if len(self.tree.feature) == 1:
            return None
        for feature in self.deferred:
            self.ledger.buy(feature)
        self._finish(gradient, hessian)
        return self.tree

    def _begin(self, gradient: FloatArray, hessian: FloatArray | None) -> None:
        n = len(gradient)
        fixed = to_fixed_point(gradient, hessian, self.multiplicity, self.total)
        self.fixed: FixedPoint = fixed
        channels = 1 if hessian is None else 2
        if self.hist.shape[1] != channels:
            self.hist = np.empty((0, channels, self.hist.shape[2]), np.int64)
        if hessian is not None and len(self.spare_hessian) != n:
            self.spare_hessian = np.empty(n, np.int64)
        self.order[:] = np.arange(n, dtype=np.uint32)
        self.tree = GrownTree()
        self.open: list[Leaf] = []
        self.pending: list[Pair] = []
        self.deferred: list[int] = []
        self.free_slots: list[int] = []
        self.slots = 0
        self.rows = 0
        self.coupled_owed = self.ledger.coupled_owed()
        root = self._leaf(0, 0, 0, n)
        root.unpaid = self.ledger.unpaid.copy() if self.lazy else None
        if self.settings.max_depth != 0:
            self._open(root)
            self.pending.append(Pair(root, None, -1))
        else:
            self._close(root)

    def _leaf(self, depth: int, path: int, begin: int, end: int) -> Leaf:
        packed = int(self.fixed.packed[begin:end].sum())
        count = packed & ((1 << self.fixed.count_bits) - 1)
        g = (packed >> self.fixed.count_bits) * self.fixed.gradient_unit
        if len(self.fixed.hessian):
            h = float(self.fixed.hessian[begin:end].sum()) * self.fixed.hessian_unit
        else:
            h = float(count)
        h += self.settings.l2
        floor = ROUNDING * g * g / h if h > 0 else 0.0
        return Leaf(self.tree.add_node(), depth, path, begin, end, count, floor, None)

    def _open(self, leaf: Leaf) -> None:
        """Keep the open leaves in order: by level and place, or by age."""
        self.open.append(leaf)
        if self.settings.order == "level":
            self.open.sort(key=lambda one: (one.depth, one.path))

    def _close(self, leaf: Leaf) -> None:
        self.tree.leaves.append((leaf.node, self.order[leaf.begin : leaf.end]))

    # choosing

    def _choose(self) -> tuple[Leaf, int] | None:
        """The leaf and feature to split next, or None."""
        if self.settings.order == "level":
            return self._first_worthwhile()
        self._score(self.pending)
        best, choice = -np.inf, None
        for leaf in self.open:
            net, feature = self._best_feature(leaf)
            if net > best:
                best, choice = net, (leaf, feature)
        return choice

    def _first_worthwhile(self) -> tuple[Leaf, int] | None:
        for leaf in self.open:
            if leaf.row < 0:
                self._score([p for p in self.pending if p.small.depth == leaf.depth])
            net, feature = self._best_feature(leaf)
            if net > -np.inf:
                return leaf, feature
        return None

    def _best_feature(self, leaf: Leaf) -> tuple[float, int]:
        """Highest net gain that may be taken, -inf if none, and its lowest feature."""
        if leaf.best is not None:
            return leaf.best
        raw = self.gain[leaf.row]
        net = raw - self._owed(leaf)
        if self.settings.charge == "tree":
            net[raw <= leaf.floor] = -np.inf
        feature = int(np.argmax(net))
        best = float(net[feature])
        always = self.settings.stop == "raw" or self.settings.charge == "node"
        leaf.best = (best, feature) if always or best > 0 else (-np.inf, feature)
        return leaf.best

    def _owed(self, leaf: Leaf) -> FloatArray:
        """What a split of the leaf is charged, per feature: (coupled + lazy) + split."""
        owed = self.coupled_owed
        if leaf.unpaid is not None:
            owed = owed + self.ledger.lazy_owed(leaf.unpaid)
        return owed + self.ledger.penalty.split * leaf.count

    # splitting

    def _split(self, leaf: Leaf, feature: int) -> None:
        cut = int(self.cut[leaf.row, feature])
        code, missing_left = cut // 2, bool(cut % 2)
        middle = partition(
            self.codes[feature],
            int(self.bins.counts[feature]),
            code,
            missing_left,
            leaf.begin,
            leaf.end,
            self.order,
            self.fixed.packed,
            self.fixed.hessian,
            self.spare,
            self.spare_packed,
            self.spare_hessian,
        )
        self._buy(leaf, feature)
        left = self._leaf(leaf.depth + 1, 2 * leaf.path, leaf.begin, middle)
        right = self._leaf(leaf.depth + 1, 2 * leaf.path + 1, middle, leaf.end)
        self.tree.feature[leaf.node] = feature
        self.tree.threshold[leaf.node] = self.bins.threshold(feature, code)
        self.tree.missing_left[leaf.node] = missing_left
        self.tree.left[leaf.node] = left.node
        self.tree.right[leaf.node] = right.node
        self.open.remove(leaf)
        smaller = left.end - left.begin <= right.end - right.begin
        small, large = (left, right) if smaller else (right, left)
        if leaf.unpaid is not None:
            self._count_unpaid(leaf.unpaid, leaf.count, small, large)
        if left.depth == self.settings.max_depth:
            self._close(left)
            self._close(right)
            self.free_slots.append(leaf.slot)
        else:
            self._open(left)
            self._open(right)
            self.pending.append(Pair(small, large, leaf.slot))

    def _buy(self, leaf: Leaf, feature: int) -> None:
        if self.settings.charge == "node":
            self.deferred.append(feature)
        elif self.ledger.buy(feature):
            self.coupled_owed = self.ledger.coupled_owed()
            for other in self.open:
                other.best = None
        if leaf.unpaid is None:
            return
        sensors = self.ledger.penalty.of(feature)
        owing = sensors[(leaf.unpaid[sensors] > 0) & (self.ledger.penalty.lazy[sensors] > 0)]
        if len(owing):
            mark_paid(self.ledger.paid, owing.astype(np.int64), self.order[leaf.begin : leaf.end])
            self.ledger.unpaid[owing] -= leaf.unpaid[owing]
            leaf.unpaid[owing] = 0

    def _count_unpaid(
        self, parent: NDArray[np.int64], count: int, small: Leaf, large: Leaf
    ) -> None:
        """Counters of both children from the parent's; only mixed sensors need a scan."""
        own = np.where(parent == count, small.count, 0)
        mixed = np.flatnonzero((parent > 0) & (parent < count) & (self.ledger.penalty.lazy > 0))
        if len(mixed):
            rows = self.order[small.begin : small.end]

            def piece(start: int, stop: int) -> None:
                count_unpaid(self.ledger.paid, mixed[start:stop], rows, self.copies, own)

            cells = len(mixed) * len(rows)
            self.crew.run(piece, len(mixed), CHUNK if cells > SMALL else len(mixed))
        small.unpaid = own
        large.unpaid = parent - own

    # histograms

    def _score(self, pairs: list[Pair]) -> None:
        """Histograms and best cuts of all leaves of the pairs."""
        if not pairs:
            return
        leaves: list[Leaf] = []
        for pair in pairs:
            pair.small.slot = self._new_slot()
            leaves.append(pair.small)
            if pair.large is not None:
                pair.large.slot = pair.slot
                leaves.append(pair.large)
        for leaf in leaves:
            leaf.row = self.rows
            self.rows += 1
        self._make_room()
        work = np.array(
            [
                (p.small.begin, p.small.end, p.small.slot, p.large.slot if p.large else -1)
                for p in pairs
            ],
            dtype=np.int64,
        )
        slots = np.array([leaf.slot for leaf in leaves], dtype=np.int64)
        table = np.array([leaf.row for leaf in leaves], dtype=np.int64)
        fixed, s = self.fixed, self.settings

        def piece(start: int, stop: int) -> None:
            some = self.features[start:stop]
            accumulate(
                self.codes,
                self.order,
                fixed.packed,
                fixed.hessian,
                work,
                some,
                self.first,
                self.hist,
            )
            best_cuts(
                self.hist,
                slots,
                table,
                some,
                self.first,
                fixed.count_bits,
                fixed.gradient_unit,
                fixed.hessian_unit,
                float(s.l2),  # kernels are compiled for float: 0 must not be an int here
                int(s.min_rows),
                float(s.min_hessian) if s.second_order else 0.0,
                self.gain,
                self.cut,
            )

        cells = int((work[:, 1] - work[:, 0]).sum()) * len(self.features)
        if len(self.features):
            self.crew.run(piece, len(self.features), CHUNK if cells > SMALL else len(self.features))
        self.pending = [p for p in self.pending if p.small.row < 0]

    def _new_slot(self) -> int:
        if self.free_slots:
            return self.free_slots.pop()
        self.slots += 1
        return self.slots - 1

    def _make_room(self) -> None:
        """Buffers for all slots and rows handed out; they only ever grow."""
        if len(self.hist) < self.slots:
            grown = np.empty((max(self.slots, 2 * len(self.hist)), *self.hist.shape[1:]), np.int64)
            grown[: len(self.hist)] = self.hist
            self.hist = grown
        if len(self.gain) < self.rows:
            size = max(self.rows, 2 * len(self.gain))
            gain = np.full((size, self.gain.shape[1]), -np.inf)
            gain[: len(self.gain)] = self.gain
            cut = np.full(gain.shape, -1, np.int32)
            cut[: len(self.cut)] = self.cut
            self.gain, self.cut = gain, cut

    # leaf values

    def _finish(self, gradient: FloatArray, hessian: FloatArray | None) -> None:
        for leaf in self.open:
            self._close(leaf)
        for node, rows in self.tree.leaves:
            copies = None if self.multiplicity is None else self.multiplicity[rows]
            g = gradient[rows] if copies is None else gradient[rows] * copies
            if hessian is None:
                h = float(len(rows) if copies is None else copies.sum())
            else:
                h = float((hessian[rows] if copies is None else hessian[rows] * copies).sum())
            denominator = h + self.settings.l2
            self.tree.value[node] = -float(g.sum()) / denominator if denominator > 0 else 0.0


@njit(cache=True, nogil=True)
def partition(
    codes: NDArray[np.uint8],
    missing: int,
    cut: int,
    missing_left: bool,
    begin: int,
    end: int,
    order: NDArray[np.uint32],
    packed: NDArray[np.int64],
    hessian: NDArray[np.int64],
    spare: NDArray[np.uint32],
    spare_packed: NDArray[np.int64],
    spare_hessian: NDArray[np.int64],
) -> int:
    """Move the rows of code <= cut before the others, keeping both in order; the border."""
    left = begin
    right = 0
    two = len(hessian) > 0
    for i in range(begin, end):
        r = order[i]
        v = packed[i]
        code = int(codes[r])
        goes = int((code <= cut) | (missing_left & (code == missing)))
        order[left] = r
        packed[left] = v
        spare[right] = r
        spare_packed[right] = v
        if two:
            h = hessian[i]
            hessian[left] = h
            spare_hessian[right] = h
        left += goes
        right += 1 - goes
    order[left:end] = spare[:right]
    packed[left:end] = spare_packed[:right]
    if two:
        hessian[left:end] = spare_hessian[:right]
    return left
