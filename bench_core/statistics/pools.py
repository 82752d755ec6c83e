"""The stored values of a run, gathered by data set and repeat for the bootstrap.

A learner's configurations are pooled: their points are the candidates that a draw chooses among.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core.statistics.bootstrap import BLOCKS, Candidates, Choose, Units, draw
from bench_core.statistics.levels import Level, joined, of_units

if TYPE_CHECKING:
    from bench_core.results.store import TrialValues


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """The learners of one fold and seed, on the same units of the data ``fingerprint``."""

    fold: int
    seed: int
    fingerprint: str
    candidates: dict[str, Candidates]


def repeats(
    valid: Sequence[TrialValues], test: Sequence[TrialValues], learners: Sequence[str]
) -> list[Repeat]:
    """The repeats of one data set that have all ``learners``, from the values of both splits."""
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
            {name: _pooled(trials[name], of_trial) for name in learners},
        )
        for (fold, seed), trials in sorted(found.items())
        if trials.keys() == set(learners)
    ]


def _pooled(valid: Sequence[TrialValues], of_trial: dict[str, TrialValues]) -> Candidates:
    return Candidates(_units(valid), _units([of_trial[one.trial] for one in valid]))


def _units(values: Sequence[TrialValues]) -> Units:
    quality = np.concatenate([one.metric for one in values])
    cost = np.concatenate([one.cost for one in values])
    return Units(quality, cost, values[0].weights, values[0].rows)


def levels(
    found: Sequence[Repeat],
    choice: Callable[[], Choose],
    same_rows: bool,
    resamples: int,
    seed: int = 0,
) -> tuple[Level, Level]:
    """The levels of quality and cost over all repeats, learners in the order of the repeats'.

    ``same_rows``: all repeats have the same rows, so draws of units are shared.
    """
    quality, cost = [], []
    for k, repeat in enumerate(found):
        learners = [*repeat.candidates.values()]
        drawn = draw(learners, choice(), resamples, seed if same_rows else seed + k)
        units = min(len(learners[0].test.weights), BLOCKS)
        quality.append(of_units(drawn[0], units))
        cost.append(of_units(drawn[1], units))
    return joined(quality, same_rows, seed), joined(cost, same_rows, seed)
