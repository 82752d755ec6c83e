"""Growing one tree at a time under a penalty.

A kernel grows the tree as far as it can; Python pays, makes room, and has several threads score
leaves of many rows.
Every open leaf keeps the RAW gain of its best cut per feature (Peter et al., NIPS 2017, eq. 12);
the charge (eq. 13) is subtracted when a choice is made, with the purchases of that moment. So a
sensor bought in one leaf is at once refunded in all others, and nothing is ever added to a stored
gain.
"""

from typing import Any

import numpy as np

from bench_trees.arrays import (
    BoolArray,
    Float64Array,
    Int64Array,
    UInt64Array,
    frozen,
    grown,
)
from bench_trees.binning import Bins
from bench_trees.fixed_point import SUM_BITS, FixedPoint, Residuals, bits_for, room, sum_bits
from bench_trees.histogram_pool import HistogramPool
from bench_trees.kernels import growth
from bench_trees.kernels.few_rows import search
from bench_trees.kernels.growth import GrownTree, Nodes, Rules
from bench_trees.kernels.histograms import SCRATCH
from bench_trees.kernels.packed_codes import CODES_PER_WORD
from bench_trees.kernels.partition import MIDDLE, MOVE, NODE
from bench_trees.kernels.splitting import Owed, Units, best_cuts
from bench_trees.kernels.tree import (
    COUNT,
    DIVERGED,
    DONE,
    FOUND,
    OPEN,
    PAID,
    PAY,
    SCORE,
    SLOTS,
    TREES,
    WAITING,
    WRITTEN,
    Buffers,
    Descent,
    Extent,
    Growing,
    Newton,
    Rows,
    UsableFeatures,
    grow,
    score,
)
from bench_trees.penalties import Account, Ledger
from bench_trees.settings import Settings
from bench_trees.threads import Workers

PIECES = 2  # of each thread, as some words take longer than others
LEVELS = 6  # of splits for which there is room from the start
CELLS = 20_000_000  # codes of so many trees' rows: some ten milliseconds in one call
WORTH = 2_000_000
"""Cells from which on several threads score leaves: some 0.7 ms of one thread. Handing the leaves
to two threads takes 0.12 ms."""
OTHER = Descent(0.0, 0.0, 0.0, np.empty(0))
NONE = frozen(np.empty(0), np.float64)
SQUARED = Newton(NONE, NONE, np.empty((0, 1)), np.empty(0))


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
        self.counts = bins.counts
        # of a stored model they are read-only, which would compile another kernel
        self.edges = frozen(bins.edges, np.float32), frozen(bins.offset, np.int64)
        self.settings = settings
        self.copies = np.empty(0, np.int64) if multiplicity is None else multiplicity
        self.total = words.shape[1] if multiplicity is None else int(multiplicity.sum())
        self.crew = crew
        self.words = words
        # row numbers in leaf order, rising within every leaf; and room to work in
        self.rows, self.spare = np.empty((2, words.shape[1]), np.uint32)
        self.pool = HistogramPool(words, bins, settings)
        self.account = Account(ledger, settings, self.copies)
        levels = LEVELS if settings.max_depth is None else min(settings.max_depth, LEVELS)
        # for which there is room from the start: all there may be, if few
        most = min(settings.max_leaves or 1 << levels, self.total // settings.min_rows)
        self.leaves = max(1, min(most, 1 << levels))
        self.state = np.zeros(7, np.int64)
        self.nodes = Nodes(np.zeros((0, growth.COLUMNS), np.int64), np.zeros((0, 2)))
        self.moves = np.zeros((0, MOVE), np.int64)
        self.work = np.zeros((0, 7), np.int64)
        self.root = np.zeros((1, 7), np.int64)
        self.steps, self.values = np.zeros(0, np.int64), np.zeros(0)
        self.out = GrownTree.leaf(0)
        # of gradients and hessians: memory that was used before is several times as fast
        self.integers = np.empty(2 * words.shape[1], np.int64)
        self.units = np.ones(2)
        self.scratch = np.zeros(SCRATCH, np.int64)
        self.count_bits = bits_for(self.total)
        bits = sum_bits(self.count_bits), SUM_BITS
        self.room = np.array([room(each, self.total) for each in bits])

    def grow(
        self,
        gradient: Float64Array,
        hessian: Float64Array | None,
        scores: Float64Array | None = None,
    ) -> list[GrownTree]:
        """A tree for each of K outputs, fitted to -gradient (K, n) per copy, of which those whose
        root is not split are a leaf of value 0; none if that is all of them. Their values are
        added to ``scores`` (K, n).

        ``hessian`` (K, n) or (1, n) per copy, None where it is 1. Leaf values are Newton steps,
        computed from float64 sums, times the learning rate. Raises ValueError where a gradient or
        hessian is not finite (a diverging loss).
        """
        outputs, n = gradient.shape
        self.pool.count_root()
        g = frozen(gradient, np.float64).reshape(-1)
        h = NONE if hessian is None else frozen(hessian, np.float64).reshape(-1)
        scores = np.zeros(gradient.shape) if scores is None else scores
        added = scores.reshape(-1, 1)
        channels = 1 if hessian is None else 2
        values = self.integers[: n * channels].reshape(n, channels)
        fixed = FixedPoint(values, self.count_bits, self.units)
        descent = OTHER._replace(learning_rate=float(self.settings.learning_rate))
        trees: list[GrownTree] = []
        while len(trees) < outputs:
            at = n * len(trees)
            own = g[at:], h[at:] if len(h) > n else h, added[at:]
            newton = Newton(*own, self.room)
            trees += self._grow(fixed, descent, newton, min(outputs - len(trees), self._at_once()))
        return trees if any(len(tree.feature) > 1 for tree in trees) else []

    def grow_on(self, residuals: Residuals, most: int = 1) -> list[GrownTree]:
        """Up to ``most`` trees, each fitted to the residuals that those before it leave; none
        where a root is not split.

        Their values are integer multiples of the residuals' unit. Pass the same
        residuals each time, since the root's histogram is carried from one tree to the next.
        """
        if residuals.refine():
            self.pool.count_root()
        rate, squares = float(self.settings.learning_rate), np.array([residuals.squares])
        descent = Descent(rate, residuals.share, residuals.least, squares)
        trees = self._grow(residuals.fixed, descent, SQUARED, min(most, self._at_once()))
        residuals.squares = float(squares[0])
        return trees

    def _at_once(self) -> int:
        """Number of trees that one call may grow. A tree that changes what the next one owes is
        grown by itself."""
        if self.account.lazy or self.account.per_node:
            return 1
        return max(1, CELLS // (len(self.rows) * max(1, len(self.pool.features))))

    def _grow(
        self, fixed: FixedPoint, descent: Descent, newton: Newton, most: int
    ) -> list[GrownTree]:
        """Up to so many trees."""
        self.fixed = fixed
        self.pool.begin(fixed)
        self.account.begin()
        self.state[:] = 0
        nodes = max(2 * self.leaves - 1, len(self.work))
        self.sizes = np.empty(most, np.int64)
        self.out = GrownTree.leaf(most * (nodes + 1))
        self._reserve(nodes)
        self.pool.reserve(2 + self.leaves // 2, 0)  # as many as pairs, a level at a time
        rules = self._rules()
        while (asked := self._advance(rules, descent, newton, most)) != DONE:
            found = int(self.state[FOUND])
            if asked == DIVERGED:
                raise ValueError(
                    "gradients are not finite: the loss diverges, lower the learning rate"
                )
            if asked == PAY:
                self._pay()
            elif asked == OPEN:
                self._open_accounts()
            elif asked == SCORE:
                self._score()
            else:
                self.pool.reserve(int(self.state[SLOTS]) + found, 0)
                self._reserve(self.count + 2 * found)
        if self.count == 1:
            self.pool.count_root()
        return self._grown()

    def _advance(self, rules: Rules, descent: Descent, newton: Newton, trees: int) -> int:
        """Grow as far as the kernel can by itself; return what it asks for."""
        most, n = self.settings.max_leaves, len(self.rows)
        self.buffers = self._buffers(newton)
        alone = WORTH if self.crew.threads > 1 else np.iinfo(np.int64).max
        extent = Extent(trees, n if most is None else most, alone)
        return int(grow(self.buffers, rules, extent, descent, self.scratch))

    def _score(self) -> None:
        """Score the leaves that wait, on all threads: each takes some words of the features."""
        buffers, words = self.buffers, len(self.pool.groups)

        def piece(start: int, stop: int) -> None:
            # each thread has its own highest gains, so that no result depends on another thread
            tree = buffers.tree._replace(reached=np.empty(len(buffers.tree.reached)))
            score(buffers._replace(tree=tree), start, stop, np.zeros(SCRATCH, np.int64))

        self.crew.run(piece, words, -(-words // (PIECES * self.crew.threads)))
        nodes = self.work[: self.state[WAITING], 5:7]
        self.nodes.integers[nodes[nodes >= 0], growth.STATE] = growth.SCORED
        self.state[[WAITING, FOUND]] = 0

    def _buffers(self, newton: Newton) -> Buffers:
        pool, values = self.pool, (self.fixed.values, self.pool.values)
        cuts = self.nodes, pool.gain, pool.cut, pool.reached
        room = self.moves, self.work, self.root
        growing = Growing(self.state, self.sizes, *cuts, *room, self.steps, self.values)
        rows = Rows(self.words, self.rows, self.spare, *values, self.copies)
        usable = UsableFeatures(
            pool.groups, pool.begins, pool.features, self.counts, *self.edges, pool.few_rows
        )
        sums, owed = pool.sums(), self._owed()
        carried, out = pool.carried, self.out
        return Buffers(growing, rows, usable, sums, owed, pool.limits, carried, newton, out)

    def _owed(self) -> Owed:
        account = self.account
        return Owed(account.coupled_owed, account.lazy_owed, account.ledger.penalty.split)

    def _rules(self) -> Rules:
        s = self.settings
        depth = -1 if s.max_depth is None else s.max_depth
        above, always = s.charge == "tree", s.stop == "raw" or s.charge == "node"
        every, level = self._any_order(), s.order == "level"
        return Rules(depth, s.min_rows, float(s.l2), level, every, above, always)

    @property
    def count(self) -> int:
        """Number of nodes."""
        return int(self.state[COUNT])

    def _reserve(self, nodes: int) -> None:
        if nodes > len(self.work):
            self._reserve_nodes(nodes)
        needed = int(self.state[WRITTEN] + self.state[TREES]) + len(self.work) + 1
        if needed > len(self.out.feature):
            longer = GrownTree.leaf(needed)
            for old, new in zip(self.out, longer, strict=True):
                new[: len(old)] = old
            self.out = longer

    def _reserve_nodes(self, nodes: int) -> None:
        integers, scores = self.nodes
        self.nodes = Nodes(grown(integers, nodes), grown(scores, nodes))
        self.moves = grown(self.moves, nodes)
        self.work = grown(self.work, nodes)
        self.steps, self.values = grown(self.steps, nodes), grown(self.values, nodes)
        self.pool.reserve(0, nodes)

    def _any_order(self) -> bool:
        """True if best-first growth makes the same splits in any order: there is room for all of
        them, and no split changes what another leaf owes. Then whole levels are split and scored,
        because their leaves share cache lines of the rows' words."""
        s = self.settings
        if s.order != "best" or s.max_depth is None:
            return False
        if self.account.coupled_owed.any():
            return False
        return s.max_leaves is None or s.max_leaves.bit_length() > s.max_depth

    def _pay(self) -> None:
        """Pay the splits that were found."""
        account = self.account
        moves = self.moves[: self.state[FOUND]]
        owed, refunded = account.coupled_owed, False
        for node, begin, end, feature in moves[:, :4].tolist():
            refunded |= account.pay(node, feature, self.rows[begin:end])
        if refunded:
            self._reconsider(account.coupled_owed < owed)
        self.state[PAID] = True

    def _open_accounts(self) -> None:
        """Open those of the children that the splits have made."""
        moves = self.moves[: self.state[FOUND]]
        first = self.count - 2 * len(moves)
        for move, (node, middle) in enumerate(moves[:, [NODE, MIDDLE]].tolist()):
            self._divide_account(node, first + 2 * move, middle)

    def _reconsider(self, cheaper: BoolArray) -> None:
        """Open leaves choose again now that some features (d,) owe less, whose gains may have been
        left out."""
        table = self.nodes.integers[: self.count]
        scored = (table[:, growth.LEFT] < 0) & (table[:, growth.STATE] != growth.NEW)
        nodes = np.flatnonzero(scored)
        table[nodes, growth.STATE] = growth.SCORED
        pairs = np.full((len(nodes), 7), -1)  # each by itself, as ``best_cuts`` reads it
        pairs[:, 2], pairs[:, 5] = table[nodes, growth.SLOT], nodes
        pool, features = self.pool, self.pool.features[cheaper[self.pool.features]]
        sums, reached = pool.sums(), np.full(len(pool.gain), -np.inf)
        how = pool.limits, self._owed(), pool.gain, pool.cut, reached
        if pool.few_rows:
            rows, words = self.buffers.rows, np.unique(features // CODES_PER_WORD)
            search(rows.words, rows.rows, rows.values, self.nodes, pairs, words, sums, *how)
        else:
            units = Units(sums.count_bits, *sums.units.tolist())
            best_cuts(sums.hist, pairs, features, sums.first, units, *how)

    def _divide_account(self, parent: int, left: int, middle: int) -> None:
        table = self.nodes.integers
        begin, end = (int(table[parent, column]) for column in (growth.BEGIN, growth.END))
        smaller_left = middle - begin <= end - middle
        small, large = (left, left + 1) if smaller_left else (left + 1, left)
        rows = self.rows[begin:middle] if smaller_left else self.rows[middle:end]
        counts = (int(table[parent, growth.COUNT]), int(table[small, growth.COUNT]))
        self.account.divide(parent, small, large, counts, rows)

    def _grown(self) -> list[GrownTree]:
        """The trees that are done; they buy what is free."""
        o, trees, node, leaf = self.out, [], 0, 0
        written = int(self.state[WRITTEN])
        if 2 * written < len(o.feature):  # what is kept is not mostly room
            kept: list[Any] = [array[: written + 1].copy() for array in o]
            o = GrownTree(*kept)
        for count in self.sizes[: self.state[TREES]].tolist():
            a, b = slice(node, node + count), slice(leaf, leaf + (count + 1) // 2)
            splits = o.feature[a], o.threshold[a], o.missing_left[a], o.left[a], o.right[a]
            trees.append(GrownTree(*splits, o.value[a], o.leaves[b], o.ends[b], o.spans[b]))
            node, leaf = a.stop, b.stop
        self.account.end(o.feature[:node])
        return trees
