"""What a job takes by its learner, data set and size, where nothing is recorded, and this machine
beside the one that the table was measured on (tests/speed/job_seconds.py writes it anew)."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping
from functools import cache
from itertools import islice
from math import log
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numpy as np

from bench_core._io.processes import running_elsewhere, waited_seconds
from bench_core.arrays import FloatArray
from bench_core.costs.compiled import compiled_before
from bench_core.planning.request import available_cores
from bench_core.results.records import FitSpec, TrialSpec

Table = Mapping[tuple[str, ...], Mapping[float, float]]
"""Seconds of a unit by the units of a job: of fits or trials of a learner on a data set; at 0 means
of a learner, and of all."""

TABLE = Path(__file__).with_name("job_seconds.csv")
"""Jobs that were measured: fit or trial, learner, data set, units (``job_units``), and processor
seconds, the median of those of about as many units."""

PROBE = 0.0036
"""Seconds of ``probe_seconds`` on the machine of the table."""

_NEGLIGIBLE = 0.1  # threads besides a run's own that delay it by less than its start varies

COMPILING = 20.0
"""Processor seconds of what every first run on a machine compiles, there."""

MANY_TREES, USUAL_FEATURES = 100.0, 30.0


class Kind(NamedTuple):
    """Jobs that take about as long, by data set, learner and what its parameters say: how much a
    fit has to do (``effort``), and whether it works on the trees of a base (``based``), so that it
    does not matter how many features there are."""

    dataset: str
    learner: str
    effort: float = 1.0
    based: bool = False

    @classmethod
    def of(cls, dataset: str, learner: str, params: Mapping[str, Any]) -> Kind:
        """From the parameters of a fit or a trial."""
        based = isinstance(params.get("base"), Mapping)
        return cls(dataset, learner, _effort(params), based)


def kind_of(spec: FitSpec | TrialSpec) -> Kind:
    """The kind of a fit or trial."""
    if isinstance(spec, FitSpec):
        return Kind.of(spec.dataset, spec.learner_name, spec.learner.get("fields", {}))
    return Kind.of(spec.dataset, spec.learner, spec.params)


def _effort(params: Mapping[str, Any]) -> float:
    """Trees, those of a fit or of its base, are a limit that many fits stop short of; the values of
    a list are tried one by one in a part of it."""
    trees, tried = _trees(params), 1
    for values in params.values():
        tried *= len(values) or 1 if isinstance(values, list | tuple) else 1
    known = isinstance(trees, int | float) and trees > 0  # it may be whatever a learner calls so
    return float((trees / MANY_TREES if known else 1.0) ** 0.75 * tried**0.5)


def _trees(params: Mapping[str, Any]) -> Any:
    base = params.get("base")
    if "trees" in params or not isinstance(base, Mapping):
        return params.get("trees")
    return _trees(base.get("fields", base))  # as in a FitSpec, or in a TrialSpec


class Size(NamedTuple):
    """Rows and features to train on, the model's outputs, and rows that it is judged on."""

    rows: int
    features: int
    outputs: int = 1
    judged: int = 0


class Machine(NamedTuple):
    """What makes a second of the table, or of an idle machine, longer here.

    ``slowness``: seconds here for a second of the table; ``contention``: how many times as long
    threads take now as on an idle machine; ``compiling``: what is still to be compiled.
    """

    slowness: float = 1.0
    contention: float = 1.0
    compiling: float = 0.0


IDLE = Machine()
"""The machine of the table, with nothing else to do and all compiled."""


def job_units(kind: Kind, size: Size) -> tuple[float, float]:
    """The sizes of a fit and of a trial. What each begins with is worth so many cells and rows, and
    a row of many features, or for many outputs, takes less time for each of them."""
    width = USUAL_FEATURES * (1 if kind.based else (size.features / USUAL_FEATURES) ** 0.8)
    return (2e5 + size.rows * width * size.outputs**0.8) * kind.effort, 4e3 + size.judged


def job_seconds(kind: Kind, size: Size) -> FloatArray:
    """Seconds of a fit and of a trial, and MiB (3,), on the machine of the table.

    In proportion to the job of the learner on the data set that is nearest in size; else by what
    a unit takes the learner on the table's data sets, in the mean; else by what it takes the median
    learner.
    """
    fit, trial = (
        units * unit_seconds(_table(), (what, kind.learner, kind.dataset), units)
        for what, units in zip(("fit", "trial"), job_units(kind, size), strict=True)
    )
    return np.array([fit, trial, 250 + 16e-6 * size.rows * size.features])


def in_table(kind: Kind) -> tuple[bool, bool]:
    """Whether the table has fits of the learner, and whether of the learner on the data set."""
    seconds = _table()
    return ("fit", kind.learner) in seconds, ("fit", kind.learner, kind.dataset) in seconds


def unit_seconds(table: Table, job: tuple[str, ...], units: float) -> float:
    """Seconds of a unit of a job of so many, by fit or trial, learner and data set."""
    if jobs := table.get(job):
        return jobs[min(jobs, key=lambda measured: abs(log(measured / units)))]
    return table.get(job[:2], table[job[:1]])[0.0]


@cache
def _table() -> Table:
    found: dict[tuple[str, ...], dict[float, float]] = {}
    with TABLE.open(encoding="utf-8", newline="") as lines:
        for what, *of, units, seconds in islice(csv.reader(lines), 1, None):
            found.setdefault((what, *of), {})[float(units)] = float(seconds) / float(units)
    return found | unit_means(found)


def unit_means(jobs: Table) -> dict[tuple[str, ...], dict[float, float]]:
    """At 0 the geometric mean by learner, over data sets of the mean over their jobs, and the
    median over learners; ``jobs`` are by fit or trial, learner and data set."""
    by_learner: dict[tuple[str, ...], list[float]] = {}
    for of, rates in jobs.items():
        by_learner.setdefault(of[:2], []).append(geometric_mean(rates.values()))
    means = {of: {0.0: geometric_mean(rates)} for of, rates in by_learner.items()}
    for what in ("fit", "trial"):
        usual = median(rates[0.0] for of, rates in means.items() if of[0] == what)
        means |= {(what,): {0.0: usual}}
    return means


def size_of(features: int, classes: int, rows: Mapping[str, int]) -> Size:
    """The size of a data set's jobs."""
    outputs = classes if classes > 2 else 1
    return Size(rows["train"], features, outputs, sum(rows.values()) - rows["train"])


def probe_seconds() -> float:
    """Processor seconds of a little work of the kinds that jobs do, the least of 15 times; those
    of the table's machine where the clock is too coarse to tell (Windows: 15.6 ms)."""
    # a stable sort is plain code; the other has instructions that take one processor ten times as
    # long as another, and jobs have hardly any of these. A loop of Python's own takes one process
    # 1.4 times as long as the next one, by where its code lies
    values = np.random.default_rng(0).random(30_000)
    words = [*map(str, values[:5000].tolist())]
    taken = []
    for _ in range(15):
        started = time.process_time()
        np.sort(values, kind="stable").cumsum()
        [*map(float, words)]
        taken.append(time.process_time() - started)
    return min(taken) or PROBE


def machine_now(threads: int) -> Machine:
    """This machine as it is now, for a run of so many threads."""
    slowness = _slowness()
    contention = max(1.0, (_others() + threads) / available_cores())
    return Machine(slowness, contention, 0.0 if compiled_before() else COMPILING * slowness)


@cache
def _slowness() -> float:
    return probe_seconds() / PROBE


def _others() -> float:
    """How many threads compete for the processors: those that computed in the last minute, but no
    more than still do (a run of one's own may just have ended), nor than this process has felt of
    them, as some may have to stand back for others."""
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # elsewhere than on Unix, and in some containers
        load = 0.0
    waited = waited_seconds([os.getpid()])
    felt = (1 + waited / time.process_time()) * available_cores() - 1 if waited else load
    most = min(load, felt)
    return min(most, running_elsewhere()) if most > _NEGLIGIBLE else most
