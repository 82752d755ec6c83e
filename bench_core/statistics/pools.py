"""The stored values of a run, gathered by data set and repeat for the bootstrap.

A learner's configurations are pooled: their points are the candidates that a draw chooses among.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bench_core.statistics.bootstrap import (
    BLOCKS,
    Candidates,
    Choose,
    Draws,
    Units,
    block_sums,
    draw_all,
)
from bench_core.statistics.levels import Level, joined, of_units

if TYPE_CHECKING:
    from bench_core.results.trial_values import TrialValues

_LEAST = np.float32(1e-30)


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """The learners of one fold and seed, on the same units of the data ``fingerprint``."""

    fold: int
    seed: int
    fingerprint: str
    candidates: dict[str, Candidates]


def repeats(
    valid: Sequence[TrialValues],
    test: Sequence[TrialValues],
    learners: Sequence[str],
    *,
    tails: bool = False,
) -> list[Repeat]:
    """The repeats of one data set that have all ``learners``, from the values of both splits.

    With ``tails`` a validation unit costs what 95% of the split's rows cost at most, so that it is
    this that a budget bounds.
    """
    of_trial = {one.trial: one for one in test}
    found: dict[tuple[int, int], dict[str, list[TrialValues]]] = {}
    for one in valid:
        if one.learner in learners and one.trial in of_trial:
            found.setdefault((one.fold, one.seed), {}).setdefault(one.learner, []).append(one)
    return [
        Repeat(
            fold,
            seed,
            trials[learners[0]][0].fingerprint,
            {name: _pooled(trials[name], of_trial, tails) for name in learners},
        )
        for (fold, seed), trials in sorted(found.items())
        if trials.keys() == set(learners)
    ]


def _pooled(
    valid: Sequence[TrialValues], of_trial: dict[str, TrialValues], tails: bool
) -> Candidates:
    chosen, shown = _units(valid), _units([of_trial[one.trial] for one in valid])
    if tails:
        p95 = np.concatenate([one.p95 for one in valid]).astype(np.float32)
        chosen = replace(chosen, cost=np.broadcast_to(p95[:, None], chosen.cost.shape))
    return Candidates(chosen, shown)


def _units(values: Sequence[TrialValues]) -> Units:
    quality = np.concatenate([one.metric for one in values])
    cost = np.concatenate([one.cost for one in values])
    return Units(quality, cost, values[0].weights, values[0].rows)


def condensed(one: TrialValues) -> TrialValues:
    """The values as means over the bootstrap's blocks: what it draws, in a fraction of the room."""
    if len(one.weights) <= BLOCKS:
        return one
    both = np.array([one.weights, one.rows])
    weights, rows = block_sums(both, np.ones(both.shape[1], dtype=np.float32))
    return replace(
        one,
        metric=block_sums(one.metric, one.weights) / np.maximum(weights, _LEAST),
        cost=block_sums(one.cost, one.rows) / np.maximum(rows, _LEAST),
        weights=weights,
        rows=rows,
    )


def complete(values: Sequence[TrialValues]) -> list[str]:
    """The learners that have values in every repeat, in the order of the values."""
    there: dict[str, set[tuple[int, int]]] = {}
    for one in values:
        if len(one.points):
            there.setdefault(one.learner, set()).add((one.fold, one.seed))
    every = set().union(*there.values())
    return [name for name, repeats in there.items() if repeats == every]


def levels(
    found: Sequence[Repeat],
    choices: Sequence[Callable[[], Choose]],
    higher: bool,
    resamples: int,
) -> list[tuple[Level, Level]]:
    """For each way to choose, the levels of quality and cost over all repeats, learners in the
    order of the repeats'. All share their draws, as do repeats on the same rows (seeds on one
    split), which are joined before the others."""
    drawn = draws(found, choices, higher, resamples)
    return [
        (
            over_repeats(found, [q[k] for q, _ in drawn]),
            over_repeats(found, [c[k] for _, c in drawn]),
        )
        for k in range(len(choices))
    ]


def draws(
    found: Sequence[Repeat],
    choices: Sequence[Callable[[], Choose]],
    higher: bool,
    resamples: int,
) -> list[tuple[Draws, Draws]]:
    """By repeat the draws of quality and cost (choices, learners, resamples + 1); repeats on the
    same rows draw the same units."""
    seeds = {rows: k for k, rows in enumerate(dict.fromkeys(_rows(repeat) for repeat in found))}
    return [
        draw_all(
            [*repeat.candidates.values()],
            [choice() for choice in choices],
            resamples,
            seeds[_rows(repeat)],
            higher=higher,
        )
        for repeat in found
    ]


def over_repeats(found: Sequence[Repeat], drawn: Sequence[Draws]) -> Level:
    """The level of the mean over repeats, from the draws (learners, 1 + resamples) of each."""
    groups: dict[tuple[int, str], list[Level]] = {}
    for repeat, values in zip(found, drawn, strict=True):
        units = min(len(next(iter(repeat.candidates.values())).test.weights), BLOCKS)
        groups.setdefault(_rows(repeat), []).append(of_units(values, units))
    return joined([joined(group, same_units=True) for group in groups.values()], same_units=False)


def bounds(found: Sequence[Repeat]) -> tuple[float, float]:
    """The least and the greatest quality of any test unit: no mean lies outside."""
    values = [one.test.quality for repeat in found for one in repeat.candidates.values()]
    return float(min(v.min() for v in values)), float(max(v.max() for v in values))


def _rows(repeat: Repeat) -> tuple[int, str]:
    """What the rows of a repeat are told by."""
    return repeat.fold, repeat.fingerprint
