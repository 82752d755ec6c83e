"""Replay audit: does a model read only what it paid for, and answer a query by that query alone?

Blocks are gathered in random order: queries across the split, rows within their query. Scores there
must agree to 1e-9 of each row's own (a matrix product may round otherwise; ``slack``), and costs,
with what the same rows scored and cost in the trial's own blocks; then the OTHER queries of a block
are replaced, and scores must agree again, and bills exactly. Last, all cells are replaced that the
rows of a query had not bought at one of its operating points, once by NaN and once by other rows'
values, mixed by column. At that point, and at
all points that bought nothing else, scores, acquired sensors, splits and trees of those rows must
be bitwise equal. Under each cap (``caps.py``) all cells are replaced that a row had not bought
when it was stopped: the point that answers, its score and its purchases must stay.

``sample`` does this for a few hundred rows, each once, and one point of each. ``full`` does the
same first, and then all of it for every query at every point; where the model can be exported it
also counts the splits and trees of some rows itself (``serving``).

Only the audited rows and points are judged: what another point, which pays for a cell that is NaN
now, makes of it is nobody's fault. Every call gets its own copy of the block, so that nothing can
be noted in it. What is replaced is shown to ``fresh`` instances, one for each kind of it and others
for the sample than for the rest, so that none has seen what it must not use; a stranger's live in
processes of their own (``host.py``).
``docs/trust.md`` lists what cannot be seen so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.class_names import is_shipped
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.costs.model import CostModel
from bench_core.data import Examples, Features, Queries
from bench_core.execution.caps import Answers, Caps, Ground
from bench_core.execution.contract import ContractError, HostedError, predictions
from bench_core.execution.predict import BLOCK_ROWS, Path, gather, predict_split, units
from bench_core.execution.recount import recount
from bench_core.execution.rounding import TOLERANCE, slack
from bench_core.execution.score import readable
from bench_core.results.records import Verdict

SAMPLE_QUERIES = 200
SAMPLE_ROWS = 512

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
    fresh: Callable[[], AbstractContextManager[Any]] | None = None,
    caps: Caps | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Verdict:
    """Audit a model on a split. ``mode`` is off, sample or full; ``seed`` any text.

    ``path`` is what the trial's own prediction of this split gave, its costs by ``accounting``, to
    compare with; the full audit makes it where it is not given. ``fresh`` loads the model anew, to
    be shown replaced cells only; without it a model could remember what it saw. ``caps`` are
    audited on the bill ``path`` alone.
    """
    if mode == "off":
        return Verdict("declared")
    rng = np.random.default_rng(list(seed.encode()))
    fresh = fresh or (lambda: nullcontext(model))
    priced = accounting == "path"
    caps = caps if priced else None
    try:
        if mode == "full" and path is None:
            path, priced = predict_split(model, examples, costs, classes), True
        judge = _Judge(model, fresh, costs, classes, rng, path, priced, examples, caps)
        judge.sample()
        if mode == "full":
            judge.whole(progress)
    except (_PeekError, ContractError) as found:
        return Verdict("failed", str(found))
    return Verdict("verified" if mode == "full" else "sampled")


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

    def differs(self, other: _Answer, rows: NDArray[Any], rounding: bool = False) -> str:
        """The first thing that is not equal on these rows, scores but for ``rounding``, or
        nothing."""
        if dict(self.point) != dict(other.point):
            return "its points"
        for name in ("acquired", "splits", "trees"):
            if getattr(self, name)[rows].tobytes() != getattr(other, name)[rows].tobytes():
                return f"what it buys ({name})"
        a, b = self.scores[rows], other.scores[rows]
        if rounding:
            same = bool(np.all(np.abs(a - b) <= slack(self.scores)[rows]))
        else:
            same = a.tobytes() == b.tobytes()
        return "" if same else "its scores"


@dataclass(slots=True, eq=False)
class _Judge:
    """``path`` is the trial's own prediction, ``priced`` whether its costs are those of the audited
    bill, and ``caps`` those to be audited."""

    model: Any
    fresh: Callable[[], AbstractContextManager[Any]]
    costs: CostModel
    classes: int
    rng: np.random.Generator
    path: Path | None
    priced: bool
    examples: Examples
    caps: Caps | None

    @property
    def copies(self) -> FloatArray:
        return self.examples.weights

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
            kind = "" if isinstance(error, HostedError) else f"{type(error).__name__}: "
            raise _PeekError(f"{doing} it raises {kind}{error}") from error
        if before and len(answers) != len(before):
            raise _PeekError(f"{doing} its path has another length")
        return answers

    def sample(self) -> None:
        """A few hundred queries or rows, each once and at one point, half of them as strangers."""
        most = SAMPLE_ROWS if self.examples.queries is None else SAMPLE_QUERIES
        count = len(units(self.examples.features)) - 1
        # never the whole split: a block of another size shows who keys on that
        chosen = self.rng.permutation(count)[: min(most, max(1, count - 1))]
        block = self._block(chosen)
        block.before = self.answers(
            self.model, block.features, "on a block of queries in another order"
        )
        self._same_as_in_trial(block)
        kept = self.rng.permutation(len(chosen)) < max(1, len(chosen) // 2)
        with self.fresh() as near:
            self._strangers(block, kept[block.own], near)
        points = self.rng.permutation(len(block.before))
        with self.fresh() as blind:
            self._unpaid(block, np.resize(points, len(chosen)), blind)
        if self.caps:
            with self.fresh() as capped:
                self._capped(block, capped)

    def whole(self, progress: Callable[[int, int], None]) -> None:
        """Every query at every point, in blocks of queries in random order."""
        features, done = self.examples.features, 0
        order = self.rng.permutation(len(units(features)) - 1)
        ends = np.cumsum(np.diff(units(features))[order])
        cuts = np.searchsorted(ends, np.arange(0, ends[-1] + BLOCK_ROWS, BLOCK_ROWS), side="right")
        with ExitStack() as stack:
            near, blind = (stack.enter_context(self.fresh()) for _ in range(2))
            capped = stack.enter_context(self.fresh()) if self.caps else None
            for chosen in np.split(order, np.unique(cuts[(cuts > 0) & (cuts < len(order))])):
                block = self._block(chosen)
                n = len(block.features)
                block.before = self.answers(self.model, block.features, "predicting")
                self._same_as_in_trial(block)
                for parity in (0, 1):
                    self._strangers(block, block.own % 2 == parity, near)
                drawn = block.places()
                for place, points in enumerate(drawn, start=1):
                    self._unpaid(block, points, blind)
                    progress(done + place * n // len(drawn), len(self.examples))
                if capped is not None:
                    self._capped(block, capped)
                done += n
        if not self.priced or self.path is None or not is_shipped(type(self.model)):
            return
        if wrong := recount(self.model, self.examples, self.costs, self.path, self.rng):
            raise _PeekError(wrong)

    def _block(self, chosen: IntArray) -> _Gathered:
        rng = None if reads_order(self.model) else self.rng
        features, rows, own = gather(self.examples.features, chosen, rng)
        return _Gathered(features, rows, own, chosen)

    def _same_as_in_trial(self, block: _Gathered) -> None:
        path, rows, queries = self.path, block.rows, block.features.queries
        if path is None:
            return
        if [dict(a.point) for a in block.before] != [dict(p) for p in path.points]:
            raise _PeekError("its path changes with the block")
        for p, answer in enumerate(block.before):
            cost = answer.cost(self.costs, queries, self.copies[rows])
            scores, spent = path.scores[p][rows], path.cost[p][rows]
            compared = [("scores", answer.scores, scores, slack(scores))]
            if self.priced:
                compared.append(("costs", cost, spent, TOLERANCE * spent))
            for what, mine, trial, near in compared:
                if bool(np.any(np.abs(mine - trial) > near)):
                    at = f"at {dict(answer.point)}"
                    raise _PeekError(f"{at}: its {what} change with the block a query stands in")
            path.forget()

    def _unpaid(
        self, block: _Gathered, drawn: IntArray, blind: Any, only: int | None = None
    ) -> None:
        """Replace what the rows of unit u did not buy at point ``drawn[u]`` (-1: leave it alone),
        and judge the unit at all points that bought nothing else, or at one ``only``.

        Where scores differ by rounding, which other rows may cause whose cells were replaced, the
        point is tried again with the cells replaced that nobody bought there.
        """
        before, own, at = block.before, block.own, drawn[block.own]
        bits = np.zeros((len(own), before[0].acquired.shape[1]), dtype=np.uint64)
        for p in np.unique(at[at >= 0]):
            bits[at == p] = before[p].acquired[at == p]
        hidden = ~readable(Acquired(bits, self.costs.sensors).unpack(), self.costs)
        hidden &= (at >= 0)[:, None]
        more = [(answer.acquired & ~bits).any(axis=1) | (at < 0) for answer in before]
        judged = [np.flatnonzero(~_any_of_unit(those, own)[own]) for those in more]
        doubtful = set()
        for doing, after in self._replaced(block, hidden, blind):
            for p, answer in enumerate(before):
                if only not in (None, p) or not answer.differs(after[p], judged[p]):
                    continue
                if only is None and not answer.differs(after[p], judged[p], rounding=True):
                    doubtful.add(p)
                    continue
                for unit in np.unique(own[judged[p]]):
                    if what := answer.differs(after[p], np.flatnonzero(own == unit)):
                        place = f"query {block.chosen[unit]} at {dict(answer.point)}"
                        raise _PeekError(f"{place}: {doing}, {what} change")
        for p in sorted(doubtful - block.confirmed):
            block.confirmed.add(p)
            self._unpaid(block, np.where(drawn < 0, -1, p), blind, only=p)

    def _capped(self, block: _Gathered, blind: Any) -> None:
        """Under each cap replace what rows had not bought when stopped."""
        copies, own = self.copies[block.rows], block.own
        ground = Ground.of(self.model, self.costs, block.features.queries, copies)
        for k, limit in enumerate(self.caps.limits if self.caps else ()):
            answers = self._under(k, block.before, ground)
            seen = Acquired(answers.seen, self.costs.sensors).unpack()
            hidden = ~readable(seen, self.costs)
            for doing, after in self._replaced(block, hidden, blind):
                again = self._under(k, after, ground)
                if not answers.differs(again, np.arange(len(own))):
                    continue
                for unit in range(len(block.chosen)):
                    if what := answers.differs(again, np.flatnonzero(own == unit)):
                        at = f"query {block.chosen[unit]} under the cap {limit:g}"
                        raise _PeekError(f"{at}: {doing}, {what} change")

    def _under(self, k: int, path: list[_Answer], ground: Ground) -> Answers:
        """The answers under the ``k``-th cap."""
        assert self.caps is not None
        answers = self.caps.start(ground)[k]
        for at in path:
            answers.take(at.scores, at.bill, *ground.price(at.bill))
        return answers

    def _replaced(
        self, block: _Gathered, hidden: Mask, blind: Any
    ) -> Iterator[tuple[str, list[_Answer]]]:
        """The answers where the ``hidden`` cells are replaced, and in words by what."""
        features = block.features
        donors = self.rng.permuted(features.X, axis=0)  # no row is shown whole
        nan = np.full((), np.nan, dtype=np.float32)
        for by, values in (("NaN", nan), ("other rows' values", donors)):
            X = np.where(hidden, values, features.X).astype(np.float32, copy=False)
            doing = f"where cells it did not pay for are replaced by {by}"
            yield doing, self.answers(blind, Features(X, features.queries), doing, block.before)

    def _strangers(self, block: _Gathered, kept: Mask, near: Any) -> None:
        """Replace all cells of the rows that are not ``kept``."""
        if bool(kept.all()) or not bool(kept.any()):
            return
        features, before = block.features, block.before
        X: Float32Array = features.X.copy()
        X[~kept] = features.X[self.rng.integers(len(X), size=int((~kept).sum()))]
        doing = "where the other queries of its block are replaced"
        after = self.answers(near, Features(X, features.queries), doing, before)
        rows = np.flatnonzero(kept)
        for p, answer in enumerate(before):
            what = answer.differs(after[p], rows, rounding=True)
            if what:
                raise _PeekError(f"at {dict(answer.point)}: {doing}, {what} change for a query")


@dataclass(slots=True, eq=False)
class _Gathered:
    """A block of the units ``chosen``: ``rows`` (n,) of the split, the place ``own`` (n,) of each
    row's unit in ``chosen``, what the model answered ``before`` anything was replaced, and the
    points tried again because of rounding."""

    features: Features
    rows: IntArray
    own: IntArray
    chosen: IntArray
    before: list[_Answer] = field(default_factory=list)
    confirmed: set[int] = field(default_factory=set)

    def places(self) -> IntArray:
        """A point of each different purchase of each unit, -1 where it has no more, (k, units).

        The one of fewest sensors is the first: what it shows the next one has bought too, as a
        rule, so that it is of no use to remember it.
        """
        change, each = np.zeros(len(self.chosen), dtype=bool), np.arange(len(self.chosen))
        place, places, sizes = np.zeros(len(each), dtype=np.int64), [], []
        for p, answer in enumerate(self.before):
            if p:
                earlier = self.before[p - 1].acquired
                change = _any_of_unit((earlier != answer.acquired).any(axis=1), self.own)
            place = place + change
            places.append(place)
            bits = np.unpackbits(answer.acquired.view(np.uint8), axis=1)
            sizes.append(np.bincount(self.own, bits.sum(axis=1)))
        first = np.full((int(places[-1].max()) + 1, len(each)), -1)
        size = np.full(first.shape, np.inf)
        for p in reversed(range(len(places))):
            first[places[p], each], size[places[p], each] = p, sizes[p]
        return np.take_along_axis(first, np.argsort(size, axis=0, kind="stable"), axis=0)


def _any_of_unit(those: Mask, own: IntArray) -> Mask:
    """Of each unit whether any of its rows is among ``those`` (n,)."""
    return np.bincount(own, those) > 0


def reads_order(model: Any) -> bool:
    """Whether a model that comes with bench goes by the order of a query's rows; no other may."""
    return is_shipped(type(model)) and bool(getattr(model, "reads_order", False))
