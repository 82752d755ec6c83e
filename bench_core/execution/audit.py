"""Replay audit: does a model read only what it paid for, and answer a query by that query alone?

Blocks are gathered in random order: queries across the split, rows within their query. Scores there
must agree to 1e-9 of each row's own (a matrix product may round otherwise; ``slack``), and costs,
with what the same rows scored and cost in the trial's own blocks; then the OTHER queries of a block
are replaced, and scores must agree again, and bills exactly. Last, all cells are replaced that the
rows of a query had not bought at one of its operating points, once by NaN and once by other rows'
values. At that point, and at
all points that bought nothing else, scores, acquired sensors, splits and trees of those rows must
be bitwise equal. Under each cap (``caps.py``) all cells are replaced that a row had not bought
when it was stopped: the point that answers, its score and its purchases must stay.

``sample`` does this for a few hundred rows and one point of each, with repeats where the split is
small. ``full`` does the same first, and then all of it for every query at every point; where the
model can be exported it also counts the splits and trees of some rows itself (``serving``).

Only the audited rows and points are judged: what another point, which pays for a cell that is NaN
now, makes of it is nobody's fault. Every call gets its own copy of the block, so that nothing can
be noted in it; replaced blocks are given to an instance that never saw the whole ones (``blind``),
which lives in a process of its own where the model is a stranger's (``host.py``).
``docs/trust.md`` lists what cannot be seen so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
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
from bench_core.execution.predict import BLOCK_ROWS, Path, predict_split, units
from bench_core.execution.recount import recount
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
    compare with; the full audit makes it where it is not given. ``blind`` is the same model loaded
    anew, to be shown replaced cells only; without it a model could remember what it saw. ``caps``
    are audited on the bill ``path`` alone.
    """
    if mode == "off":
        return Verdict("declared")
    rng = np.random.default_rng(list(seed.encode()))
    blind = model if blind is None else blind
    priced = accounting == "path"
    caps = caps if priced else None
    try:
        if mode == "full" and path is None:
            path, priced = predict_split(model, examples, costs, classes), True
        judge = _Judge(model, blind, costs, classes, rng, path, priced, examples, caps)
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
    blind: Any
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
        """A hundred queries (or a few hundred rows) and as many strangers to them, one point each;
        a small split's stand there several times."""
        half = SAMPLE_ROWS if self.examples.queries is None else SAMPLE_QUERIES
        count = len(units(self.examples.features)) - 1
        # never the whole split: a block of another size shows who keys on that
        order = self.rng.permutation(count)
        chosen = np.resize(order, 2 * half if 2 * half != count else 2 * half - 1)
        block = self._block(chosen)
        block.before = self.answers(
            self.model, block.features, "on a block of queries in another order"
        )
        self._same_as_in_trial(block)
        audited = np.arange(len(chosen)) < max(1, len(chosen) // 2)
        drawn = np.full(len(chosen), -1)
        points = self.rng.permutation(len(block.before))
        drawn[audited] = np.resize(points, int(audited.sum()))
        self._strangers(block, audited[block.own])
        self._unpaid(block, drawn)
        self._capped(block, audited[block.own])

    def whole(self, progress: Callable[[int, int], None]) -> None:
        """Every query at every point, in blocks of queries in random order."""
        features, done = self.examples.features, 0
        order = self.rng.permutation(len(units(features)) - 1)
        ends = np.cumsum(np.diff(units(features))[order])
        cuts = np.searchsorted(ends, np.arange(0, ends[-1] + BLOCK_ROWS, BLOCK_ROWS), side="right")
        for chosen in np.split(order, np.unique(cuts[(cuts > 0) & (cuts < len(order))])):
            block = self._block(chosen)
            n = len(block.features)
            block.before = self.answers(self.model, block.features, "predicting")
            self._same_as_in_trial(block)
            for parity in (0, 1):
                self._strangers(block, block.own % 2 == parity)
            places = block.places()
            for place in range(int(places.max()) + 1):
                there = places == place
                drawn = np.where(there.any(axis=0), there.argmax(axis=0), -1)
                self._unpaid(block, drawn)
                progress(done + (place + 1) * n // (int(places.max()) + 1), len(self.examples))
            self._capped(block, np.ones(n, dtype=bool))
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

    def _unpaid(self, block: _Gathered, drawn: IntArray, only: int | None = None) -> None:
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
        for doing, after in self._replaced(block, hidden):
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
            self._unpaid(block, np.where(drawn < 0, -1, p), only=p)

    def _capped(self, block: _Gathered, kept: Mask) -> None:
        """Under each cap replace what the rows that are ``kept`` had not bought when stopped."""
        copies, own = self.copies[block.rows], block.own
        ground = Ground.of(self.model, self.costs, block.features.queries, copies)
        for k, limit in enumerate(self.caps.limits if self.caps else ()):
            answers = self._under(k, block.before, ground)
            seen = Acquired(answers.seen, self.costs.sensors).unpack()
            hidden = ~readable(seen, self.costs) & kept[:, None]
            for doing, after in self._replaced(block, hidden):
                again = self._under(k, after, ground)
                for unit in np.unique(own[kept]):
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

    def _replaced(self, block: _Gathered, hidden: Mask) -> Iterator[tuple[str, list[_Answer]]]:
        """The answers where the ``hidden`` cells are replaced, and in words by what."""
        features = block.features
        donors = features.X[self.rng.permutation(len(features))]
        nan = np.full((), np.nan, dtype=np.float32)
        for by, values in (("NaN", nan), ("other rows' values", donors)):
            X = np.where(hidden, values, features.X).astype(np.float32, copy=False)
            doing = f"where cells it did not pay for are replaced by {by}"
            yield (
                doing,
                self.answers(self.blind, Features(X, features.queries), doing, block.before),
            )

    def _strangers(self, block: _Gathered, kept: Mask) -> None:
        """Replace all cells of the rows that are not ``kept``."""
        if bool(kept.all()) or not bool(kept.any()):
            return
        features, before = block.features, block.before
        X: Float32Array = features.X.copy()
        X[~kept] = features.X[self.rng.integers(len(X), size=int((~kept).sum()))]
        doing = "where the other queries of its block are replaced"
        after = self.answers(self.model, Features(X, features.queries), doing, before)
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
        """How often each unit's purchases have changed along the path, (p, units)."""
        steps = [np.zeros(len(self.chosen), dtype=bool)]
        for a, b in pairwise(self.before):
            steps.append(_any_of_unit((a.acquired != b.acquired).any(axis=1), self.own))
        return np.cumsum(steps, axis=0)


def slack(scores: FloatArray) -> FloatArray:
    """How far rounding may move scores (n,) or (n, K), (n, 1) for the latter: a row's by 1e-9 of
    its own largest, where terms cancel by 1e-9 of what 99% of the rows that are not 0 exceed.

    No row's huge score widens that of another, whatever their number below 99%.
    """
    own = np.abs(scores) if scores.ndim == 1 else np.abs(scores).max(axis=1, keepdims=True)
    there = own[own > 0]
    if len(there) == 0:
        return own
    small = np.partition(there, len(there) // 100)[len(there) // 100]
    return TOLERANCE * np.maximum(own, small)


def _any_of_unit(those: Mask, own: IntArray) -> Mask:
    """Of each unit whether any of its rows is among ``those`` (n,)."""
    return np.bincount(own, those) > 0


def gather(
    features: Features,
    chosen: Sequence[int] | IntArray,
    rng: np.random.Generator | None = None,
) -> tuple[Features, IntArray, IntArray]:
    """A block of the chosen queries (or rows) in that order, the rows it holds, and for each
    row the place of its query in ``chosen``. With ``rng`` a query's rows are in random order."""
    boundaries = units(features)
    sizes = np.diff(boundaries)[chosen]
    own = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum(sizes) - sizes
    rows = np.arange(len(own)) - first[own] + boundaries[chosen][own]
    if rng is not None:
        rows = rows[np.lexsort((rng.random(len(rows)), own))]
    queries = None if features.queries is None else Queries.from_sizes(sizes)
    X = np.array(features.X[rows], dtype=np.float32, order="C")
    return Features(X, queries), rows, own


def reads_order(model: Any) -> bool:
    """Whether a model that comes with bench goes by the order of a query's rows; no other may."""
    return is_shipped(type(model)) and bool(getattr(model, "reads_order", False))
