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
    "adapt-gbrt": (1.6, 60),
    "adapt-l1": (1.1, 72),
    "adapt-lin": (1.5, 51),
    "adapt-lstsq": (3, 68),
    "and-or": (2.1, 7.5),
    "astc": (0.082, 3.6),
    "budget-boosting": (6.4, 34),
    "budget-prune": (1.3, 31),
    "budget-rf": (1.3, 15),
    "catboost": (0.75, 30),
    "cegb": (0.42, 20),
    "cheapest-first": (0.74, 12),
    "constant": (0.0081, 2.2),
    "cost-tree": (0.09, 6.7),
    "cronus": (2.5, 3.4),
    "cronus-init": (1.5, 6.2),
    "cronus-single": (0.17, 3.8),
    "cscc": (0.77, 2.5),
    "cstc": (1.4, 3.9),
    "cstc-single": (0.11, 2.6),
    "early-exit": (0.033, 9.9),
    "forward-selection": (3, 13),
    "gbrt": (0.16, 29),
    "gbrt-subset": (0.29, 35),
    "greedy-order": (0.66, 9.1),
    "l1": (1.1, 6.7),
    "lightgbm": (0.28, 28),
    "lightgbm-cegb": (0.56, 21),
    "miser": (0.16, 19),
    "random-forest": (2.4, 35),
    "random-order": (0.54, 10),
    "rbf-svm": (0.42, 12),
    "sklearn": (0.08, 11),
    "soft-cascade": (0.92, 6.8),
    "svm-average-kernel": (1, 31),
    "xgboost": (0.31, 26),
}
"""By learner the processor time of a fit and of a trial of unit size (``job_units``)."""

STRANGER = (0.74, 12)
"""Of a learner that is not in the table (``lear`` is in no suite of the table, ``imported`` needs a
model's file): the medians of those that are."""

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
    """Seconds of a fit and of a trial, and MiB (3,), on the machine of the table."""
    pair = MICROSECONDS.get(kind.learner, STRANGER)
    fit, trial = np.multiply(pair, job_units(kind, size)) * 1e-6
    return np.array([fit, trial, 250 + 16e-6 * size.rows * size.features])


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
