"""What a job takes by its size and learner, where nothing is recorded, and this machine beside the
one that the table was measured on (tests/speed/job_seconds.py prints it anew)."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bench_core._io.processes import running_elsewhere, waited_seconds
from bench_core.arrays import FloatArray
from bench_core.costs.compiled import compiled_before
from bench_core.planning.request import available_cores
from bench_core.results.records import FitSpec, TrialSpec

MICROSECONDS: Mapping[str, tuple[float, float]] = {
    "adapt-gbrt": (3.7, 52),
    "adapt-l1": (1.5, 65),
    "adapt-lin": (3.4, 59),
    "adapt-lstsq": (9.3, 77),
    "and-or": (15, 5.6),
    "astc": (0.25, 3.1),
    "budget-boosting": (7.7, 18),
    "budget-prune": (0.58, 17),
    "budget-rf": (1.2, 13),
    "catboost": (0.91, 21),
    "cegb": (0.74, 22),
    "cheapest-first": (2, 14),
    "constant": (0.024, 1.5),
    "cost-tree": (0.2, 3.3),
    "cronus": (13, 2.8),
    "cronus-init": (22, 5.1),
    "cronus-single": (1, 2.6),
    "cscc": (2.6, 2.5),
    "cstc": (4.5, 3.4),
    "cstc-single": (0.65, 2.6),
    "early-exit": (0.077, 8.2),
    "forward-selection": (2.1, 10),
    "gbrt": (0.25, 26),
    "gbrt-subset": (0.38, 23),
    "greedy-order": (1.2, 7.7),
    "l1": (0.91, 4.3),
    "lightgbm": (0.36, 20),
    "lightgbm-cegb": (0.61, 20),
    "miser": (0.26, 18),
    "random-forest": (4.6, 41),
    "random-order": (1, 8.1),
    "rbf-svm": (0.44, 6.6),
    "sklearn": (0.13, 7),
    "soft-cascade": (4.5, 5.3),
    "svm-average-kernel": (0.63, 10),
    "xgboost": (0.37, 22),
}
"""By learner the processor time of a fit and of a trial of unit size (``job_units``)."""

STRANGER = (0.97, 10)
"""Of a learner that is not in the table (``lear`` ranks, and no data of the table have queries;
``imported`` needs a model's file): the medians of those that are."""

PROBE = 0.0033
"""Seconds of ``probe_seconds`` on the machine of the table."""

COMPILING = 20.0
"""Processor seconds of what every first run on a machine compiles, there."""

MANY_TREES = 100.0


class Kind(NamedTuple):
    """Jobs that take about as long. ``trees``: the learner's parameter of that name."""

    dataset: str
    learner: str
    trees: float = MANY_TREES

    @classmethod
    def of(cls, dataset: str, learner: str, trees: Any) -> Kind:
        """``trees`` may be whatever a learner calls so."""
        known = isinstance(trees, int | float) and trees > 0
        return cls(dataset, learner, float(trees) if known else MANY_TREES)


def kind_of(spec: FitSpec | TrialSpec) -> Kind:
    """The kind of a fit or trial."""
    if isinstance(spec, FitSpec):
        return Kind.of(spec.dataset, spec.learner_name, spec.learner.get("fields", {}).get("trees"))
    return Kind.of(spec.dataset, spec.learner, spec.params.get("trees"))


class Size(NamedTuple):
    """Rows times features to train on, the model's outputs, and rows that it is judged on."""

    cells: int
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
    trees are a limit that many fits stop short of."""
    trees = (kind.trees / MANY_TREES) ** 0.75
    return (1e5 + size.cells * size.outputs) * trees, 4e3 + size.judged


def job_seconds(kind: Kind, size: Size) -> FloatArray:
    """Seconds of a fit and of a trial, and MiB (3,), on the machine of the table."""
    pair = MICROSECONDS.get(kind.learner, STRANGER)
    fit, trial = np.multiply(pair, job_units(kind, size)) * 1e-6
    return np.array([fit, trial, 250 + 16e-6 * size.cells])


def size_of(features: int, classes: int, rows: Mapping[str, int]) -> Size:
    """The size of a data set's jobs."""
    outputs = classes if classes > 2 else 1
    return Size(features * rows["train"], outputs, sum(rows.values()) - rows["train"])


def probe_seconds() -> float:
    """Processor seconds of a little work of the kinds that jobs do, the least of five times; those
    of the table's machine where the clock is too coarse to tell (Windows: 15.6 ms)."""
    values = np.random.default_rng(0).random(100_000)
    taken = []
    for _ in range(5):
        started = time.process_time()
        np.sort(values).cumsum()
        sum(i * i for i in range(50_000))
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
    return min(load, felt, running_elsewhere())
