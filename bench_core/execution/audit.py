"""Replay audit: does a model read only what it paid for, and answer a query by that query alone?

Blocks are gathered in random order: queries across the split, rows within their query. Scores there
must agree to 1e-9 of each row's own (a matrix product may round otherwise; ``slack``), and costs,
with what the same rows scored and cost in the trial's own blocks; then the OTHER queries of a block
are replaced, and scores must agree again, and bills exactly. Last, all cells are replaced that the
rows of a query had not bought at one of its operating points, once by NaN and once by other rows'
values, mixed by column. Where rows buy differently, which cells are left alone tells what a row
bought, which may itself have been chosen by cells that nobody paid for; so once more some cells are
left alone that it did not buy: those that another row did. At that point, and at
all points that bought nothing else, scores, acquired sensors, splits and trees of those rows must
be bitwise equal. Under each cap (``caps.py``) all cells are replaced that a row had not bought
when it was stopped: the point that answers, its score and its purchases must stay.

``sample`` does this for a few hundred rows, each once, and one point of each. ``full`` does the
same first, and then all of it for every query at every point; where the model can be exported it
also counts the splits and trees of some rows itself (``serving``).

Only the audited rows and points are judged: what another point, which pays for a cell that is NaN
now, makes of it is nobody's fault. Every call gets its own copy of the block, so that nothing can
be noted in it. What is replaced is shown to ``fresh`` instances.
``docs/trust.md`` lists what cannot be seen so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.class_names import is_shipped
from bench_core.costs.bill import Acquired
from bench_core.costs.model import CostModel
from bench_core.data import Examples, Features
from bench_core.execution.caps import Answers, Caps, Ground
from bench_core.execution.contract import ContractError, predictions
from bench_core.execution.gathered import Answer, Gathered, Mask, any_of_unit
from bench_core.execution.predict import BLOCK_ROWS, Path, gather, predict_split, units
from bench_core.execution.recount import recount
from bench_core.execution.rounding import TOLERANCE, slack
from bench_core.execution.score import readable
from bench_core.results.records import Verdict

SAMPLE_QUERIES = 200
SAMPLE_ROWS = 512


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
        self, model: Any, features: Features, doing: str, before: Sequence[Answer] = ()
    ) -> list[Answer]:
        """The model's answers on a copy of a block, as many as ``before`` it was changed; of an
        unchanged block they must be finite."""
        own = Features(features.X.copy(), features.queries)
        found = predictions(model, own, self.costs, self.classes, finite=not before)
        try:
            answers = [Answer.of(p, len(own)) for p in found]
        except ContractError as error:
            raise _PeekError(f"{doing}: {error}") from error
        except Exception as error:
            raise _PeekError(f"{doing} it raises {type(error).__name__}: {error}") from error
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
        points = np.resize(self.rng.permutation(len(block.before)), len(chosen))
        with self.fresh() as blind, self._on_demand() as misled:
            self._unpaid(block, points, blind, misled)
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
            misled = stack.enter_context(self._on_demand())
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
                    self._unpaid(block, points, blind, misled)
                    progress(done + place * n // len(drawn), len(self.examples))
                if capped is not None:
                    self._capped(block, capped)
                done += n
        if not self.priced or self.path is None or not is_shipped(type(self.model)):
            return
        if wrong := recount(self.model, self.examples, self.costs, self.path, self.rng):
            raise _PeekError(wrong)

    def _block(self, chosen: IntArray) -> Gathered:
        rng = None if reads_order(self.model) else self.rng
        features, rows, own = gather(self.examples.features, chosen, rng)
        return Gathered(features, rows, own, chosen)

    def _same_as_in_trial(self, block: Gathered) -> None:
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
        self,
        block: Gathered,
        drawn: IntArray,
        blind: Any,
        misled: Callable[[], Any],
        only: int | None = None,
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
        judged = [np.flatnonzero(~any_of_unit(those, own)[own]) for those in more]
        doubtful = set()
        tried = self._replaced(block, hidden, blind), self._misled(block, hidden, bits, at, misled)
        for doing, after in chain(*tried):
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
            self._unpaid(block, np.where(drawn < 0, -1, p), blind, misled, only=p)

    @contextmanager
    def _on_demand(self) -> Iterator[Callable[[], Any]]:
        """What gives an instance that is made when it is first asked for."""
        with ExitStack() as stack:
            yield cache(lambda: stack.enter_context(self.fresh()))

    def _misled(
        self,
        block: Gathered,
        hidden: Mask,
        bits: NDArray[np.uint64],
        at: IntArray,
        misled: Callable[[], Any],
    ) -> Iterator[tuple[str, list[Answer]]]:
        """The answers where rows are also shown what another row bought at that point, if that
        differs; none is shown whole."""
        both, others = bits.copy(), self.rng.permutation(len(bits))
        for p in np.unique(at[at >= 0]):
            both[at == p] |= block.before[p].acquired[others][at == p]
        fewer = hidden & ~readable(Acquired(both, self.costs.sensors).unpack(), self.costs)
        fewer |= hidden & ~fewer.any(axis=1, keepdims=True)
        if bool((fewer != hidden).any()):
            doing = "where it sees, besides, cells that another row paid for"
            X = np.where(fewer, np.float32(np.nan), block.features.X)
            own = Features(X, block.features.queries)
            yield doing, self.answers(misled(), own, doing, block.before)

    def _capped(self, block: Gathered, blind: Any) -> None:
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

    def _under(self, k: int, path: list[Answer], ground: Ground) -> Answers:
        """The answers under the ``k``-th cap."""
        assert self.caps is not None
        answers = self.caps.start(ground)[k]
        for at in path:
            answers.take(at.scores, at.bill, *ground.price(at.bill))
        return answers

    def _replaced(
        self, block: Gathered, hidden: Mask, blind: Any
    ) -> Iterator[tuple[str, list[Answer]]]:
        """The answers where the ``hidden`` cells are replaced, and in words by what."""
        features = block.features
        donors = self.rng.permuted(features.X, axis=0)  # no row is shown whole
        nan = np.full((), np.nan, dtype=np.float32)
        for by, values in (("NaN", nan), ("other rows' values", donors)):
            X = np.where(hidden, values, features.X).astype(np.float32, copy=False)
            doing = f"where cells it did not pay for are replaced by {by}"
            yield doing, self.answers(blind, Features(X, features.queries), doing, block.before)

    def _strangers(self, block: Gathered, kept: Mask, near: Any) -> None:
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


def reads_order(model: Any) -> bool:
    """Whether a model that comes with bench goes by the order of a query's rows; no other may."""
    return is_shipped(type(model)) and bool(getattr(model, "reads_order", False))
