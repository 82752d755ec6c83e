"""Repeats of a run for the bootstrap, and the draws of their mean.

A learner's configurations are pooled: their points are the candidates of each draw's choice.

The mean over groups (seeds, folds, data sets) varies with the units and with the groups.

- Groups on the same units (seeds of one test split): the units' draws, which are shared, plus each
  group's deviation from the mean times a normal number per draw. This multiplier bootstrap is used
  because resampling three groups directly gives only ten outcomes.
- Groups with separate units: their spread already includes the noise of their units, and only the
  deviations are used.

A chi-square number per draw gives the multipliers Student's t distribution, with the groups'
degrees of freedom: a few groups give an uncertain spread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import FloatArray
from bench_core.statistics.bootstrap import BLOCKS, Candidates, Units, Values

if TYPE_CHECKING:
    from bench_core.results.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """Draws of learners' values, with the covariances (learners, learners) of their mean."""

    draws: FloatArray  # (learners, 1 + resamples), the first is observed
    within: FloatArray  # from units
    shared: FloatArray  # part of ``within`` from units common to all groups
    between: FloatArray  # from groups, including the rest of ``within``
    units: int  # number of units of equal weight that would be as certain, at most of blocks
    rows: int  # number of rows, at most of blocks
    whole: int  # number of such units of all groups, however many
    groups: int = 1

    @property
    def few(self) -> bool:
        """True if groups of rows or a rare class decide how certain the values are, so that there
        are fewer units than rows."""
        return self.units < self.rows

    @property
    def observed(self) -> FloatArray:
        """Each learner's value on the original data."""
        return self.draws[:, 0]


def of_units(draws: FloatArray, units: int, rows: int = 0, whole: int = 0) -> Level:
    """Return the level of one repeat, from ``bootstrap.draw`` of so many ``units`` of equal weight,
    which have so many ``rows``, by default one each; ``whole``: units before those of blocks."""
    within = np.cov(draws[:, 1:]) if draws.shape[1] > 2 else np.zeros((len(draws),) * 2)
    within = np.atleast_2d(within)
    return Level(draws, within, within, np.zeros_like(within), units, rows or units, whole or units)


def joined(groups: Sequence[Level], same_units: bool, seed: int = 0) -> Level:
    """Return the level of the mean over ``groups``, which have the same learners and resamples.

    ``same_units``: the groups' units are the same rows, drawn together (several seeds on one test
    split); otherwise they are drawn separately.
    """
    n = len(groups)
    if n == 1:
        return groups[0]
    observed = np.stack([group.observed for group in groups])  # (n, learners)
    drawn = np.mean([group.draws for group in groups], axis=0)
    mean = np.mean([group.within for group in groups], axis=0)
    within, shared = mean / n, np.zeros_like(mean)
    if same_units:
        within = np.atleast_2d(np.cov(drawn[:, 1:]))
        # variance of the mean from units within each group (two-way analysis of variance)
        shared = within - (mean - within) / (n - 1)
    rng = np.random.default_rng(seed)
    times = rng.standard_normal((drawn.shape[1], n))
    times *= np.sqrt((n - 1) / rng.chisquare(n - 1, (len(times), 1)))
    times[0] = 0
    effects = (observed - observed.mean(axis=0)) / np.sqrt(n * (n - 1))
    moved = (drawn if same_units else drawn[:, :1]) + (times @ effects).T
    spread = np.atleast_2d(np.cov(observed.T)) / n
    sizes = min(of.units for of in groups), min(of.rows for of in groups)
    whole = [of.whole for of in groups]
    return Level(moved, within, shared, spread, *sizes, min(whole) if same_units else sum(whole), n)


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """Learners of one fold and seed, on the same units of the data ``fingerprint``. Seeds may have
    the same test rows and other validation rows."""

    fold: int
    seed: int
    fingerprint: str  # its last half is that of the test rows
    candidates: dict[str, Candidates]


Key = tuple[str, str]
"""Parameters and point, as canonical JSON."""


def stored_repeats(
    store: Store,
    run: str,
    dataset: str,
    learners: Sequence[str] = (),
    *,
    cap: float | None = None,
    blocks: int = BLOCKS,
    has: Callable[[Mapping[str, Any]], bool] | None = None,
    reference: str = "",
    best: Mapping[tuple[int, int], Key] = {},
) -> list[Repeat]:
    """Return the repeats of one data set with values of the ``learners`` (default: all), under a
    ``cap`` if given. Units are condensed to at most ``blocks`` blocks: the same draws in less
    memory. Trials that failed the audit or whose parameters do not satisfy ``has`` are
    excluded. ``best``: by fold and seed the point of the ``reference`` that the moments of all
    points refer to."""
    against = _values_at(store, run, dataset, reference, best) if best else {}
    parts: dict[tuple[int, int, str], dict[str, list[Candidates]]] = {}
    for learner in learners or [""]:
        valid, test = (
            store.values(run, split=split, dataset=dataset, learner=learner, cap=cap)
            for split in ("valid", "test")
        )
        for both in zip(valid, test, strict=True):
            trial, settings = both[0].trial, both[0].settings
            if trial.audit != "failed" and (has is None or has(trial.params)):
                on = [Units(split.metric, split.cost, split.weights, split.rows) for split in both]
                keys = [(canonical(trial.params), canonical(point)) for point in settings]
                other = against.get((trial.fold, trial.seed))
                by_learner = parts.setdefault((trial.fold, trial.seed, trial.fingerprint), {})
                candidates = Candidates.of(on[0], on[1], keys, other, blocks)
                by_learner.setdefault(trial.learner, []).append(candidates)
    # a learner's parts are freed as soon as they are pooled
    return [
        Repeat(*key, {name: _pooled(by_learner.pop(name)) for name in [*by_learner]})
        for key, by_learner in sorted(parts.items())
    ]


def _values_at(
    store: Store, run: str, dataset: str, learner: str, at: Mapping[tuple[int, int], Key]
) -> dict[tuple[int, int], Values]:
    """Return a learner's validation quality by unit at one point of each repeat."""
    values: dict[tuple[int, int], Values] = {}
    for stored in store.values(run, split="valid", dataset=dataset, learner=learner):
        repeat = stored.trial.fold, stored.trial.seed
        params, point = at.get(repeat, ("", ""))
        if params == canonical(stored.trial.params):
            for k, setting in enumerate(stored.settings):
                if canonical(setting) == point:
                    values[repeat] = stored.metric[k]
    return values


def _pooled(parts: Sequence[Candidates]) -> Candidates:
    """Return the candidates of all parts; of a single part the part itself."""
    if len(parts) == 1:
        return parts[0]
    valid, test = (
        Units(
            np.concatenate([unit.quality for unit in units]),
            np.concatenate([unit.cost for unit in units]),
            units[0].weights,
            units[0].rows,
        )
        for units in ([c.valid for c in parts], [c.test for c in parts])
    )
    keys = [key for c in parts for key in c.keys]
    deviations = np.concatenate([c.deviations for c in parts])
    moments = np.hstack([c.moments for c in parts])
    return Candidates(valid, test, keys, moments, deviations, parts[0].tested)


def with_seeds(found: Sequence[Repeat]) -> Iterator[tuple[Repeat, int]]:
    """Yield each repeat with the seed of its draws: equal test rows give equal draws."""
    seeds: dict[tuple[int, str], int] = {}
    for one in found:
        yield one, seeds.setdefault((one.fold, one.fingerprint[-32:]), len(seeds))


def over_repeats(repeats: Sequence[Repeat], values: Sequence[FloatArray]) -> Level:
    """Return the level of the mean over repeats, from ``values`` (learners, 1 + resamples) of each.
    Repeats on the same rows (seeds on one split) are joined first."""
    first = [next(iter(repeat.candidates.values())) for repeat in repeats]  # all have these units
    levels = [of_units(own, *of.tested) for own, of in zip(values, first, strict=True)]
    groups = [joined([levels[k] for k in same], same_units=True) for same in on_same_rows(repeats)]
    return joined(groups, same_units=False)


def on_same_rows(found: Sequence[Repeat]) -> list[list[int]]:
    """Return the places of repeats in groups that have the same rows."""
    groups: dict[int, list[int]] = {}
    for k, (_, rows) in enumerate(with_seeds(found)):
        groups.setdefault(rows, []).append(k)
    return list(groups.values())
