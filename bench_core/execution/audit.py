"""Replay audit: checks that purchases and predictions depend only on values bought before.

Queries are gathered in random order, with their rows shuffled. Scores and costs must equal the
trial's own, so that they depend only on the query. Then, at a point of the path, one of four proofs
shows the inputs of its predictions:

- *asked again*: the model has a program (``serving.Exportable``), which must buy and predict the
  same. In the sample it receives a cell when it has bought it; other rows are walked in blocks.
- *all alike*: all rows buy the same, so that purchases carry no information. All other cells are
  replaced, once by NaN and once by other rows' values; predictions must not change.
- *masked*: the model is a policy (``bench_core/sequential.py``). The harness itself hides unbought
  cells, and reveals them one by one. Under each cap and at single points, an instance that has
  answered nothing else must do the same, and so must the policy's program. Metered prices of
  sensors that a row did not buy are replaced, too, and nothing may change.
- *in order*: bills declare the ``order`` of purchases. The check of *all alike* applies. The model
  also sees only a row's purchases before a random step, and must buy the same in that step.

At other points replaced cells must not change anything either, but this proves little. The
remaining cells reveal the purchases, and a model that read everything could encode it in its
purchases. Costs are then only ``declared``.

``sample`` audits a few hundred queries or rows, each at one point. ``full`` then audits all of them
at every point. A separate instance of the model receives the replaced cells, in a ``full`` audit in
a new process. It has never seen the hidden values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.contracts import model_of
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.costs.by_row import ByRow, on_rows
from bench_core.costs.model import CostModel, pays_by_row
from bench_core.data import Examples, Features, Queries
from bench_core.errors import UsageError, check_memory
from bench_core.execution.contract import ContractError, plain, predictions
from bench_core.execution.predict import (
    BLOCK_ROWS,
    PredictedPath,
    gather,
    keeps_caps,
    predict_split,
    readable,
    units,
)
from bench_core.execution.score_comparison import TOLERANCE, Spread, close, spreads
from bench_core.results.budgets import CAP
from bench_core.results.records import Verdict
from bench_core.sequential import Sequential, StoredPolicy
from bench_core.serving import Exportable, Folder, Predictor
from bench_core.serving.policy_program import ServedProgram

SAMPLE_QUERIES, SAMPLE_ROWS = 200, 512
SAMPLE_PROGRAMS = 10
"""Points at which a sample evaluates the program: preparing one is as slow as evaluating rows."""
SPREAD_ROWS = 1000
"""Rows whose scores give the scale of changes."""

REMEDY = (
    "give the model a program, write it as a policy, buy the same sensors for all rows, or declare "
    "the order on its bills"
)


class AuditError(Exception):
    """A prediction uses unpaid values; the message is the reason."""


def replay(
    model: Any,
    examples: Examples,
    costs: CostModel,
    classes: int,
    mode: str = "sample",
    *,
    seed: str = "",
    path: PredictedPath | None = None,
    accounting: str = "path",
    fresh: Callable[[], Any] | None = None,
) -> Verdict:
    """Audit a model on a split. ``mode`` is off, sample or full; ``seed`` any text.

    ``path`` is the trial's prediction of the split, with costs by ``accounting``; it is computed if
    not given. ``fresh`` loads the model again.
    """
    if mode == "off":
        return Verdict("declared")
    rng = np.random.default_rng(list(seed.encode()))
    try:
        priced = path is None or accounting == "path"
        path = path or predict_split(model, examples, costs, classes)
        audit = _Audit(model, fresh or (lambda: model), examples, costs, classes, path, priced, rng)
        audit.alone(mode == "full")
        audit.sample()
        if mode == "full":
            audit.all_queries()
    except (AuditError, ContractError) as found:
        return Verdict("failed", str(found))
    if audit.unproven:
        point = dict(path.points[min(audit.unproven)])
        return Verdict("declared", f"rows buy differently at {point}; {REMEDY}")
    return Verdict("verified" if mode == "full" else "sampled")


class _Answer(NamedTuple):
    """A model's predictions at one point for n rows."""

    scores: FloatArray  # (n,) or (n, K)
    bits: NDArray[np.uint64]  # (n, w), sets of sensors
    splits: FloatArray  # (n,)
    trees: FloatArray  # (n,)
    order: IntArray | None  # (n, s), if its bill declares one

    @classmethod
    def of(cls, prediction: Prediction, n: int) -> _Answer:
        """Copy a prediction for n rows."""
        bill = prediction.bills["path"]
        bits, order = np.array(bill.acquired.rows(n).bits), bill.order
        splits, trees = (np.array(np.broadcast_to(c, (n,))) for c in (bill.splits, bill.trees))
        if order is not None:
            order = np.array(np.broadcast_to(order, (n, order.shape[1])))
        return cls(np.array(prediction.scores), bits, splits, trees, order)

    def compared(
        self, other: _Answer, scale: list[Spread], queries: Queries | None
    ) -> Iterator[tuple[str, BoolArray]]:
        """Yield possible changes, in words, and the rows (n,) without this change."""
        yield "it buys other sensors", (self.bits == other.bits).all(axis=1)
        yield "its splits change", self.splits == other.splits
        yield "its trees change", self.trees == other.trees
        yield "its scores change", close(self.scores, other.scores, scale, queries)

    def buys_like(self, other: _Answer) -> bool:
        """True if all rows buy the same, in the same order."""
        if self.order is None or other.order is None:
            return self.order is other.order and np.array_equal(self.bits, other.bits)
        return np.array_equal(self.order, other.order)


Judged = Sequence[tuple[int, IntArray]]
"""Points, and the rows of a block to audit there."""


class _Block(NamedTuple):
    """Gathered queries (or rows), and the model's predictions."""

    features: Features
    rows: IntArray  # (n,) of the split
    unit_of: IntArray  # (n,) position of each row's query in ``chosen``
    chosen: IntArray  # (q,) queries of the split
    answers: list[_Answer]  # by point

    def require(self, same: BoolArray, rows: IntArray, point: Any, what: str) -> None:
        """Raise for the first of these rows that is not the ``same`` (as long as ``rows``)."""
        if not same.all():
            unit = "row" if self.features.queries is None else "query"
            query = self.chosen[self.unit_of[rows[np.argmin(same)]]]
            raise AuditError(f"{unit} {query} at {dict(point)}: {what}")


@dataclass(eq=False)
class _Audit:
    """Audit of one model on one split."""

    model: Any
    fresh: Callable[[], Any]
    examples: Examples
    costs: CostModel
    classes: int
    path: PredictedPath
    priced: bool  # True if ``path`` has costs and purchases of the audited bill
    rng: np.random.Generator
    unproven: set[int] = field(default_factory=set)  # points with only declared costs
    _scales: dict[int, list[Spread]] = field(default_factory=dict, init=False)

    def sample(self) -> None:
        """Audit a few hundred queries or rows, each at one point of the path."""
        sizes = np.diff(units(self.examples.features))
        order = self.rng.permutation(len(sizes))
        points = self.rng.permutation(len(self.path.points))
        most = SAMPLE_ROWS if self.examples.queries is None else SAMPLE_QUERIES
        if isinstance(self.model, Exportable):  # its program is evaluated row by row
            most = min(most, 1 + int(np.searchsorted(np.cumsum(sizes[order]), SAMPLE_ROWS)))
            points = points[:SAMPLE_PROGRAMS]
        # at most half of the split, so that the block differs from the trial's blocks
        block = self._block(order[: min(most, max(1, len(sizes) // 2))])
        self._without_others(block)
        at = np.resize(points, len(block.chosen))[block.unit_of]
        self._judge(block, [(p, np.flatnonzero(at == p)) for p in np.unique(at).tolist()], True)

    def all_queries(self) -> None:
        """Audit every query at every point, in blocks of queries in random order."""
        bought = self.path.bought[: len(self.path.points)]
        weights, buyers = self.examples.weights, np.zeros_like(bought)
        for chosen in self._in_blocks():
            block = self._block(chosen)
            buyers += [weights[block.rows] @ self._mask(answer.bits) for answer in block.answers]
            every, left = np.arange(len(block.rows)), list(range(len(block.answers)))
            while left:  # points with equal purchases are audited together
                first = block.answers[left[0]]
                alike = [p for p in left if block.answers[p].buys_like(first)]
                self._judge(block, [(p, every) for p in alike])
                left = [p for p in left if p not in alike]
        if self.priced and not np.allclose(buyers, bought * weights.sum(), TOLERANCE):
            raise AuditError("its purchases differ from the trial's, sensor by sensor")

    def _block(self, chosen: IntArray) -> _Block:
        """Predict these queries, and compare with the trial's predictions."""
        keeps_order = getattr(self.model, "reads_order", False)
        features, rows, unit_of = gather(
            self.examples.features, chosen, None if keeps_order else self.rng
        )
        answers = self._answers(self.model, features, "in another block of queries", finite=True)
        block = _Block(features, rows, unit_of, chosen, answers)
        for p, answer in enumerate(answers):
            depend = "depend on rows outside the query, on their order or on chance"
            self._as_in_the_trial(block, p, answer, depend)
        return block

    def _as_in_the_trial(self, block: _Block, k: int, answer: _Answer, depend: str) -> None:
        """Compare the answers for a block with the trial's at point k of its arrays, which may be
        that of a cap."""
        point, rows = (*self.path.points, *self.path.others)[k], block.rows
        every, queries = np.arange(len(rows)), block.features.queries
        same = close(self.path.scores[k][rows], answer.scores, self._scale(k), queries)
        block.require(same, every, point, f"its scores {depend}")
        if not self.priced:
            return
        spent = self.path.cost[k][rows]
        same = np.abs(self._cost(block, answer) - spent) <= TOLERANCE * spent
        block.require(same, every, point, f"its costs {depend}")
        # sensors may have equal prices: compare the purchases as well
        bought, share = self._mask(answer.bits), self.path.bought[k]
        same = ~((bought & (share == 0)) | (~bought & (share == 1))).any(axis=1)
        block.require(same, every, point, f"its purchases {depend}")

    def _scale(self, k: int) -> list[Spread]:
        """Spreads of the trial's scores at point k, from some of its rows."""
        if k not in self._scales:
            queries, rows = self._some_rows
            self._scales[k] = spreads(self.path.scores[k][rows], queries)
        return self._scales[k]

    @cached_property
    def _some_rows(self) -> tuple[Queries | None, IntArray]:
        """Queries with about ``SPREAD_ROWS`` rows together (or rows), at random."""
        features = self.examples.features
        chosen = self._drawn(SPREAD_ROWS)
        some, rows, _ = gather(Features(features.X[:, :0], features.queries), chosen)
        return some.queries, rows

    def _drawn(self, rows: int) -> IntArray:
        """Random queries (or rows) until they have so many rows."""
        sizes = np.diff(units(self.examples.features))
        order = self.rng.permutation(len(sizes))
        return order[: 1 + int(np.searchsorted(np.cumsum(sizes[order]), rows))]

    def alone(self, whole: bool) -> None:
        """Ask a policy at single points and caps, each on an instance that has answered at no
        other: what it keeps of a row's cells must not serve another answer. Caps come first.

        ``whole``: all rows, and all points. At points of a ``nested`` policy a row has paid for
        all that it saw at earlier points.
        """
        if type(self.model) is not Sequential:
            return
        points = self.rng.permutation(len(self.path.points)).tolist()
        caps: list[int] = []
        if keeps_caps(self.model, self.costs):
            others = enumerate(self.path.others, start=len(points))
            caps = [k for k, point in others if CAP in point]
        nested = getattr(self.model.policy, "nested", False)
        if whole:
            parts = self._in_blocks()
            questions = [(k, parts) for k in caps + [p for p in points if not nested]]
        else:
            numbers, some = caps + points[:SAMPLE_PROGRAMS], self._drawn(SAMPLE_ROWS)
            questions = [(k, [some[n :: len(numbers)]]) for n, k in enumerate(numbers)]
        for k, parts in questions:
            model = self.fresh()
            for chosen in filter(len, parts):
                self._ask_alone(model, k, chosen)

    def _ask_alone(self, model: Any, k: int, chosen: IntArray) -> None:
        features, rows, unit_of = gather(self.examples.features, chosen)
        block = _Block(features, rows, unit_of, chosen, [])
        point, n = (*self.path.points, *self.path.others)[k], len(rows)
        costs = on_rows(self.costs, self.examples, rows)

        def asked(costs: CostModel) -> _Answer:
            answer = (
                model.predict_capped(features, point[CAP], costs)
                if CAP in point
                else model.predict_at(features, point)
            )
            return _Answer.of(plain(answer, n, self.costs, self.classes), n)

        try:
            answer = asked(costs)
            others = self._at_other_prices(costs, answer) if CAP in point else None
            replaced = answer if others is None else asked(others)
        except Exception as error:
            check_memory(error)
            what = f"it raises {type(error).__name__}: {error}"
            raise AuditError(f"asked at {dict(point)} alone, {what}") from error
        self._as_in_the_trial(block, k, answer, "depend on its answers at other points or caps")
        doing = "where metered prices that it did not pay are replaced by other rows'"
        for what, same in answer.compared(replaced, self._scale(k), features.queries):
            block.require(same, np.arange(n), point, f"{doing}, {what}")

    def _at_other_prices(self, costs: CostModel, answer: _Answer) -> CostModel | None:
        """Return the cost model of rows with metered prices of other rows where they bought
        nothing; None if no price is metered."""
        if not isinstance(costs, ByRow) or costs.quoted.all():
            return None
        of_rows, priced = costs.of_rows.copy(), costs.priced
        hidden, paid = ~self._mask(answer.bits)[:, priced] & ~costs.quoted, of_rows[:, priced]
        of_rows[:, priced] = np.where(hidden, self.rng.permuted(paid, axis=0), paid)
        return replace(costs, of_rows=of_rows)

    def _in_blocks(self) -> list[IntArray]:
        """All queries (or rows) in random order, in blocks."""
        sizes = np.diff(units(self.examples.features))
        order = self.rng.permutation(len(sizes))
        number = np.cumsum(sizes[order]) // BLOCK_ROWS
        return np.split(order, np.flatnonzero(np.diff(number)) + 1)

    def _mask(self, bits: NDArray[np.uint64]) -> BoolArray:
        return Acquired(bits, self.costs.sensors).unpack()

    def _cost(self, block: _Block, answer: _Answer) -> FloatArray:
        """Cost (n,) of an answer."""
        bill = Bill(Acquired(answer.bits, self.costs.sensors), answer.splits, answer.trees)
        copies, n = self.examples.weights[block.rows], len(block.rows)
        costs = on_rows(self.costs, self.examples, block.rows)
        feature = bill.feature_cost(costs, n, block.features.queries, copies)
        return feature + bill.evaluation_cost(costs, n)

    def _answers(
        self, model: Any, features: Features, doing: str, finite: bool = False
    ) -> list[_Answer]:
        """Predictions of the model at all points on a copy of a block."""
        copy = replace(features, X=features.X.copy())  # to detect changes
        points, answers = [], []
        try:
            for prediction in predictions(model, copy, self.costs, self.classes, finite=finite):
                points.append(dict(prediction.point))
                answers.append(_Answer.of(prediction, len(copy)))
        except Exception as error:
            check_memory(error)
            kind = "" if isinstance(error, ContractError) else f"it raises {type(error).__name__}: "
            raise AuditError(f"{doing}: {kind}{error}") from error
        if points != [dict(point) for point in self.path.points]:
            raise AuditError(f"{doing}: its path changes")
        if copy.X.tobytes() != features.X.tobytes():
            raise AuditError("it modifies its input cells; let it work on a copy")
        return answers

    def _without_others(self, block: _Block) -> None:
        """Omit half of the rows of each query, if rows are declared independent."""
        queries = block.features.queries
        alone = model_of(self.model).independent_rows
        if queries is None or not alone:
            return
        sample = self.rng.random(len(block.rows)) < 0.5
        sample[queries.boundaries[:-1]] = True
        sizes = np.add.reduceat(sample.astype(np.int64), queries.boundaries[:-1])
        prices = block.features.prices
        prices = None if prices is None else prices[sample]
        fewer = Features(block.features.X[sample], Queries.from_sizes(sizes), prices)
        doing = "where other rows of its query are left out, although it has independent_rows"
        answers, those = self._answers(self.model, fewer, doing), np.flatnonzero(sample)
        paired = zip(self.path.points, block.answers, answers, strict=True)
        for p, (point, before, after) in enumerate(paired):
            parts: Any = (None if part is None else part[those] for part in before)
            expected = _Answer(*parts)
            for what, same in expected.compared(after, self._scale(p), fewer.queries):
                block.require(same, those, point, f"{doing}, {what}")

    def _judge(self, block: _Block, judged: Judged, sampled: bool = False) -> None:
        """Find the proof for each of these points, or raise."""
        masked = type(self.model) is Sequential  # its program is compared only in the sample
        hidden = []
        for p, rows in judged:
            program = None if masked and not sampled else self._program(p)
            if program is not None:
                self._ask(block, p, rows, program, sampled)
                continue
            if masked:
                continue
            hidden.append((p, rows))
            # a sensor that all rows buy, or none, carries no information
            alike = np.isin(self._bought[p], (0.0, 1.0)).all()
            if not alike and block.answers[p].order is None:
                self.unproven.add(p)
        if hidden:
            self._hide(block, hidden)
        if ordered := [(p, rows) for p, rows in hidden if block.answers[p].order is not None]:
            self._follow(block, ordered)

    @cached_property
    def _bought(self) -> FloatArray:
        """Fraction of rows that buy each sensor at each point, (p, s)."""
        if self.priced:
            return self.path.bought
        return predict_split(self.model, self.examples, self.costs, self.classes).bought

    def _program(self, p: int) -> ServedProgram | None:
        if not isinstance(self.model, Exportable):
            return None
        try:
            found: ServedProgram = self.model.program(self.path.points[p])
            return None if isinstance(found, StoredPolicy) else found
        except UsageError:  # no program at this point
            return None
        except Exception as error:
            raise AuditError(f"its program raises {type(error).__name__}: {error}") from error

    def _ask(
        self,
        block: _Block,
        p: int,
        rows: IntArray,
        program: ServedProgram,
        on_demand: bool,
    ) -> None:
        """Evaluate the program and compare, in the sample on demand: ten times as slow."""
        features, here, _ = gather(block.features, np.unique(block.unit_of[rows]))
        queries = features.queries
        names = tuple(map(str, range(features.X.shape[1])))
        predictor, row_prices = Predictor(Folder(program, self.costs, names, {})), None
        if (columns := self.examples.price_columns) is not None and isinstance(self.costs, ByRow):
            row_prices = columns[block.rows[here]]
        answer = predictor.replay if on_demand else predictor.predict_features
        by_program, by_model = answer(features.X, queries, prices=row_prices), block.answers[p]
        bought = self._mask(by_model.bits[here])
        cost = self._cost(block, by_model)[here]
        # copies of a row may share its bill, which a program does not know
        price_by_row = pays_by_row(self.costs)
        shared = self.examples.multiplicity is not None and not price_by_row
        paid = shared | (np.abs(by_program.spent - cost) <= TOLERANCE * cost)
        for what, same in (
            ("it buys other sensors", (by_program.bought == bought).all(axis=1)),
            ("it pays for other splits or trees", paid),
            (
                "its scores change",
                close(by_model.scores[here], by_program.scores, self._scale(p), queries),
            ),
        ):
            block.require(same, here, self.path.points[p], f"asked again by its program, {what}")

    def _hide(self, block: _Block, judged: Judged) -> None:
        """Replace the values that rows did not buy."""
        visible = np.ones((len(block.rows), self.costs.sensors), dtype=bool)
        for p, rows in judged:
            visible[rows] = self._mask(block.answers[p].bits[rows])
        for doing, after in self._replaced(block, visible, "cells that it did not pay for"):
            for p, rows in judged:
                scale, queries = self._scale(p), block.features.queries
                for what, same in block.answers[p].compared(after[p], scale, queries):
                    block.require(same[rows], rows, self.path.points[p], f"{doing}, {what}")

    def _follow(self, block: _Block, judged: Judged) -> None:
        """Replace the values that rows had not bought before a random step of their order."""
        visible = np.ones((len(block.rows), self.costs.sensors), dtype=bool)
        steps = np.zeros(len(block.rows), dtype=np.int64)
        for p, rows in judged:
            order = np.asarray(block.answers[p].order)[rows]
            # one step for all rows of a query, from 0 to after its last purchase
            last = np.zeros(len(block.chosen), dtype=np.int64)
            np.maximum.at(last, block.unit_of[rows], order.max(axis=1) + 1)
            steps[rows] = self.rng.integers(0, last + 1)[block.unit_of[rows]]
            visible[rows] = (order >= 0) & (order < steps[rows, None])
        for doing, after in self._replaced(block, visible, "cells that it buys later"):
            for p, rows in judged:
                # a missing order counts as no purchases
                now = after[p].order if after[p].order is not None else np.full(visible.shape, -1)
                same = (_until(block.answers[p].order, steps) == _until(now, steps)).all(axis=1)
                what = f"{doing}, it buys other sensors next"
                block.require(same[rows], rows, self.path.points[p], what)

    @cached_property
    def _blind(self) -> Any:
        """Separate instance that receives replaced cells."""
        return self.fresh()

    def _replaced(
        self, block: _Block, visible: BoolArray, what: str
    ) -> Iterator[tuple[str, list[_Answer]]]:
        """Yield predictions of a separate instance that sees only cells of ``visible`` sensors (n,
        s), and a description of the replacement."""
        features, hidden = block.features, ~readable(visible, self.costs)
        others = self.rng.permuted(features.X, axis=0)  # shuffled by column: rows are mixed
        for by, values in (("NaN", np.float32(np.nan)), ("other rows' values", others)):
            doing = f"where {what} are replaced by {by}"
            X = np.where(hidden, values, features.X)
            yield doing, self._answers(self._blind, replace(features, X=X), doing)


def _until(order: Any, steps: IntArray) -> IntArray:
    """Order of the purchases up to these steps (n,)."""
    return np.where(order <= steps[:, None], order, -1)
