"""Growing one tree at a time under a penalty.

A kernel grows the tree as far as it can; Python pays and makes room. Every open leaf keeps the RAW
gain of its best cut per feature (Peter et al., NIPS 2017, eq. 12). The charge (eq. 13) is
subtracted when a choice is made, with the purchases of that moment. So a sensor bought in one leaf
is at once free in all others, and stored gains never change.

A leaf's histogram is stored in a ``slot``; the larger of two siblings takes over its parent's.
After two splits, of the root and of its smaller child::

    slot 0   ROOT, kept for the next tree
    slot 1   root, then its larger child
    slot 2   smaller child, then ITS larger one
    slot 3   the smaller one of these

With hessians no root is kept, and the slots begin with the root's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from bench_trees.arrays import BoolArray, Float64Array, Int64Array, UInt64Array, frozen, grown
from bench_trees.binning import Bins
from bench_trees.fixed_point import SUM_BITS, Residuals, bits_for, room, sum_bits
from bench_trees.kernels import growth
from bench_trees.kernels.growth import (
    ANSWERED,
    FOUND,
    NODES,
    SLOTS,
    TREES,
    WRITTEN,
    Growing,
    GrownTree,
    Nodes,
    Rows,
    UsableFeatures,
)
from bench_trees.kernels.histograms import PAIR, SCRATCH, SMALL, SMALL_NODE
from bench_trees.kernels.packed_codes import CODES_PER_WORD, codes_of
from bench_trees.kernels.partition import MIDDLE, MOVE, NODE
from bench_trees.kernels.splitting import Cuts, Owed, Rules, Sums, best_cuts
from bench_trees.kernels.task_queue import CLOSED, LEFT, SIZE
from bench_trees.kernels.tree import (
    DIVERGED,
    DONE,
    KNOWN,
    OPEN,
    PAY,
    Carried,
    Descent,
    Extent,
    Newton,
    TreeData,
    grow,
)
from bench_trees.penalties import Account, Ledger
from bench_trees.settings import Settings
from bench_trees.threads import Workers

PARTS = 4  # of a task for each thread, as some words take longer than others
LEVELS = 6  # of splits with room from the start
CELLS = 20_000_000  # codes of the rows of all trees in one call: some ten milliseconds
WORTH = 400_000
"""Number of cells from which several threads score leaves: some 0.2 ms of one thread."""
WORTH_TREES = 400_000
"""Number of cells of an iteration's trees from which several threads grow some trees each."""
OTHER = Descent(0.0, 0.0, 0.0, np.empty(0))
NONE = frozen(np.empty(0), np.float64)
ANY = np.empty(0)
SQUARED = Newton(ANY, ANY, np.empty((0, 1)), ANY, NONE, NONE)


class Grower:
    """Grows trees on the same rows, charging one ledger; all buffers are made once and may only
    grow."""

    def __init__(
        self,
        words: UInt64Array,
        bins: Bins,
        settings: Settings,
        ledger: Ledger,
        multiplicity: Int64Array | None,
        pool: Workers,
    ) -> None:
        self.settings, self.pool = settings, pool
        self.copies = np.empty(0, np.int64) if multiplicity is None else multiplicity
        self.total = words.shape[1] if multiplicity is None else int(multiplicity.sum())
        self.account = Account(ledger, settings, self.copies)
        levels = LEVELS if settings.max_depth is None else min(settings.max_depth, LEVELS)
        # leaves with room from the start: all possible ones, if few
        most = min(settings.max_leaves or 1 << levels, self.total // settings.min_rows)
        self.leaves = max(1, min(most, 1 << levels))
        count_bits = bits_for(self.total)
        self.room = np.array([room(bits, self.total) for bits in (sum_bits(count_bits), SUM_BITS)])
        self.bins, self.splittable = bins, self._splittable(words, bins)
        self._make_buffers(words, count_bits)
        self.offer(self.splittable)

    def _make_buffers(self, words: UInt64Array, count_bits: int) -> None:
        n, d = words.shape[1], self.bins.features
        # row numbers in leaf order, rising within every leaf; and working space
        order, spare = np.empty((2, n), np.uint32)
        values = np.empty((n, 1), np.int64)
        self.rows = Rows(words, order, spare, values, values.copy(), self.copies)
        first = np.concatenate([[0], np.cumsum(self.bins.counts + 1)])
        hist = np.zeros((0, 1, int(first[-1])), np.int64)
        self.sums = Sums(hist, first, count_bits, np.ones(2))
        self.carried = Carried(np.zeros(3, np.int64), np.empty((0, 2), np.int64))
        integers = np.zeros((0, growth.COLUMNS), np.int64)
        self.tree = Growing(
            state=np.zeros(7, np.int64),
            sizes=np.zeros(0, np.int64),
            nodes=Nodes(integers, np.zeros((0, 2))),
            cuts=Cuts(np.empty((0, d)), np.empty((0, d), np.int32)),
            moves=np.zeros((0, MOVE), np.int64),
            work=np.zeros((0, PAIR), np.int64),
            root=np.zeros((1, PAIR), np.int64),
            steps=np.zeros(0, np.int64),
            values=np.zeros(0),
        )
        self.out = GrownTree.leaf(0)
        # of gradients and hessians: memory used before is several times as fast
        self.integers = np.empty(2 * n, np.int64)
        self.units = np.ones(2)
        self.scratch = np.zeros(SCRATCH, np.int64)

    def _alone(self) -> "Grower":
        """Another grower for the same account, with its own buffers and one thread."""
        other = copy(self)
        other.pool = Workers(1)
        other._make_buffers(self.rows.words, self.sums.count_bits)
        return other

    def _splittable(self, words: UInt64Array, bins: Bins) -> BoolArray:
        usable = bins.counts > 1
        for j in np.flatnonzero(~usable):  # one value cannot be split (one value and NaN can)
            usable[j] = bool(codes_of(words, int(j)).any())
        return np.asarray(usable)

    def offer(self, features: BoolArray) -> None:
        """Let the next trees test only these features (d,)."""
        bins, words = self.bins, len(self.rows.words)
        chosen = np.flatnonzero(features & self.splittable)
        word = chosen // CODES_PER_WORD
        groups = np.unique(word)
        begins = np.searchsorted(word, np.append(groups, words))
        # a stored model's are read-only, which would compile another kernel
        edges, offset = frozen(bins.edges, np.float32), frozen(bins.offset, np.int64)
        self.usable = UsableFeatures(groups, begins, chosen, bins.counts, edges, offset)
        self.others: list[Grower] = []
        self.count_root()

    def grow(
        self,
        gradient: Float64Array,
        hessian: Float64Array | None,
        scores: Float64Array | None = None,
        classes: tuple[Float64Array, Float64Array] = (NONE, NONE),
        iterations: int = 1,
    ) -> list[GrownTree]:
        """A tree for each of K outputs, fitted to -gradient (K, n) per copy. A tree whose root is
        not split is a leaf of value 0; the list is empty if all are. Values are added to ``scores``
        (K, n).

        ``hessian`` (K, n) or (1, n) per copy, None if it is 1. Leaf values are Newton steps,
        computed from float64 sums, times the learning rate. With ``classes``, the labels (n,) and
        the scores at the start (K n,), gradient and hessian are updated. Up to ``iterations`` then
        follow, until the loss may be above its start. Raises ValueError if a gradient or hessian is
        not finite (a diverging loss).
        """
        outputs = len(gradient)
        self.count_root()
        g = np.require(gradient, np.float64, ("C", "W")).reshape(-1)
        h = ANY if hessian is None else np.require(hessian, np.float64, ("C", "W")).reshape(-1)
        scores = np.zeros(gradient.shape) if scores is None else scores
        newton = Newton(g, h, scores.reshape(-1, 1), self.room, *classes)
        if len(classes[0]) > 0:
            most = min(iterations, self.at_once() // outputs) * outputs
            return self._step(newton, most)
        if not self.side_by_side(outputs):
            return _if_split(self._grow_outputs(newton, 0, outputs))
        trees: list[list[GrownTree]] = [[]] * outputs
        while len(self.others) < self.pool.threads:
            self.others.append(self._alone())
        free = self.others.copy()

        def piece(start: int, stop: int) -> None:
            grower = free.pop()
            trees[start] = grower._grow_outputs(newton, start, stop)
            free.append(grower)

        threads, large = self.pool.threads, self._cells() > WORTH
        shared = outputs - outputs % threads if large else outputs
        self.pool.run(piece, shared, 1 if large else -(-outputs // threads))
        rest = self._grow_outputs(newton, shared, outputs)
        return _if_split([tree for some in trees for tree in some] + rest)

    def _grow_outputs(self, newton: Newton, start: int, stop: int) -> list[GrownTree]:
        """A tree for each of the outputs start:stop."""
        n, trees = len(self.rows.order), list[GrownTree]()
        g, h = newton.gradient, newton.hessian
        while start < stop:
            most, at = min(stop - start, self.at_once()), n * start
            own = newton._replace(
                gradient=g[at:], hessian=h[at:] if len(h) > n else h, scores=newton.scores[at:]
            )
            trees += self._step(own, most)
            start += most
        return trees

    def _step(self, newton: Newton, most: int) -> list[GrownTree]:
        channels = 1 if len(newton.hessian) == 0 else 2
        n = len(self.rows.order)
        values = self.integers[: n * channels].reshape(n, channels)
        descent = OTHER._replace(learning_rate=float(self.settings.learning_rate))
        return self._grow(values, self.units, descent, newton, most)

    def side_by_side(self, outputs: int) -> bool:
        """True if several threads each grow trees of one iteration: the trees are large enough, and
        no tree changes another's charges. With 26 classes two threads are 1.2 to 1.7 times as fast
        as with one tree after another (medians in turns, 2026-11-29)."""
        if self.pool.threads == 1 or outputs * self._cells() < WORTH_TREES:
            return False
        account = self.account
        independent = not (account.lazy or account.per_node or account.coupled_owed.any())
        return outputs >= self.pool.threads and independent

    def grow_on(self, residuals: Residuals, most: int = 1) -> list[GrownTree]:
        """Up to ``most`` trees, each fitted to the residuals of the previous ones; none if a root
        is not split.

        Their values are integer multiples of the residuals' unit. Pass the same residuals each
        time, since the root's histogram is carried from one tree to the next.
        """
        if residuals.refine():
            self.count_root()
        rate, squares = float(self.settings.learning_rate), np.array([residuals.squares])
        descent = Descent(rate, residuals.share, residuals.least, squares)
        most = min(most, self.at_once())
        trees = self._grow(residuals.values, residuals.units, descent, SQUARED, most)
        residuals.squares = float(squares[0])
        return trees

    def count_root(self) -> None:
        """Count the next root's histogram instead of deriving it from the last."""
        self.carried.state[KNOWN] = False

    def at_once(self) -> int:
        """Number of trees that one call may grow: one if a tree changes the next one's charges."""
        if self.account.lazy or self.account.per_node:
            return 1
        return max(1, CELLS // max(1, self._cells()))

    def _cells(self) -> int:
        """Cells of all rows that a tree may test."""
        return len(self.rows.order) * len(self.usable.features)

    def _grow(
        self, values: Int64Array, units: Float64Array, descent: Descent, newton: Newton, most: int
    ) -> list[GrownTree]:
        """Up to ``most`` trees; ``values`` (n, channels) are in these units."""
        self.sums = self.sums._replace(units=units)
        if self.sums.hist.shape[1] != values.shape[1]:
            hist = np.zeros((0, values.shape[1], self.sums.hist.shape[2]), np.int64)
            self.sums = self.sums._replace(hist=hist)
            self.rows = self.rows._replace(in_order=np.empty(values.shape, np.int64))
        self.rows = self.rows._replace(values=values)
        self.account.begin()
        self.tree.state[:] = 0
        nodes = max(2 * self.leaves - 1, len(self.tree.work))
        self.tree = self.tree._replace(sizes=np.empty(most, np.int64))
        self.out = GrownTree.leaf(most * (nodes + 1))
        self._reserve(nodes)
        self._reserve_slots(2 + self.leaves // 2)  # as many as pairs, a level at a time
        s, n = self.settings, len(self.rows.order)
        leaves = n if s.max_leaves is None else s.max_leaves
        alone = self.pool.threads == 1 or self._cells() < WORTH
        queue = np.zeros(0 if alone else SIZE, np.int64)
        extent = Extent(most, leaves, WORTH, PARTS * self.pool.threads, queue, False)
        rules = self._rules()
        while True:
            owed = self._owed()
            data = TreeData(self.tree, self.rows, self.usable, self.sums, rules, owed, self.carried)
            with self._helped(data, newton, extent):
                request = grow(data, newton, self.out, extent, descent, self.scratch)
            if request == DONE:
                break
            if request == DIVERGED:
                raise ValueError(
                    "gradients are not finite: the loss diverges, lower the learning rate"
                )
            self.tree.state[ANSWERED] = request
            if request == PAY:
                self._pay()
            elif request == OPEN:
                self._open_accounts()
            else:
                found = int(self.tree.state[FOUND])
                self._reserve_slots(int(self.tree.state[SLOTS]) + found)
                self._reserve(self.count + 2 * found)
        if self.count == 1:
            self.count_root()
        return self._grown()

    @contextmanager
    def _helped(self, data: TreeData, newton: Newton, extent: Extent) -> Iterator[None]:
        """Let other threads help to grow trees."""
        queue = extent.queue
        if len(queue) == 0:
            yield
            return
        queue[:] = 0
        help_out, out = extent._replace(helper=True), self.out

        def help_grow() -> None:
            grow(data, newton, out, help_out, OTHER, np.zeros(SCRATCH, np.int64))

        with self.pool.beside(help_grow):
            try:
                yield
            finally:
                queue[LEFT] = CLOSED

    def _reserve_slots(self, slots: int) -> None:
        self.sums = self.sums._replace(hist=grown(self.sums.hist, slots))

    def _owed(self) -> Owed:
        account = self.account
        return Owed(account.coupled_owed, account.lazy_owed, account.ledger.penalty.split)

    def _rules(self) -> Rules:
        s = self.settings
        return Rules(
            max_depth=-1 if s.max_depth is None else s.max_depth,
            min_rows=int(s.min_rows),
            min_hessian=float(s.min_hessian) if s.second_order else 0.0,
            l2=float(s.l2),
            level=s.order == "level",
            every=self._any_order(),
            above_floor=s.charge == "tree",
            always=s.stop == "raw" or s.charge == "node",
        )

    @property
    def count(self) -> int:
        """Number of nodes."""
        return int(self.tree.state[NODES])

    def _reserve(self, nodes: int) -> None:
        """Make room for ``nodes`` nodes, and for the tree among the finished ones."""
        tree = self.tree
        if nodes > len(tree.work):
            self.carried = self.carried._replace(counted=grown(self.carried.counted, nodes))
            self.tree = tree._replace(
                nodes=Nodes(*(grown(array, nodes) for array in tree.nodes)),
                cuts=Cuts(*(grown(array, nodes) for array in tree.cuts)),
                moves=grown(tree.moves, nodes),
                work=grown(tree.work, nodes),
                steps=grown(tree.steps, nodes),
                values=grown(tree.values, nodes),
            )
        needed = int(tree.state[WRITTEN] + tree.state[TREES]) + len(self.tree.work) + 1
        if needed > len(self.out.feature):
            longer = GrownTree.leaf(needed)
            for old, new in zip(self.out, longer, strict=True):
                new[: len(old)] = old
            self.out = longer

    def _any_order(self) -> bool:
        """True if best-first growth makes the same splits in any order: all fit, and no split
        changes another leaf's charges. Then complete levels are split and scored, because their
        leaves share cache lines of the rows' words, and several threads are called half as often.

        One leaf at a time takes .96 to 1.15 times as long on one thread, at most 1.06 at 13 of 14
        shapes; on two threads .97 to 1.38, at least 1.09 at 7 (squared loss, medians of three
        trees in turns, 2026-11-29)."""
        s = self.settings
        if s.order != "best" or s.max_depth is None:
            return False
        if self.account.coupled_owed.any():
            return False
        return s.max_leaves is None or s.max_leaves.bit_length() > s.max_depth

    def _pay(self) -> None:
        """Pay for the splits that were found."""
        account, state = self.account, self.tree.state
        moves = self.tree.moves[: state[FOUND]]
        owed, refunded = account.coupled_owed, False
        for node, begin, end, feature in moves[:, :4].tolist():
            refunded |= account.pay(node, feature, self.rows.order[begin:end])
        if refunded:
            self._reconsider(account.coupled_owed < owed)

    def _open_accounts(self) -> None:
        """Open the accounts of the children made by the splits."""
        table, order = self.tree.nodes.integers, self.rows.order
        moves = self.tree.moves[: self.tree.state[FOUND]]
        left = self.count - 2 * len(moves)
        for parent, middle in moves[:, [NODE, MIDDLE]].tolist():
            begin, end = table[parent, [growth.BEGIN, growth.END]].tolist()
            small, large, rows = left, left + 1, order[begin:middle]
            if middle - begin > end - middle:
                small, large, rows = left + 1, left, order[middle:end]
            counts = int(table[parent, growth.COUNT]), int(table[small, growth.COUNT])
            self.account.divide(parent, small, large, counts, rows)
            left += 2

    def _reconsider(self, cheaper: BoolArray) -> None:
        """Let open leaves choose again after some features (d,) became cheaper, whose gains may be
        missing."""
        tree, usable = self.tree, self.usable
        table = tree.nodes.integers[: self.count]
        scored = (table[:, growth.LEFT] < 0) & (table[:, growth.STATE] != growth.NEW)
        nodes = np.flatnonzero(scored)
        table[nodes, growth.STATE] = growth.SCORED
        pairs = np.full((len(nodes), PAIR), -1)  # one node each
        pairs[:, SMALL], pairs[:, SMALL_NODE] = table[nodes, growth.SLOT], nodes
        features = usable.features[cheaper[usable.features]]
        best_cuts(self.sums, pairs, features, self._rules(), self._owed(), tree.cuts)

    def _grown(self) -> list[GrownTree]:
        """The finished trees, after buying their free features."""
        o, trees, node, leaf, state = self.out, [], 0, 0, self.tree.state
        written = int(state[WRITTEN])
        if 2 * written < len(o.feature):  # keeps only the written part of mostly empty arrays
            kept: list[Any] = [array[: written + 1].copy() for array in o]
            o = GrownTree(*kept)
        for count in self.tree.sizes[: state[TREES]].tolist():
            a, b = slice(node, node + count), slice(leaf, leaf + (count + 1) // 2)
            splits = o.feature[a], o.threshold[a], o.missing_left[a], o.left[a], o.right[a]
            trees.append(GrownTree(*splits, o.value[a], o.leaves[b], o.ends[b], o.spans[b]))
            node, leaf = a.stop, b.stop
        self.account.end(o.feature[:node])
        return trees


def _if_split(trees: list[GrownTree]) -> list[GrownTree]:
    """The trees, or none if no root is split."""
    return trees if any(len(tree.feature) > 1 for tree in trees) else []
