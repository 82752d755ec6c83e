"""How long a plan may take, and how much memory: from recorded durations, else from sizes.

The duration of a job is drawn from those recorded for its learner on its data set; else from the
learner's on other data, or from all, by cells of the training data (rows times features). What is
not known of a learner on a data set is one log-normal factor for all of its jobs there, so errors
do not average out. The wall time of a draw is Graham's lower bound: the work shared by the
workers, or the longest fit with its trial. What is compiled once on a machine, by the first run
there, is not foreseen: ``bench plan`` says so where that is still to come.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.results.records import FitSpec, TrialSpec

DRAWS = 400
_AT_ONCE = 256  # jobs: a plan may have any number of them
START_SECONDS = 2.0
"""What a worker takes to start."""

SAME, OTHER_DATA, OTHER_LEARNER, NOTHING = 0.15, 0.7, 1.2, 1.6
"""Spread (of the logarithm) of what is not known, by what the durations were recorded of."""

_UNKNOWN = (2e-6, 5e-7, 1.6e-5)
"""Seconds of a fit and of a trial, and MiB, for each cell where nothing was ever recorded."""
_LEAST = (0.02, 0.02, 200.0)

Taken = Mapping[tuple[str, str], Sequence[tuple[float, float, float]]]
"""Seconds of fits, of trials, and peaks of memory in MiB, by data set and learner."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """Half of the time it is at most the first number of each pair, nine times in ten the second.

    ``wall`` and ``core`` are seconds (all cores together), ``memory`` MiB of all workers; of
    ``jobs`` that are left ``recorded`` have durations of the same learner and data set.
    """

    wall: tuple[float, float]
    core: tuple[float, float]
    memory: tuple[float, float]
    jobs: int
    recorded: int


@dataclass(frozen=True)
class Durations:
    """What was recorded, and how many cells the data sets have, recorded and planned."""

    taken: Taken
    cells: Mapping[str, int]

    @cached_property
    def _rates(self) -> list[tuple[str, FloatArray]]:
        """Learner, and its durations for each cell."""
        return [
            (learner, np.array(rows) / self.cells[data])
            for (data, learner), rows in self.taken.items()
            if self.cells.get(data)
        ]

    def of(self, dataset: str, learner: str) -> tuple[FloatArray, float]:
        """Durations (k, 3) that may be those of a learner on a data set, and their spread."""
        if rows := self.taken.get((dataset, learner)):
            return np.array(rows), SAME
        cells = self.cells[dataset]
        if own := [rates for name, rates in self._rates if name == learner]:
            return np.maximum(np.concatenate(own) * cells, _LEAST), OTHER_DATA
        if every := [rates for _, rates in self._rates]:
            return np.maximum(np.concatenate(every) * cells, _LEAST), OTHER_LEARNER
        return np.maximum(np.array([_UNKNOWN]) * cells, _LEAST), NOTHING

    def expected(self, specs: Iterable[FitSpec | TrialSpec]) -> dict[str, float]:
        """The seconds that each may take, by its key."""
        medians: dict[tuple[str, str], FloatArray] = {}
        found = {}
        for spec in specs:
            kind = _kind(spec)
            if kind not in medians:
                medians[kind] = np.median(self.of(*kind)[0], axis=0)
            found[spec.key] = float(medians[kind][0 if isinstance(spec, FitSpec) else 1])
        return found


def foresee(
    durations: Durations, left: Sequence[FitSpec | TrialSpec], workers: int, threads: int
) -> Foresight:
    """What the jobs that are left may take."""
    rng = np.random.default_rng(0)  # the same plan, the same answer
    counts: dict[tuple[str, str], list[int]] = {}
    for spec in left:
        counts.setdefault(_kind(spec), [0, 0])[0 if isinstance(spec, FitSpec) else 1] += 1
    work, longest, peak = (np.zeros(DRAWS) for _ in range(3))
    recorded = 0
    for kind, numbers in counts.items():
        rows, spread = durations.of(*kind)
        factor = np.exp(spread * rng.standard_normal(DRAWS))
        recorded += sum(numbers) if kind in durations.taken else 0
        chain = np.zeros(DRAWS)
        for column, number in enumerate(numbers):
            most = np.zeros(DRAWS)
            for start in range(0, number, _AT_ONCE):
                size = min(_AT_ONCE, number - start), DRAWS
                seconds = rng.choice(rows[:, column], size) * factor
                work += seconds.sum(axis=0)
                most = np.maximum(most, seconds.max(axis=0))
            chain += most  # a trial waits for its fit
        longest = np.maximum(longest, chain)
        peak = np.maximum(peak, rng.choice(rows[:, 2], DRAWS))
    wall = np.maximum(work / workers, longest) + (START_SECONDS if left else 0.0)
    spent = _pair(wall), _pair(work * threads), _pair(peak * workers)
    return Foresight(*spent, jobs=len(left), recorded=recorded)


def _kind(spec: FitSpec | TrialSpec) -> tuple[str, str]:
    return spec.dataset, spec.learner_name if isinstance(spec, FitSpec) else spec.learner


def _pair(values: FloatArray) -> tuple[float, float]:
    half, most = np.quantile(values, (0.5, 0.9))
    return float(half), float(most)
