"""How long a plan may take, and how much memory: from recorded durations, else from sizes.

The duration of a job is drawn from those recorded for its learner on its data set, else on other
data, in proportion to what the table of ``job_seconds`` says of both; else it is the table's, times
what recorded durations are of the table's, or a probe's where there are none. What is not known of
a learner on a data set is one log-normal factor for all of its jobs there, and what a probe does
not tell of a machine one for all jobs, so errors do not average out. Recorded durations leave out
what a job waited for a processor; all is stretched by what others have of the processors now. A
load that changes during the run cannot be foreseen. The wall time of a draw is Graham's lower
bound: the work shared by the workers, or the longest fit with its trial.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.planning.job_seconds import (
    IDLE,
    Kind,
    Machine,
    Size,
    in_table,
    job_seconds,
    kind_of,
)
from bench_core.results.records import FitSpec, TrialSpec

DRAWS = 400
_AT_ONCE = 256  # jobs: a plan may have any number of them
START_SECONDS = 3.0
"""What the command and its workers take to start."""

SAME, OTHER_MACHINE, OTHER_DATA, STRANGER = 0.15, 0.25, 0.5, 1.2
"""Spread (of the logarithm) of what is not known: where durations of the learner on the data set
are recorded, or in the table, or in either of it on other data; and of other learners."""

PROBED = 0.2
"""Likewise of all jobs together where nothing is recorded on this machine."""

MEMORY = 0.3
"""Likewise of the peak of memory, where none is recorded of the learner on the data set."""

Taken = Mapping[Kind, Sequence[tuple[float, float, float]]]
"""Seconds of fits, of trials, and peaks of memory in MiB, by ``Kind``."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """Half of the time it is at most the first number of each pair, nine times in ten the second.

    ``wall`` and ``core`` are seconds (all cores together), ``memory`` MiB of all workers; of
    ``jobs`` that are left ``recorded`` have durations of the same learner and data set. ``machine``
    is what ``wall`` counts on.
    """

    wall: tuple[float, float]
    core: tuple[float, float]
    memory: tuple[float, float]
    jobs: int
    recorded: int
    machine: Machine

    @property
    def elsewhere(self) -> "Foresight":
        """The same where others will do the jobs: what uses this machine now delays none there."""
        idle = self.machine._replace(contention=1.0)
        half, most = (seconds / self.machine.contention for seconds in self.wall)
        return replace(self, wall=(half, most), machine=idle)


@dataclass(frozen=True)
class Durations:
    """What was recorded, the sizes of the data sets, recorded and planned, and the machine."""

    taken: Taken
    sizes: Mapping[str, Size]
    machine: Machine = IDLE

    @cached_property
    def _ratios(self) -> dict[tuple[str, ...], FloatArray]:
        """Recorded durations over the table's (k, 3), of a data set and learner, of a learner on
        all data, and of all."""
        found = defaultdict(list)
        for kind, rows in self.taken.items():
            if size := self.sizes.get(kind.dataset):
                ratios = np.array(rows) / job_seconds(kind, size)
                for like in (kind[:2], kind[1:2], ()):
                    found[like].append(ratios)
        return {like: np.concatenate(ratios) for like, ratios in found.items()}

    @cached_property
    def _usual(self) -> FloatArray:
        """What a learner that has no durations takes here, over the table's (1, 3)."""
        if () in self._ratios:
            return np.median(self._ratios[()], axis=0, keepdims=True)
        return np.array([[self.machine.slowness, self.machine.slowness, 1.0]])

    def of(self, kind: Kind) -> tuple[FloatArray, float]:
        """Durations (k, 3) that may be those of jobs of a kind, and their spread."""
        table = job_seconds(kind, self.sizes[kind.dataset])
        if kind[:2] in self._ratios:
            return self._ratios[kind[:2]] * table, SAME
        learner, on_data = in_table(kind)
        spread = OTHER_MACHINE if on_data else OTHER_DATA
        if kind[1:2] in self._ratios:
            return self._ratios[kind[1:2]] * table, spread
        return self._usual * table, spread if learner else STRANGER

    def recorded(self, kind: Kind) -> bool:
        """Whether there are durations of the learner on the data set."""
        return kind[:2] in self._ratios

    def expected(self, specs: Iterable[FitSpec | TrialSpec]) -> dict[str, float]:
        """The seconds that each may take on this machine when idle, by its key."""
        medians: dict[Kind, FloatArray] = {}
        found = {}
        for spec in specs:
            kind = kind_of(spec)
            if kind not in medians:
                medians[kind] = np.median(self.of(kind)[0], axis=0)
            found[spec.key] = float(medians[kind][0 if isinstance(spec, FitSpec) else 1])
        return found


def foresee(
    durations: Durations, left: Sequence[FitSpec | TrialSpec], workers: int, threads: int
) -> Foresight:
    """What the jobs that are left may take."""
    rng = np.random.default_rng(0)  # the same plan, the same answer
    counts: dict[Kind, list[int]] = {}
    for spec in left:
        counts.setdefault(kind_of(spec), [0, 0])[0 if isinstance(spec, FitSpec) else 1] += 1
    unknown = {kind[:2]: rng.standard_normal(DRAWS) for kind in counts}
    work, longest, peak = (np.zeros(DRAWS) for _ in range(3))
    for kind, numbers in counts.items():
        rows, spread = durations.of(kind)
        chain = np.zeros(DRAWS)
        for column, number in enumerate(numbers):
            total, most = _drawn(rng, rows[:, column], number)
            factor = np.exp(spread * unknown[kind[:2]])
            work += total * factor
            chain += most * factor  # a trial waits for its fit
        longest = np.maximum(longest, chain)
        apart = 0.0 if durations.recorded(kind) else MEMORY
        most = rng.choice(rows[:, 2], DRAWS) * np.exp(apart * unknown[kind[:2]])
        peak = np.maximum(peak, most)
    machine = durations.machine
    if not durations.taken:
        probed = np.exp(PROBED * rng.standard_normal(DRAWS))
        work, longest = work * probed, longest * probed
    before = START_SECONDS + machine.compiling if left else 0.0
    wall = (np.maximum(work / workers, longest) + before) * machine.contention
    spent = _pair(wall), _pair(work * threads + machine.compiling), _pair(peak * workers)
    recorded = sum(sum(counts[kind]) for kind in counts if durations.recorded(kind))
    return Foresight(*spent, jobs=len(left), recorded=recorded, machine=machine)


def _drawn(
    rng: np.random.Generator, seconds: FloatArray, number: int
) -> tuple[FloatArray, FloatArray]:
    """The sum and the longest of so many jobs, in each draw."""
    if len(seconds) == 1 and number:
        return np.full(DRAWS, number * seconds[0]), np.full(DRAWS, seconds[0])
    total, most = np.zeros(DRAWS), np.zeros(DRAWS)
    for start in range(0, number, _AT_ONCE):
        drawn = rng.choice(seconds, (min(_AT_ONCE, number - start), DRAWS))
        total += drawn.sum(axis=0)
        most = np.maximum(most, drawn.max(axis=0))
    return total, most


def _pair(values: FloatArray) -> tuple[float, float]:
    half, most = np.quantile(values, (0.5, 0.9))
    return float(half), float(most)
