"""Fits and trials by their content keys: what a result depends on, and nothing else.

FitKey = learner (name, version, the source it runs), parameters, the fits it needs, training data
(fingerprint, task, fold, names of features), prices to train on, primary metric (a learner may stop
early by it), seed. ScoreKey = FitKey + metrics, cost model, accounting, audit, caps, whether
training rows are scored, and the name that the data set goes by in results. Of metrics and cost
models that plugins bring the source enters too. Threads and workers do not enter: they must not
change a result. Nor does the machine, but for learners that declare ``numerics``: the versions of
those libraries, and the features of the processor.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench_core._io.digests import canonical, code_key, digest
from bench_core._io.machine import versions
from bench_core.class_names import encode
from bench_core.contracts import learner_of
from bench_core.costs.model import costs_key
from bench_core.data import Task
from bench_core.metrics import parse_metric
from bench_core.parameters import as_json, is_learner, parameters
from bench_core.planning.plan import DatasetUse
from bench_core.planning.request import RunRequest, modules_of
from bench_core.planning.resolve_learners import ChosenLearner, described
from bench_core.plugins import Registry
from bench_core.protocols import Metric
from bench_core.results.records import FitSpec, TrialSpec
from bench_core.splits import Splits

SCORING = 5
"""Rises when scoring, metering or the audit would give other rows for the same model."""

CHEAP_TRAINING_ROWS = 50_000
"""Up to so many training rows the reference learner is scored on them too."""


def learner_key(learner: Any, version: str = "") -> dict[str, Any]:
    """Everything about a learner that decides what it computes, as JSON."""
    cls: Any = type(learner)
    values = [getattr(learner, p.name) for p in parameters(cls)]
    key = {
        "name": cls.name,
        "version": version,
        "code": code_key(cls),
        "params": as_json(learner),
        "inner": [learner_key(value) for value in values if is_learner(value)],
    }
    stamp, decides = learner_of(learner).stamp(), versions(*learner_of(learner).numerics)
    return {
        **key,
        **({"stamp": stamp} if stamp else {}),
        **({"numerics": decides} if decides else {}),
    }


def code_of(learner: Any) -> str:
    """A digest of the code of a learner and of those that it holds, for rows: 16 digits."""
    classes: list[Any] = [type(one) for one in _with_inner(learner)]
    return digest([code_key(cls) for cls in classes])[:16]


def libraries_of(learner: Any) -> str:
    """What decides beside code, of a learner and those that it holds: their stamps and numerics."""
    each = map(learner_of, _with_inner(learner))
    texts = [text for one in each for text in (one.stamp(), versions(*one.numerics)) if text]
    return ", ".join(dict.fromkeys(texts))


def _with_inner(learner: Any) -> Iterator[Any]:
    yield learner
    for p in parameters(type(learner)):
        if is_learner(inner := getattr(learner, p.name)):
            yield from _with_inner(inner)


def metric_key(name: str, registered: Mapping[str, Metric]) -> tuple[str, ...]:
    """A metric's name, and for one that a plugin brings a digest of its source."""
    metric = parse_metric(name, registered)
    cls = type(metric)
    built_in = cls.__module__.startswith("bench_core.")
    return (metric.name,) if built_in else (metric.name, code_key(cls))


def score_key(spec: TrialSpec, costs: str, registered: Mapping[str, Metric]) -> str:
    """The ScoreKey: how a fitted model is judged. The data set enters by its name in results (equal
    rows may go by two names), the cost model by its ``costs_key``."""
    metrics = [metric_key(name, registered) for name in spec.metrics]
    how: list[Any] = [metrics, spec.accounting, spec.audit, spec.splits]
    how += [["caps", *spec.caps]] if spec.caps else []
    return digest(["score", SCORING, spec.fit, spec.dataset, costs, *how])


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """One prepared fold of a data set: ``data`` is its folder, ``costs`` the key of its cost
    model ("" for the one prepared with it)."""

    use: DatasetUse
    splits: Splits
    data: str
    costs: str


@dataclass(slots=True, eq=False)
class Specifications:
    """Gathers fits and trials by their keys; what several trials stand on is there once.

    ``skipped`` holds, by trial key, why a learner that was asked for by name cannot be judged on
    some data set.
    """

    request: RunRequest
    registry: Registry
    states: str
    accounting: str
    reference: str
    fits: dict[str, FitSpec] = field(default_factory=dict)
    trials: dict[str, TrialSpec] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, chosen: ChosenLearner, on: Ground, suffix: str) -> list[str]:
        """Specify all instances of one learner on one data set; ``suffix`` ends their titles.

        Returns why some were left out: a learner that was not asked for by name and does not suit
        the data's task, or stands on one that does not.
        """
        left_out = []
        for instance, varied in zip(chosen.instances, described(chosen.instances), strict=True):
            reason = _unsuited(instance, on.use)
            if reason and not chosen.named:
                left_out.append(reason)
                continue
            what = f"{chosen.name} {varied}".rstrip()
            self._trial(instance, f"{what} on {on.use.name}{suffix}", on, reason)
        return left_out

    def _trial(self, instance: Any, title: str, on: Ground, reason: str) -> None:
        use, request = on.use, self.request
        splits: tuple[str, ...] = ("valid", "test")
        if instance.name == self.reference and use.rows["train"] <= CHEAP_TRAINING_ROWS:
            splits = ("train", *splits)
        spec = TrialSpec(
            key="",
            title=title,
            fit=self.fit_key(instance, [], on) if reason else self._fit(instance, on, title),
            learner=instance.name,
            learner_version=self._version(type(instance)),
            params=as_json(instance),
            dataset=use.name,
            fold=use.fold,
            seed=use.seed,
            fingerprint=use.fingerprint,
            stand_in=use.stand_in,
            task=use.task,
            data=on.data,
            states=self.states,
            metrics=use.metrics,
            unit=use.unit,
            cost_model=on.splits.costs.name,
            surrogate=on.splits.cost_model is not None,
            accounting=self.accounting,
            audit=request.audit,
            splits=splits,
            costs=on.costs,
            plugins=request.plugins,
            modules=modules_of(request),
            caps=use.caps,
            code=code_of(instance),
            libraries="" if reason else libraries_of(instance),
        )
        key = score_key(spec, costs_key(on.splits.costs), self.registry.metrics)
        self.trials.setdefault(key, replace(spec, key=key))
        if reason:
            self.skipped[key] = reason

    def _fit(self, instance: Any, on: Ground, title: str) -> str:
        """Specify a fit after those it stands on; its key."""
        needs = {}
        for need in learner_of(instance).needs():
            needs[canonical(encode(need))] = self._fit(need, on, f"{need.name} for {title}")
        key = self.fit_key(instance, list(needs.values()), on)
        if key not in self.fits:
            self.fits[key] = FitSpec(
                key=key,
                title=title,
                learner=encode(instance),
                learner_name=instance.name,
                dataset=on.use.name,
                data=on.data,
                metric=on.use.metrics[0],
                seed=on.use.seed,
                states=self.states,
                needs=needs,
                costs=on.costs,
                plugins=self.request.plugins,
                modules=modules_of(self.request),
            )
        return key

    def fit_key(self, instance: Any, needs: Sequence[str], on: Ground) -> str:
        """The FitKey; ``needs`` are those of the fits that this one stands on."""
        learner = learner_key(instance, self._version(type(instance)))
        data = {
            "fingerprint": on.use.fingerprint,
            "task": on.use.task,
            "classes": on.use.classes,
            "fold": on.use.fold,
            "prices": costs_key(on.splits.prices),
            "names": on.splits.feature_names,
        }
        metric = metric_key(on.use.metrics[0], self.registry.metrics)
        return digest(["fit", learner, needs, data, metric, on.use.seed])

    def _version(self, cls: Any) -> str:
        """The version of the distribution that registered a learner, or its own."""
        name, own = str(cls.name), str(cls.version)
        if self.registry.learners.get(name) is not cls:
            return own
        return self.registry.origin["learner", name].version or own


def _unsuited(learner: Any, use: DatasetUse) -> str:
    """Why a learner cannot work on a data set, or nothing."""
    if Task(use.task) not in learner.tasks:
        return f"{learner.name} does {', '.join(sorted(learner.tasks))}, {use.name} is {use.task}"
    for need in learner_of(learner).needs():
        if reason := _unsuited(need, use):
            return f"{learner.name} stands on {reason.replace(' does ', ', which does ', 1)}"
    return ""
