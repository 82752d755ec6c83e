"""Fits and trials by their content keys: what a result depends on, and nothing else.

FitKey = learner (name, version, the source it runs), parameters, the fits it needs, training data
(fingerprint, task, fold, names of features), prices to train on, primary metric (a learner may stop
early by it), seed. ScoreKey = FitKey + metrics, cost model, accounting, audit, caps, whether
training rows are scored, and the name that the data set goes by in results. Of metrics and cost
models that plugins bring the source enters too. Threads and workers do not enter: they must not
change a result. Nor does the machine, but for learners that declare ``numerics``: the versions of
those libraries, and the features of the processor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench_core._io.digests import canonical, code_key, digest, text_digest
from bench_core.class_names import spelled
from bench_core.costs.model import costs_key
from bench_core.metrics import parse_metric
from bench_core.planning.facts import Facts
from bench_core.planning.plan import DatasetUse
from bench_core.planning.request import RunRequest, modules_of
from bench_core.planning.resolve_learners import Chosen
from bench_core.plugins import OURS, Registry
from bench_core.protocols import Metric
from bench_core.results.records import FitSpec, TrialSpec
from bench_core.splits import Splits

SCORING = 8
"""Rises when scoring, metering or the audit would give other rows for the same model."""

CHEAP_TRAINING_ROWS = 50_000
"""Up to so many training rows the reference learner is scored on them too."""


def learner_key(learner: Any, version: str = "") -> dict[str, Any]:
    """Everything about a learner that decides what it computes, as JSON."""
    return Facts.of(learner).key(version)


def bringers(metrics: Iterable[str], registry: Registry) -> tuple[str, ...]:
    """The modules of the plugins of others that bring these metrics."""
    found = (registry.origin.get(("metric", name)) for name in metrics)
    return tuple(dict.fromkeys(p.module for p in found if p and p.origin != OURS))


def metric_key(name: str, registered: Mapping[str, Metric]) -> tuple[str, ...]:
    """A metric's name, and for one that a plugin brings a digest of its source."""
    metric = parse_metric(name, registered)
    cls = type(metric)
    built_in = cls.__module__.startswith("bench_core.")
    return (metric.name,) if built_in else (metric.name, code_key(cls))


def score_key(spec: TrialSpec, costs: str, metrics: Iterable[tuple[str, ...]]) -> str:
    """The ScoreKey: how a fitted model is judged. The data set enters by its name in results (equal
    rows may go by two names), the cost model by its ``costs_key``, metrics by their keys."""
    how: list[Any] = [[*metrics], spec.accounting, spec.audit, spec.splits]
    how += [["caps", *spec.caps]] if spec.caps else []
    return digest(["score", SCORING, spec.fit, spec.dataset, costs, *how])


@dataclass(slots=True, eq=False)
class Ground:
    """One prepared fold of a data set: ``data`` is its folder, ``costs`` the key of its cost
    model ("" for the one prepared with it). ``billed`` is the key of what bills, ``facts`` the
    canonical JSON of what all keys of fits have in common."""

    use: DatasetUse
    splits: Splits
    data: str
    costs: str
    billed: str = field(init=False)
    facts: str = field(init=False)

    def __post_init__(self) -> None:
        self.billed = costs_key(self.splits.costs)
        data = {
            "fingerprint": self.use.fingerprint,
            "task": self.use.task,
            "classes": self.use.classes,
            "fold": self.use.fold,
            "prices": costs_key(self.splits.prices),
            "names": self.splits.feature_names,
        }
        self.facts = canonical(data)


@dataclass(slots=True, eq=False)
class _About:
    """What of a learner is the same on all data: worked out once, as there may be hundreds."""

    learner: Any
    facts: Facts
    version: str
    params: dict[str, Any]
    key: str  # canonical JSON of its ``learner_key``
    needs: list[tuple[str, Facts]]  # by the canonical JSON of each, encoded
    origin: str
    code: str
    libraries: str


@dataclass(slots=True, eq=False)
class Specifications:
    """Gathers fits and trials by their keys; what several trials stand on is there once.

    ``skipped`` holds, by trial key, why a learner that was asked for by name cannot be judged on
    some data set; ``modules``, by class, those that its source begins with.
    """

    request: RunRequest
    registry: Registry
    states: str
    reference: str
    fits: dict[str, FitSpec] = field(default_factory=dict)
    trials: dict[str, TrialSpec] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    _known: dict[int, _About] = field(default_factory=dict)
    modules: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _metrics: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, chosen: Chosen, on: Ground, suffix: str) -> list[str]:
        """Specify all instances of one learner on one data set; ``suffix`` ends their titles.

        Returns why some were left out: a learner that was not asked for by name and does not suit
        the data's task, or stands on one that does not.
        """
        left_out = []
        for instance, varied in zip(chosen.instances, chosen.varied, strict=True):
            about = self._about(instance)
            reason = about.facts.unsuited(on.use.task, on.use.name)
            if reason and not chosen.named:
                left_out.append(reason)
                continue
            what = f"{chosen.name} {varied}".rstrip()
            self._trial(about, f"{what} on {on.use.name}{suffix}", on, reason)
        return left_out

    def _trial(self, about: _About, title: str, on: Ground, reason: str) -> None:
        use, request, name = on.use, self.request, about.facts.name
        splits: tuple[str, ...] = ("valid", "test")
        if name == self.reference and use.rows["train"] <= CHEAP_TRAINING_ROWS:
            splits = ("train", *splits)
        spec = TrialSpec(
            key="",
            title=title,
            fit=self.fit_key(about, [], on) if reason else self._fit(about, on, title),
            learner=name,
            learner_version=about.version,
            params=about.params,
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
            accounting=use.accounting,
            audit=request.audit,
            splits=splits,
            costs=on.costs,
            plugins=request.plugins,
            modules=modules_of(request),
            caps=use.caps,
            origin=about.origin,
            code=about.code,
            libraries="" if reason else about.libraries,
            judges=bringers(use.metrics, self.registry),
        )
        key = score_key(spec, on.billed, map(self._metric, spec.metrics))
        self.trials.setdefault(key, replace(spec, key=key))
        if reason:
            self.skipped[key] = reason

    def _fit(self, about: _About, on: Ground, title: str) -> str:
        """Specify a fit after those it stands on; its key."""
        needs = {
            spelt: self._fit(self._about(need), on, f"{need.name} for {title}")
            for spelt, need in about.needs
        }
        key = self.fit_key(about, list(needs.values()), on)
        if key not in self.fits:
            self.fits[key] = FitSpec(
                key=key,
                title=title,
                learner=about.facts.encoded,
                learner_name=about.facts.name,
                dataset=on.use.name,
                data=on.data,
                metric=on.use.metrics[0],
                seed=on.use.seed,
                states=self.states,
                needs=needs,
                costs=on.costs,
                plugins=self.request.plugins,
                origin=about.origin,
                modules=modules_of(self.request),
                judges=bringers(on.use.metrics[:1], self.registry),
            )
        return key

    def fit_key(self, about: _About, needs: Sequence[str], on: Ground) -> str:
        """The FitKey; ``needs`` are those of the fits that this one stands on."""
        metric = canonical(self._metric(on.use.metrics[0]))
        parts = ['"fit"', about.key, canonical([*needs]), on.facts, metric]
        return text_digest(f"[{','.join([*parts, canonical(on.use.seed)])}]")

    def _metric(self, name: str) -> tuple[str, ...]:
        if name not in self._metrics:
            self._metrics[name] = metric_key(name, self.registry.metrics)
        return self._metrics[name]

    def _about(self, learner: Any) -> _About:
        """What is known of a learner, an instance or its facts; it is held, so that no other has
        its identity."""
        if id(learner) not in self._known:
            facts = learner if isinstance(learner, Facts) else Facts.of(learner)
            version = self._version(facts)
            self.modules |= {one.spelling: one.modules for one in facts.with_inner()}
            self._known[id(learner)] = _About(
                learner=learner,
                facts=facts,
                version=version,
                params=facts.params,
                key=canonical(facts.key(version)),
                needs=[(canonical(need.encoded), need) for need in facts.needs],
                origin=facts.origin,
                code=facts.row_code,
                libraries=facts.libraries,
            )
        return self._known[id(learner)]

    def _version(self, facts: Facts) -> str:
        """The version of the distribution that registered a learner, or its own."""
        known: Any = self.registry.learners.get(facts.name)
        if known is None or spelled(known) != facts.spelling:
            return facts.version
        return self.registry.origin["learner", facts.name].version or facts.version
