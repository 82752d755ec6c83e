"""Content keys of fits and trials: what a result depends on, and nothing else.

FitKey = learner (name, version, the source it runs), parameters, the fits it needs, training data
(fingerprint, task, fold, names of features), prices to train on, primary metric (a learner may stop
early by it), seed. ScoreKey = FitKey + metrics, cost model, accounting, audit, caps, whether
training rows are scored, and the name that the data set goes by in results. Of metrics and cost
models that plugins bring the source enters too. Threads and workers do not enter: they must not
change a result. Nor does the machine, but for learners that declare ``numerics``: the versions of
those libraries, and the features of the processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bench_core._io.digests import code_key, digest
from bench_core._io.machine import versions
from bench_core.class_names import encode
from bench_core.contracts import learner_of
from bench_core.metrics import parse_metric
from bench_core.parameters import as_json, is_learner, parameters
from bench_core.protocols import Metric
from bench_core.results.records import TrialSpec

SCORING = 14
"""Rises when scoring, metering or the audit would give other rows for the same model."""


class DescribedLearner:
    """A learner with its parameters, as a plan needs to know it."""

    def __init__(self, learner: Any) -> None:
        kind: Any = type(learner)
        own = learner_of(learner)
        held = [getattr(learner, p.name) for p in parameters(kind)]
        self.name = str(kind.name)
        self.tasks = sorted(map(str, own.tasks))
        self.version = str(
            own.version
        )  # of the class; that of its distribution counts if it has one
        self.encoded = encode(learner)  # for other processes
        self.params = as_json(learner)
        self.code = code_key(kind)  # a digest of its source
        of_libraries = {"stamp": own.stamp(), "numerics": versions(*own.numerics)}
        self.decides = {name: text for name, text in of_libraries.items() if text}
        self.inner = [DescribedLearner(one) for one in held if is_learner(one)]  # its parameters
        self.needs = [DescribedLearner(one) for one in own.needs()]  # whose fits it stands on

    def with_inner(self) -> Iterator[DescribedLearner]:
        """It and the learners that it holds."""
        yield self
        for inner in self.inner:
            yield from inner.with_inner()

    def key(self, version: str = "") -> dict[str, Any]:
        """Everything that decides what it computes, as JSON."""
        return {
            "name": self.name,
            "version": version,
            "code": self.code,
            "params": self.params,
            "inner": [inner.key() for inner in self.inner],
            **self.decides,
        }

    @property
    def row_code(self) -> str:
        """A digest of its code and of that of the learners that it holds, for rows: 16 digits."""
        return digest([each.code for each in self.with_inner()])[:16]

    @property
    def libraries(self) -> str:
        """Stamps and numerics that decide next to code, of it and the learners that it holds."""
        texts = (text for one in self.with_inner() for text in one.decides.values())
        return ", ".join(dict.fromkeys(texts))

    def unsuited(self, task: str, data: str) -> str:
        """Why it cannot work on data of a task, or nothing."""
        if task not in self.tasks:
            return f"{self.name} does {', '.join(self.tasks)}, {data} is {task}"
        for need in self.needs:
            if reason := need.unsuited(task, data):
                return f"{self.name} stands on {reason.replace(' does ', ', which does ', 1)}"
        return ""


def metric_key(name: str, registered: Mapping[str, Metric]) -> tuple[str, ...]:
    """A metric's name, and for one that a plugin brings a digest of its source."""
    metric = parse_metric(name, registered)
    cls = type(metric)
    built_in = cls.__module__.startswith("bench_core.")
    return (metric.name,) if built_in else (metric.name, code_key(cls))


def fit_key(learner: Mapping[str, Any], needs: Iterable[str], data: Sequence[Any]) -> str:
    """The FitKey of a learner by its key, the fits that it stands on, and what it trains on."""
    return digest(["fit", learner, [*needs], *data])


def score_key(spec: TrialSpec, costs: str, metrics: Iterable[tuple[str, ...]]) -> str:
    """The ScoreKey of a trial: a fitted model, and how it is judged.

    The data set enters by its name in results (equal rows may go by two names), the cost model by
    its ``costs_key``, metrics by their keys.
    """
    judged = [spec.dataset, costs, [*metrics], spec.accounting, spec.audit_mode, spec.splits]
    caps = [["caps", *spec.caps]] if spec.caps else []
    return digest(["score", SCORING, spec.fit, *judged, *caps])
