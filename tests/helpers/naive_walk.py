"""The naive walk: rows pass a program tree by tree, in plain Python and numpy.

It is the reference for the compiled walks: ``NaivePredictor`` serves rows by it.
"""

from __future__ import annotations

from math import nan

import numpy as np
from bench_trees.ensemble import VECTOR

from bench_core.arrays import FloatArray
from bench_core.costs.model import pays_by_row
from bench_core.data import Queries
from bench_core.serving import Predictor
from bench_core.serving.gates import answers, leave, with_columns, with_prices
from bench_core.serving.program import Program, segments
from bench_core.serving.row_state import (
    CAPPED,
    HOW,
    Answer,
    FeatureNeeds,
    Rounds,
    RowPurchases,
    WalkedRows,
    Way,
    bill,
    side_by_side,
)


class Lists:
    """A program as lists, the fastest form for plain Python."""

    def __init__(self, program: Program) -> None:
        tree = program.trees
        self.root = tree.start[:-1].tolist()
        self.feature, self.threshold = tree.feature.tolist(), tree.threshold.tolist()
        self.left, self.right = tree.left.tolist(), tree.right.tolist()
        self.missing_left, self.value = tree.missing_left.tolist(), tree.value.tolist()
        self.output, self.multiplier = tree.output.tolist(), program.multiplier.tolist()
        self.vectors = [] if tree.vectors is None else tree.vectors.tolist()
        self.uses = [
            list(zip(s.trees.tolist(), s.weights.tolist(), s.fresh.tolist(), strict=True))
            for s in program.steps
        ]
        self.reads = [step.reads for step in program.steps]
        self.segments = segments(program)

    def child(self, node: int, x: float) -> int:
        """Return the child of a split for a cell."""
        goes_left = self.missing_left[node] if x != x else x <= self.threshold[node]
        onward: int = self.left[node] if goes_left else self.right[node]
        return onward


class NaiveWalk:
    """A walk of ``count`` rows, without ``queries`` one query each."""

    def __init__(
        self,
        program: Program,
        lists: Lists,
        needs: FeatureNeeds,
        count: int,
        queries: Queries | None,
        cap: float | None,
    ) -> None:
        self.program, self.capped, self._lists, self._needs = program, cap is not None, lists, needs
        self.rows = WalkedRows(program, count)
        self.purchases = [RowPurchases(needs, cap) for _ in range(count)]
        self.boundaries = None if queries is None else queries.boundaries
        self._cells = [[nan] * len(lists.multiplier) for _ in range(count)]
        self._ahead_of = [-1] * count  # the last step whose features were bought ahead

    def rounds(self) -> Rounds:
        """Walk all rows to their ends.

        Without a cap a row requests all features that the trees of a segment (``segments``) always
        need at once. With a cap it makes one purchase after another.
        """
        rows = self.rows
        for number, step in enumerate(self.program.steps):
            there = np.flatnonzero(rows.next == number)
            yield from side_by_side({i: self._visit(i, number) for i in there.tolist()})
            here = there[rows.how[there] != CAPPED]
            if len(here) == 0:
                continue
            if self._lists.reads[number]:
                cells = np.array([self._cells[i] for i in here.tolist()], dtype=np.float32)
                rows.sums[here] = with_columns(step, rows.sums[here], cells, np.arange(len(here)))
            rows.sums[here] = with_prices(step, rows.sums[here], rows.prices, here)
            own, splits = rows.sums[here], rows.splits[here]
            rows.arrive(here, number, step.combine, own, rows.bits[here], splits, rows.trees[here])
            leave(self.program, number, here, rows, self.boundaries)
        scores, spent, last = answers(self.program, rows, self.boundaries), self._bill(), []
        for i, bought in enumerate(self.purchases):
            score = scores[i].copy() if scores.ndim > 1 else float(scores[i])
            asked = np.array(list(bought.features), dtype=np.int64)
            how = HOW[rows.how[i]]
            last.append(Answer(score, float(spent[i]), asked, int(rows.final_step[i]), how))
        return last

    def _bill(self) -> FloatArray:
        """Return the rows' costs; if each row pays a sum of prices, as compared with a cap."""
        rows, prices = self.rows, self._needs.prices
        by_row = pays_by_row(self._needs.costs)
        if prices is not None and (self.boundaries is None or by_row):
            price = np.array([bought.price for bought in self.purchases])
            return price + (prices.split * rows.splits + prices.tree * rows.trees)
        queries = Queries(self.boundaries) if self.boundaries is not None else None
        acquired = self._needs.acquired(bought.bits for bought in self.purchases)
        return bill(self._needs.costs, acquired, rows.splits, rows.trees, queries)

    def _ask(self, i: int, asked: list[int]) -> Way:
        """Request features of a row, and put their values into its cells."""
        values = np.empty(len(asked), np.float32)
        yield np.array(asked, dtype=np.int64), values
        for f, value in zip(asked, values.tolist(), strict=True):
            self._cells[i][f] = value

    def _visit(self, i: int, number: int) -> Way:
        """Walk one row through the trees of a step, and buy the features of its columns."""
        rows, step, bought = self.rows, self.program.steps[number], self.purchases[i]
        tree, cells = self._lists, self._cells[i]
        if not self.capped and self._ahead_of[i] < number:
            yield from self._ahead(i, number)
            self._ahead_of[i] = tree.segments[number]
        own = ((rows.sums[i] if step.carry else 0.0) + step.bias).tolist()
        splits, trees = float(rows.splits[i]), float(rows.trees[i])
        for t, weight, fresh in tree.uses[number]:
            node, path = tree.root[t], 0.0
            while (f := tree.feature[node]) >= 0:
                path += tree.multiplier[f]
                due = (splits + path, trees + 1) if fresh else (splits, trees)
                asked: list[int] | None = []
                if fresh and self.capped and not bought.affords(*due):
                    asked = None
                elif f not in bought.features:
                    asked = bought.buy([f], *due)
                if asked is None:
                    return rows.end_capped(i, splits, trees)
                if asked:
                    yield from self._ask(i, asked)
                node = tree.child(node, cells[f])
            if fresh and tree.feature[tree.root[t]] >= 0:
                splits, trees = splits + path, trees + 1
            if tree.output[t] == VECTOR:
                leaf = tree.vectors[int(tree.value[node])]
                own = [a + b for a, b in zip(own, leaf, strict=True)]
            else:
                own[tree.output[t]] += tree.value[node] * weight
        if wanted := [f for f in tree.reads[number] if f not in bought.features]:
            asked = bought.buy(wanted, splits, trees)
            if asked is None:
                return rows.end_capped(i, splits, trees)
            yield from self._ask(i, asked)
        rows.sums[i], rows.splits[i], rows.trees[i] = own, splits, trees
        return None

    def _ahead(self, i: int, number: int) -> Way:
        """Buy all features that a row needs in the segment that starts with a step."""
        tree, cells, known = self._lists, self._cells[i], self.purchases[i].features
        steps = range(number, tree.segments[number] + 1)
        nodes = [tree.root[t] for k in steps for t, _, _ in tree.uses[k]]
        wanted = [f for k in steps for f in tree.reads[k]]
        while nodes or wanted:
            nodes = [node for node in nodes if tree.feature[node] >= 0]
            wanted += [tree.feature[node] for node in nodes]
            if wanted := [f for f in dict.fromkeys(wanted) if f not in known]:
                yield from self._ask(i, self.purchases[i].buy(wanted) or [])
            nodes = [tree.child(node, cells[tree.feature[node]]) for node in nodes]
            wanted = []


class NaivePredictor(Predictor):
    """A predictor whose rows, if few or under a cap, take the naive walk."""

    @property
    def _row_walk(self):
        return self

    def rounds(self, count, queries, cap, watch=None, own=None):
        walk = NaiveWalk(self.program, Lists(self.program), self._needs, count, queries, cap)
        return walk.rounds()
