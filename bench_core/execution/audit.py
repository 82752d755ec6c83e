"""Replay audit: does a model read only what it paid for?

For each audited query one operating point is drawn, so that all points have their turn where there
are as many queries. All cells that the query's rows did not declare bought at that point are
replaced, once by NaN and once by other rows' values, and the same block is predicted again: scores,
acquired sensors, splits and trees of those rows at that point must be bitwise equal. Before that,
the OTHER queries of the block are replaced; scores must then agree to 1e-9 (a matrix product may
round otherwise) and bills exactly. The sample is gathered from the whole split in random order, so
it must also agree with what the same queries scored and cost in the trial's own blocks. Under each
cap (``caps.py``) all cells are replaced that a row had not bought when it was stopped: the point
that answers, its score and its purchases must stay.

Only the audited rows and points are judged: what another point, which pays for a cell that is NaN
now, makes of it is nobody's fault. Every call gets its own copy of the block, so that nothing can
be noted in it; the replaced blocks are best given to an instance that never saw the whole ones
(``blind``). Beyond reach are notes outside the model (a class, a module, a file) and what happens
in queries that are not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.costs.model import CostModel
from bench_core.data import Examples, Features, Queries
from bench_core.execution.caps import Answers, Caps, Ground
from bench_core.execution.predict import Block, ContractError, Path, blocks, predictions, units
from bench_core.execution.score import readable
from bench_core.results.records import Verdict

SAMPLE_QUERIES = 100
SAMPLE_ROWS = 256
TOLERANCE = 1e-9

Mask = NDArray[np.bool_]


class _PeekError(Exception):
    """What gave the model away."""


def replay(
    model: Any,
    examples: Examples,
    costs: CostModel,
    classes: int,
    mode: str = "sample",
    *,
    seed: str = "",
    path: Path | None = None,
    accounting: str = "path",
    blind: Any = None,
    caps: Caps | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Verdict:
    """Audit a model on a split. ``mode`` is off, sample or full; ``seed`` any text.

    ``path`` is what the trial's own prediction of this split gave, its costs by ``accounting``, to
    compare with. ``blind`` is the same model loaded anew, to be shown replaced cells only; without
    it a model could remember what it saw. ``caps`` are audited on the bill ``path`` alone.
    """
    if mode == "off":
        return Verdict("declared")
    rng = np.random.default_rng(list(seed.encode()))
    blind = model if blind is None else blind
    priced = accounting == "path"
    caps = caps if priced else None
    judge = _Judge(model, blind, costs, classes, rng, path, priced, examples.weights, caps)
    try:
        if mode == "full":
            for block in blocks(examples.features):
                judge.all_points(block, progress, len(examples))
            return Verdict("verified")
        judge.sample(examples)
    except _PeekError as found:
        return Verdict("failed", str(found))
    return Verdict("sampled")


@dataclass(slots=True, eq=False)
class _Answer:
    """What the audit compares, at one point of one block, one entry per row; ``bill`` as given."""

    point: Mapping[str, int | float]
    bill: Bill
    scores: FloatArray
    acquired: NDArray[np.uint64]
    splits: FloatArray
    trees: FloatArray

    @classmethod
    def of(cls, prediction: Prediction, n: int) -> _Answer:
        given = prediction.bills["path"]
        bought = Acquired(np.array(given.acquired.bits), given.acquired.sensors)
        bill = Bill(bought, np.array(given.splits, float), np.array(given.trees, float))
        return cls(
            prediction.point,
            bill,
            np.array(prediction.scores, dtype=np.float64),
            bought.rows(n).bits,
            np.broadcast_to(bill.splits, (n,)),
            np.broadcast_to(bill.trees, (n,)),
        )

    def cost(self, costs: CostModel, queries: Queries | None, copies: FloatArray) -> FloatArray:
        """What the cost model charges each row, (n,)."""
        n, bill = len(self.scores), self.bill
        return bill.feature_cost(costs, n, queries, copies) + bill.evaluation_cost(costs, n)

    def differs(self, other: _Answer, rows: NDArray[Any], tolerance: float = 0.0) -> str:
        """The first thing that is not equal on these rows, or nothing."""
        if dict(self.point) != dict(other.point):
            return "its points"
        for name in ("acquired", "splits", "trees"):
            if getattr(self, name)[rows].tobytes() != getattr(other, name)[rows].tobytes():
                return f"what it buys ({name})"
        a, b = self.scores[rows], other.scores[rows]
        if tolerance:
            scale = max(1e-300, float(np.abs(self.scores).max(initial=0.0)))
            same = bool(np.all(np.abs(a - b) <= tolerance * scale))
        else:
            same = a.tobytes() == b.tobytes()
        return "" if same else "its scores"


@dataclass(slots=True, eq=False)
class _Judge:
    """``path`` is the trial's own prediction, ``priced`` whether its costs are those of the audited
    bill, ``copies`` (n,) how many each row stands for, and ``caps`` those to be audited."""

    model: Any
    blind: Any
    costs: CostModel
    classes: int
    rng: np.random.Generator
    path: Path | None
    priced: bool
    copies: FloatArray
    caps: Caps | None

    def answers(
        self, model: Any, features: Features, doing: str, before: Sequence[_Answer] = ()
    ) -> list[_Answer]:
        """The model's answers on a copy of a block, as many as ``before`` it was changed; of an
        unchanged block they must be finite."""
        own = Features(features.X.copy(), features.queries)
        found = predictions(model, own, self.costs, self.classes, finite=not before)
        try:
            answers = [_Answer.of(p, len(own)) for p in found]
        except ContractError as error:
            raise _PeekError(f"{doing}: {error}") from error
        except Exception as error:
            raise _PeekError(f"{doing} it raises {type(error).__name__}: {error}") from error
        if before and len(answers) != len(before):
            raise _PeekError(f"{doing} its path has another length")
        return answers

    def sample(self, examples: Examples) -> None:
        """A hundred queries (or a few hundred rows), one point each."""
        half = SAMPLE_ROWS if examples.queries is None else SAMPLE_QUERIES
        count = len(units(examples.features)) - 1
        # never the whole split: a block of another size shows who keys on that
        chosen = self.rng.permutation(count)[: min(2 * half, max(1, 2 * count // 3))]
        features, rows, own = gather(examples.features, chosen)
        doing = "on a block of queries in another order"
        before = self.answers(self.model, features, doing)
        self._same_as_in_trial(before, features.queries, rows)
        audited = np.zeros(len(chosen), dtype=bool)
        audited[: max(1, len(chosen) // 2)] = True
        drawn = np.full(len(chosen), -1)
        drawn[audited] = np.resize(self.rng.permutation(len(before)), int(audited.sum()))
        self._strangers(features, before, audited[own])
        self._unpaid(features, before, drawn[own], own, chosen)
        self._capped(features, before, audited[own], self.copies[rows], own, chosen)

    def all_points(self, block: Block, progress: Callable[[int, int], None], total: int) -> None:
        """Every query of a block at every point."""
        features = block.features
        sizes = np.diff(units(features))
        own = np.repeat(np.arange(len(sizes)), sizes)
        numbers = np.arange(block.queries.start, block.queries.stop)
        before = self.answers(self.model, features, "predicting")
        here = np.arange(block.rows.start, block.rows.stop)
        self._same_as_in_trial(before, features.queries, here)
        for parity in (0, 1):
            self._strangers(features, before, own % 2 == parity)
        for p in range(len(before)):
            self._unpaid(features, before, np.full(len(features), p), own, numbers)
            progress(block.rows.start + (p + 1) * len(features) // len(before), total)
        every = np.ones(len(features), dtype=bool)
        self._capped(features, before, every, self.copies[here], own, numbers)

    def _same_as_in_trial(
        self, here: list[_Answer], queries: Queries | None, rows: IntArray
    ) -> None:
        path = self.path
        if path is None:
            return
        if [dict(a.point) for a in here] != [dict(p) for p in path.points]:
            raise _PeekError("its path changes with the block")
        for p, answer in enumerate(here):
            cost = answer.cost(self.costs, queries, self.copies[rows])
            compared = [("scores", answer.scores, path.scores[p], path.scale[p, 0])]
            if self.priced:
                compared.append(("costs", cost, path.cost[p], path.scale[p, 1]))
            for what, mine, trial, scale in compared:
                if bool(np.any(np.abs(mine - trial[rows]) > TOLERANCE * scale)):
                    at = f"at {dict(answer.point)}"
                    raise _PeekError(f"{at}: its {what} change with the block a query stands in")
            path.forget()

    def _unpaid(
        self,
        features: Features,
        before: list[_Answer],
        drawn: IntArray,
        own: IntArray,
        numbers: NDArray[Any],
    ) -> None:
        """Replace what row i did not buy at point ``drawn[i]`` (-1: leave the row alone)."""
        hidden = np.zeros(features.X.shape, dtype=bool)
        for p in np.unique(drawn[drawn >= 0]):
            rows = np.flatnonzero(drawn == p)
            bought = Acquired(before[p].acquired[rows], self.costs.sensors).unpack()
            hidden[rows] = ~readable(bought, self.costs)
        for doing, after in self._replaced(features, before, hidden):
            for p in np.unique(drawn[drawn >= 0]):
                if not before[p].differs(after[p], np.flatnonzero(drawn == p)):
                    continue
                for unit in np.unique(own[drawn == p]):
                    if what := before[p].differs(after[p], np.flatnonzero(own == unit)):
                        at = f"query {numbers[unit]} at {dict(before[p].point)}"
                        raise _PeekError(f"{at}: {doing}, {what} change")

    def _capped(
        self,
        features: Features,
        before: list[_Answer],
        kept: Mask,
        copies: FloatArray,
        own: IntArray,
        numbers: NDArray[Any],
    ) -> None:
        """Under each cap replace what the rows that are ``kept`` had not bought when stopped."""
        ground = Ground.of(self.model, self.costs, features.queries, copies)
        for k, limit in enumerate(self.caps.limits if self.caps else ()):
            answers = self._under(k, before, ground)
            seen = Acquired(answers.seen, self.costs.sensors).unpack()
            hidden = ~readable(seen, self.costs) & kept[:, None]
            for doing, after in self._replaced(features, before, hidden):
                again = self._under(k, after, ground)
                for unit in np.unique(own[kept]):
                    if what := answers.differs(again, np.flatnonzero(own == unit)):
                        at = f"query {numbers[unit]} under the cap {limit:g}"
                        raise _PeekError(f"{at}: {doing}, {what} change")

    def _under(self, k: int, path: list[_Answer], ground: Ground) -> Answers:
        """The answers under the ``k``-th cap."""
        assert self.caps is not None
        answers = self.caps.start(ground)[k]
        for at in path:
            answers.take(at.scores, at.bill, *ground.price(at.bill))
        return answers

    def _replaced(
        self, features: Features, before: list[_Answer], hidden: Mask
    ) -> Iterator[tuple[str, list[_Answer]]]:
        """The answers where the ``hidden`` cells are replaced, and in words by what."""
        donors = features.X[self.rng.permutation(len(features))]
        nan = np.full((), np.nan, dtype=np.float32)
        for by, values in (("NaN", nan), ("other rows' values", donors)):
            X = np.where(hidden, values, features.X).astype(np.float32, copy=False)
            doing = f"where cells it did not pay for are replaced by {by}"
            yield doing, self.answers(self.blind, Features(X, features.queries), doing, before)

    def _strangers(self, features: Features, before: list[_Answer], kept: Mask) -> None:
        """Replace all cells of the rows that are not ``kept``."""
        if bool(kept.all()) or not bool(kept.any()):
            return
        X: Float32Array = features.X.copy()
        X[~kept] = features.X[self.rng.integers(len(X), size=int((~kept).sum()))]
        doing = "where the other queries of its block are replaced"
        after = self.answers(self.model, Features(X, features.queries), doing, before)
        rows = np.flatnonzero(kept)
        for p, answer in enumerate(before):
            what = answer.differs(after[p], rows, TOLERANCE)
            if what:
                raise _PeekError(f"at {dict(answer.point)}: {doing}, {what} change for a query")


def gather(
    features: Features, chosen: Sequence[int] | IntArray
) -> tuple[Features, IntArray, IntArray]:
    """A block of the chosen queries (or rows) in that order, the rows it holds, and for each
    row the place of its query in ``chosen``."""
    boundaries = units(features)
    sizes = np.diff(boundaries)[chosen]
    rows = np.concatenate([np.arange(boundaries[u], boundaries[u + 1]) for u in chosen])
    queries = None if features.queries is None else Queries.from_sizes(sizes)
    X = np.array(features.X[rows], dtype=np.float32, order="C")
    return Features(X, queries), rows, np.repeat(np.arange(len(sizes)), sizes)
