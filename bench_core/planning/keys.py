"""Content keys of fits and trials: digests of everything that affects a result; what costs decide.

FitKey = learner (name, version, source code), parameters, needed fits, training data (fingerprint,
task, fold, feature names), training prices, primary metric (for early stopping), seed. ScoreKey =
FitKey + metrics, cost model, costs of errors, accounting, audit, caps, scoring of training rows,
and the data set's name in results. The source of plugins' metrics and cost models is included.
Threads and workers are not: they must not change a result. Neither is the machine, except for
learners that declare ``numerics``: versions of those libraries, and processor features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench_core._io.digests import code_key, digest
from bench_core._io.machine import versions
from bench_core.contracts import learner_of
from bench_core.costs.by_row import ByRow
from bench_core.costs.model import costs_key, counts_features
from bench_core.datasets.cache import kept_arrays
from bench_core.metrics import parse_metric
from bench_core.optimum import optimum_of
from bench_core.parameters import as_json, encode, is_learner, parameters
from bench_core.protocols import Metric
from bench_core.results.records import DatasetUse, TrialSpec
from bench_core.splits import Splits

SCORING = 17
"""Increases when scoring, metering or the audit change the results of the same model."""


class DescribedLearner:
    """A learner with its parameters, as described in a plan."""

    def __init__(self, learner: Any) -> None:
        kind: Any = type(learner)
        complete = learner_of(learner)
        values = [getattr(learner, p.name) for p in parameters(kind)]
        self.name = str(kind.name)
        self.tasks = sorted(map(str, complete.tasks))
        self.version = str(complete.version)  # used if no distribution has a version
        self.encoded = encode(learner)  # for other processes
        self.params = as_json(learner)
        self.code = code_key(kind)  # digest of its source
        of_libraries = {"stamp": complete.stamp(), "numerics": versions(*complete.numerics)}
        self.decides = {name: text for name, text in of_libraries.items() if text}
        self.inner = [DescribedLearner(one) for one in values if is_learner(one)]  # nested learners
        self.needs = [DescribedLearner(one) for one in complete.needs()]  # it needs their fits

    def with_inner(self) -> Iterator[DescribedLearner]:
        """Yield the learner and its nested learners."""
        yield self
        for inner in self.inner:
            yield from inner.with_inner()

    def key(self, version: str = "") -> dict[str, Any]:
        """Return everything that determines its results, as JSON."""
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
        """Digest of the source of it and its nested learners, for rows: 16 digits."""
        return digest([each.code for each in self.with_inner()])[:16]

    @property
    def libraries(self) -> str:
        """Stamps and numerics of it and its nested learners."""
        texts = (text for one in self.with_inner() for text in one.decides.values())
        return ", ".join(dict.fromkeys(texts))

    def unsuited(self, task: str, data: str) -> str:
        """Reason why it cannot handle data of a task, or ""."""
        if task not in self.tasks:
            return f"{self.name} does {', '.join(self.tasks)}; {data} is {task}"
        for need in self.needs:
            if reason := need.unsuited(task, data):
                return f"{self.name} needs {reason.replace(' does ', ', which does ', 1)}"
        return ""


def metric_key(name: str, registered: Mapping[str, Metric]) -> tuple[str, ...]:
    """Return a metric's name, with a digest of its source and its values if it is not built in."""
    metric = parse_metric(name, registered)
    cls = type(metric)
    built_in = cls.__module__.startswith("bench_core.")
    values = [repr(own)] if (own := getattr(metric, "__dict__", {})) else []
    return (metric.name,) if built_in else (metric.name, code_key(cls), *values)


def fit_key(learner: Mapping[str, Any], needs: Iterable[str], data: Sequence[Any]) -> str:
    """Return the FitKey from the learner's key, the needed fits and the training data."""
    return digest(["fit", learner, [*needs], *data])


def score_key(spec: TrialSpec, costs: str, metrics: Iterable[tuple[str, ...]]) -> str:
    """Return the ScoreKey of a trial: a fitted model and its scoring.

    It includes the data set's name in results (equal rows may have two names), the cost model's
    ``costs_key`` and the metrics' keys.
    """
    judged = [spec.dataset, costs, [*metrics], spec.accounting, spec.audit_mode, spec.splits]
    caps = [["caps", *spec.caps]] if spec.caps else []
    errors = [["error costs", *spec.error_costs]] if spec.error_costs else []
    return digest(["score", SCORING, spec.fit, *judged, *caps, *errors])


Stated = Mapping[str | tuple[str, str], Any]
"""Corners of the optimum that a data set states for its own costs, by metric."""


def priced(
    use: DatasetUse, splits: Splits, caps: tuple[float, ...], stated: Stated | None = None
) -> DatasetUse:
    """Return the use of a data set with the facts that depend on its costs and on caps."""
    return replace(
        use,
        price_of_everything=splits.prices.everything,
        cheapest_price=splits.prices.cheapest,
        counted=counts_features(splits.costs, use.features),
        unit=splits.costs.unit,
        caps=caps,
        optimum=_optimum(splits, stated or {}, caps),
        sources=splits.sources,
    )


def billed(
    spec: TrialSpec,
    use: DatasetUse,
    splits: Splits,
    trained: str,
    metrics: Iterable[tuple[str, ...]],
) -> TrialSpec:
    """Return a trial under the costs of ``splits``, with its key. ``trained`` is the key of the
    prices that its learner was trained on, ``metrics`` are the keys of its metrics."""
    key = costs_key(splits.costs)
    alike = {key, costs_key(splits.prices)} if isinstance(splits.costs, ByRow) else {key}
    spec = replace(
        spec,
        unit=use.unit,
        caps=use.caps,
        cost_model=splits.costs.name,
        surrogate=trained not in alike,
    )
    return replace(spec, key=score_key(spec, key, metrics))


def _optimum(splits: Splits, stated: Stated, caps: tuple[float, ...]) -> dict[str, Any]:
    """Return the known optimum, as stated or computed from the truth and these costs: corners by
    metric, for caps by ``metric cap``."""
    optimum = {
        name if isinstance(name, str) else " ".join(name): [*at] for name, at in stated.items()
    }
    if splits.truth:
        depends = [splits.fingerprint, costs_key(splits.costs), [*caps]]
        computed = kept_arrays(
            *("optimum", depends, ["bench_core.optimum"]),
            lambda: optimum_of(splits.truth, splits.costs, caps),
        )
        optimum |= {name: corners.tolist() for name, corners in computed.items() if len(corners)}
    return optimum
