"""The stored values of a run by repeat, for the bootstrap.

A learner's configurations are pooled: their points are the candidates that a draw chooses among.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.results.budgets import Budget
from bench_core.results.records import TrialValues
from bench_core.statistics.aggregate_draws import Level, joined, of_units
from bench_core.statistics.bootstrap import BLOCKS, Candidates, Units

if TYPE_CHECKING:
    from bench_core.results.store import Store


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """The learners of one fold and seed, on the same units of the data ``fingerprint``."""

    fold: int
    seed: int
    fingerprint: str
    candidates: dict[str, Candidates]

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest quality of any test unit."""
        values = [one.test.quality for one in self.candidates.values()]
        return float(min(v.min() for v in values)), float(max(v.max() for v in values))


def stored_repeats(
    store: Store,
    run: str,
    dataset: str,
    learners: Sequence[str] = (),
    *,
    within: Budget | None = None,
    blocks: int = 0,
    has: Callable[[Mapping[str, Any]], bool] | None = None,
) -> list[Repeat]:
    """The repeats of one data set, each with those of the ``learners`` (none named: all) that have
    values in it within a cap or a cost for 95% of rows. Of more than so many ``blocks``, if given,
    units are condensed: what is drawn, in less room. What the audit refused is left out, and trials
    whose parameters are not those asked for (``has``)."""
    found: dict[tuple[int, int, str], dict[str, list[tuple[Units, Units, FloatArray]]]] = {}
    for learner in learners or [""]:
        valid, test = (
            store.values(run, split=split, dataset=dataset, learner=learner, within=within)
            for split in ("valid", "test")
        )
        for one, shown in zip(valid, test, strict=True):
            trial = one.trial
            if trial.audit != "failed" and (has is None or has(trial.params)):
                of = found.setdefault((trial.fold, trial.seed, trial.fingerprint), {})
                own = _units(one, blocks), _units(shown, blocks), one.p95
                of.setdefault(trial.learner, []).append(own)
    return [
        Repeat(*key, {name: _pooled(parts) for name, parts in of.items()})
        for key, of in sorted(found.items())
    ]


def _units(values: TrialValues, blocks: int) -> Units:
    units = Units(values.metric, values.cost, values.weights, values.rows)
    return units.condensed(blocks) if blocks else units


def _pooled(parts: Sequence[tuple[Units, Units, FloatArray]]) -> Candidates:
    valid, test, p95 = zip(*parts, strict=True)
    pooled = [
        Units(
            np.concatenate([one.quality for one in units]),
            np.concatenate([one.cost for one in units]),
            units[0].weights,
            units[0].rows,
        )
        for units in (valid, test)
    ]
    return Candidates.of(pooled[0], pooled[1], np.concatenate(p95))


def in_every(found: Sequence[Repeat]) -> list[str]:
    """The learners that have values in every repeat: differences are paired, so that one that lacks
    a repeat cannot be compared in the others."""
    names = dict.fromkeys(name for repeat in found for name in repeat.candidates)
    return [name for name in names if all(name in repeat.candidates for repeat in found)]


def with_seeds(found: Sequence[Repeat]) -> Iterator[tuple[Repeat, int]]:
    """Each repeat with the seed of its draws: the same rows draw the same units."""
    seeds: dict[tuple[int, str], int] = {}
    for one in found:
        yield one, seeds.setdefault((one.fold, one.fingerprint), len(seeds))


def over_repeats(found: Sequence[Repeat], values: Sequence[FloatArray]) -> Level:
    """The level of the mean over repeats, from ``values`` (learners, 1 + resamples) of each.
    Repeats on the same rows (seeds on one split) are joined before the others."""
    units = [len(next(iter(one.candidates.values())).test.weights) for one in found]
    levels = [of_units(own, min(m, BLOCKS)) for own, m in zip(values, units, strict=True)]
    groups = [joined([levels[k] for k in same], same_units=True) for same in _on_same_rows(found)]
    return joined(groups, same_units=False)


def by_unit(found: Sequence[Repeat], values: Sequence[FloatArray]) -> FloatArray:
    """Values (k, m) by unit of all repeats, those on the same rows as their mean."""
    means = [np.mean([values[k] for k in same], axis=0) for same in _on_same_rows(found)]
    return np.concatenate(means, axis=1)


def _on_same_rows(found: Sequence[Repeat]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for k, (_, rows) in enumerate(with_seeds(found)):
        groups.setdefault(rows, []).append(k)
    return list(groups.values())
