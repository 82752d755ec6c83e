"""Growing one tree at a time under a penalty.

Plain Python decides, kernels count. Every open leaf keeps the RAW gain of its best cut per feature
(Peter et al., NIPS 2017, eq. 12); the charge (eq. 13) is subtracted when a choice is made, with the
purchases of that moment. So a sensor bought in one leaf is at once refunded in all others, and
nothing is ever added to a stored gain.
"""

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array, UInt64Array
from bench_trees.binning import Bins
from bench_trees.fixed_point import FixedPoint, Residuals, to_fixed_point
from bench_trees.growing_tree import GrownTree, Leaf, Settings, Siblings, best_first
from bench_trees.histogram_pool import HistogramPool
from bench_trees.kernels.leaves import PIECE, RowOrder, add_to_rows
from bench_trees.penalties import Account, Ledger
from bench_trees.threads import Workers

ROUNDING = 1e-12
"""A raw gain below this share of the node's own score is rounding, not gain."""


class Grower:
    """Grows trees on the same rows, charging one ledger; all buffers are made once."""

    def __init__(
        self,
        words: UInt64Array,
        bins: Bins,
        settings: Settings,
        ledger: Ledger,
        multiplicity: Int64Array | None,
        crew: Workers,
    ) -> None:
        self.bins = bins
        self.missing = bins.counts.tolist()
        self.settings = settings
        self.multiplicity = multiplicity
        self.copies = np.empty(0, np.int64) if multiplicity is None else multiplicity
        self.total = words.shape[1] if multiplicity is None else int(multiplicity.sum())
        self.crew = crew
        self.order = RowOrder(words, crew)
        self.pool = HistogramPool(words, bins, settings, self.order, crew)
        self.account = Account(ledger, settings, self.copies, crew)

    def grow(self, gradient: Float64Array, hessian: Float64Array | None) -> GrownTree | None:
        """One tree fitted to -gradient (n,) per copy, or None if the root is not split.

        ``hessian`` (n,) per copy, None where it is 1. Leaf values are Newton steps, computed
        from float64 sums, times the learning rate.
        """
        self.pool.root_known = False
        if not self._grow(to_fixed_point(gradient, hessian, self.multiplicity, self.total)):
            return None
        for node, rows in self.tree.leaves:
            copies = None if self.multiplicity is None else self.multiplicity[rows]
            g = gradient[rows] if copies is None else gradient[rows] * copies
            if hessian is None:
                h = float(len(rows) if copies is None else copies.sum())
            else:
                h = float((hessian[rows] if copies is None else hessian[rows] * copies).sum())
            denominator = h + self.settings.l2
            value = -float(g.sum()) / denominator if denominator > 0 else 0.0
            self.tree.value[node] = self.settings.learning_rate * value
        return self.tree

    def grow_on(self, residuals: Residuals) -> GrownTree | None:
        """One tree fitted to the residuals, which are brought up to date, or None likewise.

        Its values are whole multiples of the residuals' unit. To be called with the same
        residuals each time, since the root's histogram is carried from one tree to the next.
        """
        if residuals.refine():
            self.pool.root_known = False
        unit = residuals.unit
        if not self._grow(residuals.fixed()):
            return None
        self.pool.root_known = True
        s = self.settings
        steps = {leaf: residuals.step(leaf, s.learning_rate, s.l2) for leaf in self.leaves}
        for leaf, step in steps.items():
            self.tree.value[leaf.node] = step * unit
        self._carry(steps)
        self._move(residuals, steps)
        return self.tree

    def _carry(self, steps: dict[Leaf, int]) -> None:
        """The next root's histogram: from the leaves' own where they have one, else from their
        parent's and, for what sets the smaller child apart, its rows."""
        counted = {leaf.slot: steps[leaf] for leaf in self.leaves if leaf.row >= 0}
        moved = []
        for small, large in self.unscored:
            assert large is not None  # a root alone is scored before it is split
            counted[large.slot] = steps[large]
            if steps[small] != steps[large]:
                moved.append((small.begin, small.end, steps[large] - steps[small]))
        counted = {slot: step for slot, step in counted.items() if step}
        self.pool.carry(counted, moved, self.copies)

    def _move(self, residuals: Residuals, steps: dict[Leaf, int]) -> None:
        moves = [(leaf, step << residuals.count_bits) for leaf, step in steps.items()]

        def piece(start: int, stop: int) -> None:
            for leaf, step in moves[start:stop]:
                rows = self.order.rows[leaf.begin : leaf.end]
                add_to_rows(residuals.packed, rows, step, self.copies)

        few = len(self.order.rows) < PIECE
        self.crew.run(piece, len(moves), len(moves) if few else 1)

    def _grow(self, fixed: FixedPoint) -> bool:
        """Grow a tree without values; whether the root was split."""
        self._begin(fixed)
        limit = self.settings.max_leaves or len(self.order.rows)
        while len(self.leaves) < limit:
            choice = self._choose()
            if choice is None:
                break
            self._split(*choice)
        if self.any_order:  # nodes are numbered as if splits had been made best first
            number = self.tree.renumber(best_first(self.tree, self.gains))
            for leaf in self.leaves:
                leaf.node = number[leaf.node]
            self.leaves.sort(key=lambda leaf: leaf.node)
        self.tree.leaves = [(one.node, self.order.rows[one.begin : one.end]) for one in self.leaves]
        if len(self.leaves) == 1:
            return False
        self.account.end()
        return True

    def _begin(self, fixed: FixedPoint) -> None:
        self.fixed = fixed
        self.order.reset()
        self.pool.begin(fixed)
        self.account.begin()
        self.any_order = self._any_order()
        self.gains: dict[int, float] = {}
        self.tree = GrownTree()
        n = len(self.order.rows)
        root = self._leaf(0, 0, 0, n, int(fixed.packed.sum()), int(fixed.hessian.sum()))
        root.unpaid = self.account.ledger.unpaid.copy() if self.account.lazy else None
        self.leaves = [root]
        self.unscored: list[Siblings] = [(root, None)]

    def _any_order(self) -> bool:
        """Whether best-first growth makes the same splits in any order: there is room for all,
        and no split changes what another leaf owes. Then leaves are scored a level at a time,
        while what they share of the rows' words is near."""
        s = self.settings
        if s.order != "best" or s.max_depth is None or self.account.coupled_owed.any():
            return False
        return s.max_leaves is None or s.max_leaves.bit_length() > s.max_depth

    def _leaf(self, depth: int, path: int, begin: int, end: int, packed: int, hessian: int) -> Leaf:
        count, g, h = self.fixed.read(packed, hessian)
        h += self.settings.l2
        floor = ROUNDING * g * g / h if h > 0 else 0.0
        node = self.tree.add_node()
        return Leaf(node, depth, path, begin, end, packed, hessian, count, floor)

    # choosing

    def _choose(self) -> tuple[Leaf, int] | None:
        if self.settings.order == "level":
            return self._first_worthwhile()
        choice = self._best_scored() if self.any_order else None
        if choice is None:
            self._score([pair for pair in self.unscored if self._may_split(pair[0])])
            choice = self._best_scored()
        return choice

    def _best_scored(self) -> tuple[Leaf, int] | None:
        scored = [leaf for leaf in self.leaves if leaf.row >= 0 and self._may_split(leaf)]
        best = max(scored, key=lambda leaf: self._best_feature(leaf)[0], default=None)
        if best is None:
            return None
        net, feature = self._best_feature(best)
        return (best, feature) if net > -np.inf else None

    def _first_worthwhile(self) -> tuple[Leaf, int] | None:
        for leaf in sorted(self.leaves, key=lambda one: (one.depth, one.path)):
            if not self._may_split(leaf):
                continue
            if leaf.row < 0:
                self._score([pair for pair in self.unscored if pair[0].depth == leaf.depth])
            net, feature = self._best_feature(leaf)
            if net > -np.inf:
                return leaf, feature
        return None

    def _may_split(self, leaf: Leaf) -> bool:
        return leaf.depth != self.settings.max_depth

    def _score(self, pairs: list[Siblings]) -> None:
        self.pool.score(pairs)
        self.unscored = [pair for pair in self.unscored if pair[0].row < 0]

    def _best_feature(self, leaf: Leaf) -> tuple[float, int]:
        """Highest net gain that may be taken, -inf if none, and its lowest feature."""
        if leaf.best is not None:
            return leaf.best
        raw = self.pool.gain[leaf.row]
        net = raw - self.account.owed(leaf)  # eq. 12 less eq. 13
        if self.settings.charge == "tree":
            net[raw <= leaf.floor] = -np.inf
        feature = int(np.argmax(net))
        best = float(net[feature])
        always = self.settings.stop == "raw" or self.settings.charge == "node"
        leaf.best = (best, feature) if always or best > 0 else (-np.inf, feature)
        return leaf.best

    # splitting

    def _split(self, leaf: Leaf, feature: int) -> None:
        cut = int(self.pool.cut[leaf.row, feature])
        code, missing_left = cut // 2, bool(cut % 2)
        if self.account.pay(leaf, feature, self.order.rows[leaf.begin : leaf.end]):
            for other in self.leaves:
                other.best = None
        missing = self.missing[feature]
        middle = self.order.split(leaf.begin, leaf.end, feature, missing, code, missing_left)
        packed, hessian = self.pool.below(leaf, feature, code, missing_left)
        depth, path = leaf.depth + 1, 2 * leaf.path
        left = self._leaf(depth, path, leaf.begin, middle, packed, hessian)
        rest = (leaf.packed - packed, leaf.hessian - hessian)
        right = self._leaf(depth, path + 1, middle, leaf.end, *rest)
        if leaf.best is not None:
            self.gains[leaf.node] = leaf.best[0]
        self.tree.feature[leaf.node] = feature
        self.tree.threshold[leaf.node] = self.bins.threshold(feature, code)
        self.tree.missing_left[leaf.node] = missing_left
        self.tree.left[leaf.node] = left.node
        self.tree.right[leaf.node] = right.node
        small, large = sorted((left, right), key=lambda child: child.end - child.begin)
        self.account.divide(leaf, small, large, self.order.rows[small.begin : small.end])
        self.leaves.remove(leaf)
        self.leaves += [left, right]
        large.slot = leaf.slot
        self.unscored.append((small, large))
