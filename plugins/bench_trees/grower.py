"""Growing one tree at a time under a penalty.

Kernels choose, move and count; Python calls them, pays, and gives large work to several threads.
Every open leaf keeps the RAW gain of its best cut per feature (Peter et al., NIPS 2017, eq. 12);
the charge (eq. 13) is subtracted when a choice is made, with the purchases of that moment. So a
sensor bought in one leaf is at once refunded in all others, and nothing is ever added to a stored
gain.
"""

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array, UInt64Array, grown
from bench_trees.binning import Bins
from bench_trees.fixed_point import FixedPoint, Residuals, to_fixed_point
from bench_trees.growing_tree import GrownTree, Settings
from bench_trees.histogram_pool import HistogramPool
from bench_trees.kernels import growth
from bench_trees.kernels.gradients import add_values, take
from bench_trees.kernels.growth import Nodes, Rules
from bench_trees.kernels.leaves import RowOrder, add_to_rows
from bench_trees.penalties import Account, Ledger
from bench_trees.threads import PIECE, Piece, Workers


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
        self.counts = bins.counts
        self.settings = settings
        self.multiplicity = multiplicity
        self.copies = np.empty(0, np.int64) if multiplicity is None else multiplicity
        self.total = words.shape[1] if multiplicity is None else int(multiplicity.sum())
        self.crew = crew
        self.order = RowOrder(words, crew)
        self.pool = HistogramPool(words, bins, settings, self.order, crew)
        self.account = Account(ledger, settings, self.copies, crew)
        self.nodes = Nodes(np.zeros((0, growth.COLUMNS), np.int64), np.zeros((0, 2)))

    def grow(self, gradient: Float64Array, hessian: Float64Array | None) -> GrownTree | None:
        """One tree fitted to -gradient (n,) per copy, or None if the root is not split.

        ``hessian`` (n,) per copy, None where it is 1. Leaf values are Newton steps, computed
        from float64 sums, times the learning rate.
        """
        self.pool.root_known = False
        copies = self.multiplicity
        tree = self._grow(to_fixed_point(gradient, hessian, copies, self.total, self.crew))
        if tree is None:
            return None
        g = self._by_leaf(gradient)
        h = None if hessian is None else self._by_leaf(hessian)
        counts = self.nodes.integers[self.leaves, growth.COUNT].tolist()
        for node, (begin, end), count in zip(
            tree.leaves.tolist(), tree.spans.tolist(), counts, strict=True
        ):
            denominator = float(count if h is None else h[begin:end].sum()) + self.settings.l2
            value = -float(g[begin:end].sum()) / denominator if denominator > 0 else 0.0
            tree.value[node] = self.settings.learning_rate * value
        return tree

    def add(self, tree: GrownTree, scores: Float64Array) -> None:
        """Add the values of the tree grown last to scores (n,)."""
        values = tree.value[tree.leaves]

        def piece(start: int, stop: int) -> None:
            add_values(scores, self.order.rows, tree.spans[start:stop], values[start:stop])

        self._over_leaves(piece, len(values))

    def _by_leaf(self, values: Float64Array) -> Float64Array:
        """Values (n,) times copies, in the order of leaves."""
        values = values if self.multiplicity is None else values * self.multiplicity
        values, rows = np.ascontiguousarray(values), self.order.rows
        out = np.empty(len(rows))

        def piece(start: int, stop: int) -> None:
            take(values, rows[start:stop], out[start:stop])

        self.crew.run(piece, len(rows), PIECE)
        return out

    def _over_leaves(self, piece: Piece, leaves: int) -> None:
        self.crew.run(piece, leaves, leaves if len(self.order.rows) < PIECE else 1)

    def grow_on(self, residuals: Residuals) -> GrownTree | None:
        """One tree fitted to the residuals, which are brought up to date, or None likewise.

        Its values are whole multiples of the residuals' unit. To be called with the same
        residuals each time, since the root's histogram is carried from one tree to the next.
        """
        if residuals.refine():
            self.pool.root_known = False
        unit = residuals.unit
        tree = self._grow(residuals.fixed())
        if tree is None:
            return None
        self.pool.root_known = True
        s, bits = self.settings, residuals.count_bits
        steps = np.zeros(self.count, np.int64)
        rule = float(s.learning_rate), float(s.l2), bits
        residuals.stepped(growth.descend(self.nodes, self.leaves, *rule, steps))
        own = steps[self.leaves]
        tree.value[tree.leaves] = own * unit
        self.pool.carry(*growth.carried(self.nodes, self.count, steps), self.copies)

        def piece(start: int, stop: int) -> None:
            some = tree.spans[start:stop], own[start:stop] << bits
            add_to_rows(residuals.packed, self.order.rows, *some, self.copies)

        self._over_leaves(piece, len(own))
        return tree

    def _grow(self, fixed: FixedPoint) -> GrownTree | None:
        """A tree without values, or None where the root is not split."""
        rules, waiting = self._begin(fixed)
        limit = self.settings.max_leaves or len(self.order.rows)
        while self.count < 2 * limit - 1:
            if len(waiting) and not rules.level:
                self.pool.score(waiting)
                waiting = waiting[:0]
            moves = np.empty((self.count if rules.every else 1, growth.MOVE), np.int64)
            found = growth.choose(
                self.nodes,
                self.count,
                self.pool.gain,
                self.pool.cut,
                self.account.coupled_owed,
                self.account.lazy_owed,
                self.account.ledger.penalty.split,
                self.counts,
                rules,
                moves,
            )
            if found == 0:
                break
            if found < 0:
                self.pool.score(waiting)
                self.nodes.integers[waiting[:, 5:].ravel(), growth.STATE] = growth.SCORED
                waiting = waiting[:0]
            else:
                new = self._split(moves[:found], rules)
                waiting = np.concatenate([waiting, new]) if len(waiting) else new
        self.nodes.integers[waiting[:, 5:].ravel(), growth.STATE] = growth.NEW  # left unscored
        return self._finish(rules.every)

    def _begin(self, fixed: FixedPoint) -> tuple[Rules, Int64Array]:
        """A new root alone, with its gains, and no further work of that kind."""
        self.fixed = fixed
        self.order.reset()
        self.pool.begin(fixed)
        self.account.begin()
        s, n = self.settings, len(self.order.rows)
        depth = -1 if s.max_depth is None else s.max_depth
        above, always = s.charge == "tree", s.stop == "raw" or s.charge == "node"
        every, level = self._any_order(), s.order == "level"
        rules = Rules(depth, s.min_rows, float(s.l2), level, every, above, always)
        self.count = 1
        self._reserve(1)
        self.pool.reserve(1, 1)
        root = self.nodes.integers[0]
        root[:] = 0
        root[growth.END], root[growth.SLOT] = n, 1
        root[growth.PACKED] = fixed.packed.sum()
        root[growth.HESSIAN] = fixed.hessian.sum()
        growth.begin_node(self.nodes, 0, 0, self.pool.sums(), rules)
        work = np.array([[0, n, 1, -1, 0, 0, -1]])
        self.pool.score(work)
        root[growth.STATE] = growth.SCORED
        return rules, work[:0]

    def _reserve(self, nodes: int) -> None:
        integers, scores = self.nodes
        self.nodes = Nodes(grown(integers, nodes, 0), grown(scores, nodes, 0.0))

    def _any_order(self) -> bool:
        """Whether best-first growth makes the same splits in any order: there is room for all,
        and no split changes what another leaf owes. Then a level is split and scored at a time,
        while what its leaves share of the rows' words is near."""
        s = self.settings
        if s.order != "best" or s.max_depth is None or self.account.coupled_owed.any():
            return False
        return s.max_leaves is None or s.max_leaves.bit_length() > s.max_depth

    def _split(self, moves: Int64Array, rules: Rules) -> Int64Array:
        """Make the splits; the work of scoring their children."""
        table, account = self.nodes.integers, self.account
        refunded = False
        for node, begin, end, feature in moves[:, :4].tolist():
            refunded |= account.pay(node, feature, self.order.rows[begin:end])
        if refunded:
            states = table[: self.count, growth.STATE]
            states[states == growth.SETTLED] = growth.SCORED
        fixed, pool = self.fixed, self.pool
        self.order.divide(moves, (fixed.packed, fixed.hessian), (pool.values, pool.hessians))
        first, self.count = self.count, self.count + 2 * len(moves)
        self._reserve(self.count)
        work = np.empty((len(moves), 7), np.int64)
        pairs = growth.attach(moves, self.nodes, first, pool.slots, pool.sums(), rules, work)
        pool.reserve(pairs, self.count)
        if account.lazy:
            for move, (node, middle) in enumerate(moves[:, [0, 8]].tolist()):
                self._divide_account(node, first + 2 * move, middle)
        return work[:pairs]

    def _divide_account(self, parent: int, left: int, middle: int) -> None:
        table = self.nodes.integers
        begin, end = (int(table[parent, column]) for column in (growth.BEGIN, growth.END))
        smaller_left = middle - begin <= end - middle
        small, large = (left, left + 1) if smaller_left else (left + 1, left)
        rows = self.order.rows[begin:middle] if smaller_left else self.order.rows[middle:end]
        counts = (int(table[parent, growth.COUNT]), int(table[small, growth.COUNT]))
        self.account.divide(parent, small, large, counts, rows)

    def _finish(self, best_first: bool) -> GrownTree | None:
        if self.count == 1:
            return None
        self.account.end()
        edges, offset = self.bins.edges, self.bins.offset
        done = growth.finish(self.nodes, self.count, best_first, edges, offset)
        leaves = np.flatnonzero(done.feature < 0)
        self.leaves = done.node[leaves]
        spans = self.nodes.integers[self.leaves, growth.BEGIN : growth.END + 1]
        return GrownTree(*done[:5], np.zeros(self.count), leaves, spans)
