"""The stored values of a run, gathered by data set and repeat for the bootstrap.

A learner's configurations are pooled: their points are the candidates that a draw chooses among.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from bench_core.statistics.aggregate_draws import Level, joined, of_units
from bench_core.statistics.blocks import BLOCKS, block_means
from bench_core.statistics.bootstrap import Candidates, Draws, Units, draw_all
from bench_core.statistics.point_selection import Choose

if TYPE_CHECKING:
    from bench_core.results.values import TrialValues, ValuedTrial


@dataclass(frozen=True, slots=True, eq=False)
class Repeat:
    """The learners of one fold and seed, on the same units of the data ``fingerprint``."""

    fold: int
    seed: int
    fingerprint: str
    candidates: dict[str, Candidates]


class Ask(NamedTuple):
    """Ways to choose. With ``tails`` a validation unit costs what 95% of the split's rows cost at
    most, so that it is this that a budget bounds. Costs are drawn for the first ``priced`` ways, if
    that is given."""

    choices: Sequence[Callable[[], Choose]]
    tails: bool = False
    priced: int | None = None


class Drawn(NamedTuple):
    """Draws of one repeat: ``quality`` and ``cost`` (choices, learners, 1 + resamples). Repeats of
    the same ``rows`` drew the same units, so many; no mean lies outside of the ``bounds``, the
    least and the greatest quality of any test unit."""

    rows: tuple[int, str]
    units: int
    bounds: tuple[float, float]
    quality: Draws
    cost: Draws


def repeats(
    valid: Iterable[TrialValues],
    test: Iterable[TrialValues],
    learners: Sequence[str],
    blocks: int | None = None,
) -> list[Repeat]:
    """The repeats of one data set that have all ``learners``, from the values of both splits; of
    more than so many ``blocks``, if given, as means over these: what is drawn, in less room."""
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
            {name: _pooled(trials[name], of_trial, blocks) for name in learners},
        )
        for (fold, seed), trials in sorted(found.items())
        if trials.keys() == set(learners)
    ]


def _pooled(
    valid: Sequence[TrialValues], of_trial: dict[str, TrialValues], blocks: int | None
) -> Candidates:
    shown = [of_trial[one.trial] for one in valid]
    p95 = np.concatenate([one.p95 for one in valid])
    return Candidates(_units(valid, blocks), _units(shown, blocks), p95)


def _units(values: Sequence[TrialValues], blocks: int | None) -> Units:
    quality = np.concatenate([one.metric for one in values])
    cost = np.concatenate([one.cost for one in values])
    units = Units(quality, cost, values[0].weights, values[0].rows)
    return units if blocks is None else _condensed(units, blocks)


def _condensed(units: Units, blocks: int) -> Units:
    if len(units.weights) <= blocks:
        return units
    return Units(*block_means(units.quality, units.cost, units.weights, units.rows, blocks))


def by_repeat(trials: Sequence[ValuedTrial]) -> tuple[list[str], list[list[ValuedTrial]]]:
    """The learners that have values in every repeat, in the order of the trials, and their trials
    repeat by repeat."""
    there: dict[str, set[tuple[int, int]]] = {}
    for one in trials:
        there.setdefault(one.learner, set()).add((one.fold, one.seed))
    every = set().union(*there.values())
    # differences are paired: a learner that lacks a repeat cannot be compared in the others
    names = [name for name, own in there.items() if own == every]
    parts: dict[tuple[int, int], list[ValuedTrial]] = {key: [] for key in sorted(every)}
    for one in trials:
        if one.learner in names:
            parts[one.fold, one.seed].append(one)
    return names, [*parts.values()] if names else []


def levels(
    found: Iterable[Repeat], choices: Sequence[Callable[[], Choose]], resamples: int
) -> list[tuple[Level, Level]]:
    """For each way to choose, the levels of quality and cost over all repeats, learners in the
    order of the repeats'. All share their draws, as do repeats on the same rows (seeds on one
    split), which are joined before the others."""
    drawn = [one for (one,) in draws(found, [Ask(choices)], resamples)]
    return [
        (
            over_repeats(drawn, [one.quality[k] for one in drawn]),
            over_repeats(drawn, [one.cost[k] for one in drawn]),
        )
        for k in range(len(choices))
    ]


def draws(found: Iterable[Repeat], asks: Sequence[Ask], resamples: int) -> Iterator[list[Drawn]]:
    """Repeat by repeat the draws of each ask. ``found`` may read repeats as they are asked for:
    those of a large run do not fit into memory together."""
    seeds: dict[tuple[int, str], int] = {}
    for one in found:
        rows = one.fold, one.fingerprint
        seed = seeds.setdefault(rows, len(seeds))  # the same rows draw the same units
        of = [*one.candidates.values()]
        about = rows, min(len(of[0].test.weights), BLOCKS), _bounds(of)
        yield [Drawn(*about, *_draw(of, ask, resamples, seed)) for ask in asks]


def _draw(
    learners: Sequence[Candidates], ask: Ask, resamples: int, seed: int
) -> tuple[Draws, Draws]:
    if ask.tails:
        learners = [_by_tails(one) for one in learners]
    chooses = [choice() for choice in ask.choices]
    with one_thread():
        return draw_all(learners, chooses, resamples, seed, priced=ask.priced)


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS computes with one thread in the body: several wait longer than they compute."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@lru_cache(1)
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looking for them takes 2 ms


def _by_tails(one: Candidates) -> Candidates:
    cost = one.p95.astype(np.float32)[:, None]
    valid = replace(one.valid, cost=np.broadcast_to(cost, one.valid.cost.shape))
    return replace(one, valid=valid)


def _bounds(learners: Sequence[Candidates]) -> tuple[float, float]:
    values = [one.test.quality for one in learners]
    return float(min(v.min() for v in values)), float(max(v.max() for v in values))


def over_repeats(drawn: Sequence[Drawn], values: Sequence[Draws]) -> Level:
    """The level of the mean over repeats, from ``values`` (learners, 1 + resamples) of each."""
    groups: dict[tuple[int, str], list[Level]] = {}
    for one, own in zip(drawn, values, strict=True):
        groups.setdefault(one.rows, []).append(of_units(own, one.units))
    return joined([joined(group, same_units=True) for group in groups.values()], same_units=False)


def bounds(drawn: Sequence[Drawn]) -> tuple[float, float]:
    """The bounds of all repeats."""
    lows, highs = zip(*(one.bounds for one in drawn), strict=True)
    return min(lows), max(highs)
