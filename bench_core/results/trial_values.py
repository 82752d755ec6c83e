"""Values per query or row of one trial, as a store keeps them for points that budgets choose."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.results import rows
from bench_core.results.budgets import CAP, Budget
from bench_core.results.records import StoredValues

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("learner", "params", "dataset", "fold", "seed", "fingerprint")


@dataclass(frozen=True, slots=True, eq=False)
class ValuedTrial:
    """A trial that has stored values, and what names it. Of all its operating points: ``every``
    setting, what 95% of validation rows cost at most there (``tails``), and which are ``within``
    the budget asked for. ``fingerprint`` is that of the data, ``spelt`` are the parameters as
    canonical JSON."""

    trial: str
    learner: str
    params: Mapping[str, Any]
    spelt: str
    dataset: str
    fold: int
    seed: int
    fingerprint: str
    every: tuple[str, ...]
    tails: FloatArray
    within: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class TrialValues(StoredValues):
    """The stored values of one trial on one split, with what names them.

    ``settings`` (p,) are the operating points, ``p95`` (p,) is what 95% of validation rows cost at
    most there. Units stand in the same order for all trials on
    one data set, fold, seed and split; ``fingerprint`` is that of the data.
    """

    trial: str
    learner: str
    params: Mapping[str, Any]
    dataset: str
    fold: int
    seed: int
    fingerprint: str
    settings: tuple[Mapping[str, float], ...]
    p95: FloatArray


def valued(
    trial: Mapping[str, Any],
    points: Sequence[rows.Points],
    kept: Sequence[int],
    split: str,
    within: Budget | None,
) -> Iterator[ValuedTrial]:
    """The trial with these ``points``: once, or not at all where no point of those ``kept`` with
    values on the split is within the budget."""
    if trial["status"] != "ok":
        return
    of = {one.split: one for one in points}
    every = of[split].points if split in of else ()
    tails = of["valid"].column("cost_p95") if "valid" in of else np.full(len(every), np.inf)
    inside = _on_path(every)
    if within is not None and within.kind == "p95":
        inside = inside & (tails <= within.amount)
    elif within is not None and within.kind == "cap":
        inside = np.array([_setting(point).get(CAP) == within.amount for point in every])
    if any(inside[p] for p in kept if p < len(inside)):
        named = {name: trial["spec"][name] for name in _NAMES}
        spelt = canonical(named["params"])
        yield ValuedTrial(
            trial["key"], **named, spelt=spelt, every=every, tails=tails.copy(), within=inside
        )


def has_values(
    trial: Mapping[str, Any], points: Sequence[rows.Points], kept: Sequence[int]
) -> bool:
    """Whether ``valued`` gives the trial on validation without a budget."""
    of = {one.split: one.points for one in points}
    return trial["status"] == "ok" and "valid" in of and _any_on_path(of["valid"], tuple(kept))


@dataclass(frozen=True, slots=True, eq=False)
class Framed:
    """The trials of a run, in order, that the ``frame`` was made of: their ``keys``, which ``have``
    values on validation, where each one's rows begin, and which of these are of validation."""

    frame: pd.DataFrame
    keys: Sequence[str]
    have: BoolArray
    starts: IntArray
    valid: Sequence[slice]

    @classmethod
    def of(
        cls, frame: pd.DataFrame, keys: Sequence[str], have: Sequence[bool], lengths: Sequence[int]
    ) -> Framed:
        """From the frame and what the store says of each trial, which has so many rows."""
        of_each = np.array(lengths, dtype=np.int64)
        ends = np.cumsum(of_each)
        valid = np.flatnonzero(frame["split"] == "valid")
        edges = np.searchsorted(valid, np.append(0, ends))
        counts = np.diff(edges)
        first = np.append(valid, 0)[edges[:-1]]
        slices = [*map(slice, first.tolist(), (first + counts).tolist())]
        return cls(frame, keys, np.array(have, dtype=bool), ends - of_each, slices)

    def valued(self, dataset: str, learner: str) -> list[ValuedTrial]:
        """What ``valued`` gives of these trials on validation without a budget, of one data set or
        learner where these are named."""
        import pandas as pd

        asked = self.have.copy()
        for name, value in (("dataset", dataset), ("learner", learner)):
            if value:
                asked &= np.asarray(self.frame[name].array.take(self.starts) == value, dtype=bool)
        places = np.flatnonzero(asked)
        told = [self.frame[name].array.take(self.starts[places]).tolist() for name in _NAMES]
        tails, point = self.frame["cost_p95"].to_numpy(), pd.Categorical(self.frame["point"])
        known: dict[bytes, tuple[tuple[str, ...], BoolArray]] = {}  # most trials have the same
        found = []
        codes = point.codes
        for k, learned, params, *data in zip(places.tolist(), *told, strict=True):
            own = codes[self.valid[k]].tobytes()
            if own not in known:
                points = tuple(map(str, point.categories[codes[self.valid[k]]]))
                known[own] = points, _on_path(points)
            named: tuple[Any, ...] = (learned, _setting(params), _spelt(params), *data)
            every, within = known[own]
            fields = (self.keys[k], *named, every, tails[self.valid[k]], within)
            found.append(ValuedTrial(*fields))
        return found


def values_of(one: ValuedTrial, stored: StoredValues) -> TrialValues:
    """What is ``stored`` of the points of a trial that are within the budget."""
    points = stored.points
    kept = one.within[_places(points)]
    metric, cost, bought = stored.metric, stored.cost, stored.bought
    if np.count_nonzero(kept) < len(points):
        points = tuple(compress(points, kept))
        metric, cost, bought = metric[kept], cost[kept], bought[kept]
    return TrialValues(
        stored.split,
        points,
        metric,
        cost,
        stored.weights,
        stored.rows,
        bought,
        one.trial,
        one.learner,
        one.params,
        one.dataset,
        one.fold,
        one.seed,
        one.fingerprint,
        _settings(one.every, points),
        one.tails[_places(points)],
    )


@lru_cache(1024)
def _places(points: tuple[int, ...]) -> IntArray:
    return np.array(points, dtype=np.int64)


_setting = lru_cache(4096)(json.loads)
"""A point or parameters from JSON; many trials of a run have the same."""


@lru_cache(4096)
def _spelt(params: str) -> str:
    return canonical(_setting(params))


@lru_cache(64)
def _settings(every: tuple[str, ...], points: tuple[int, ...]) -> tuple[Mapping[str, float], ...]:
    return tuple(_setting(every[p]) for p in points)


@lru_cache(64)
def _on_path(points: tuple[str, ...]) -> BoolArray:
    """Which points were not measured under a cap; most trials of a run have the same."""
    return np.array([CAP not in _setting(point) for point in points], dtype=bool)


@lru_cache(64)
def _any_on_path(points: tuple[str, ...], kept: tuple[int, ...]) -> bool:
    inside = _on_path(points)
    return any(inside[p] for p in kept if p < len(inside))
