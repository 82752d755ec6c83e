"""Fits and trials by their content keys: what a result depends on, and nothing else.

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
from dataclasses import dataclass, field
from typing import Any

from bench_core._io.digests import canonical, code_key, code_modules, digest, text_digest
from bench_core._io.machine import versions
from bench_core.class_names import encode, spelled
from bench_core.contracts import learner_of
from bench_core.costs.model import costs_key
from bench_core.metrics import parse_metric
from bench_core.parameters import is_learner, parameters
from bench_core.planning.plan import DatasetUse
from bench_core.planning.request import RunRequest, modules_of
from bench_core.planning.resolve_learners import ChosenLearner
from bench_core.plugins import Registry
from bench_core.protocols import Metric
from bench_core.results.records import FitSpec, TrialSpec
from bench_core.splits import Splits

SCORING = 12
"""Rises when scoring, metering or the audit would give other rows for the same model."""

CHEAP_TRAINING_ROWS = 50_000
"""Up to so many training rows the reference learner is scored on them too."""


def metric_key(name: str, registered: Mapping[str, Metric]) -> tuple[str, ...]:
    """A metric's name, and for one that a plugin brings a digest of its source."""
    metric = parse_metric(name, registered)
    cls = type(metric)
    built_in = cls.__module__.startswith("bench_core.")
    return (metric.name,) if built_in else (metric.name, code_key(cls))


def score_key(fit: str, judged: str) -> str:
    """The ScoreKey: a fitted model, and how it is ``judged``."""
    return text_digest(f'["score",{SCORING},"{fit}",{judged}]')


def judged(
    dataset: str,
    costs: str,
    metrics: Iterable[tuple[str, ...]],
    accounting: str,
    audit: str,
    splits: Sequence[str],
    caps: Sequence[float],
) -> str:
    """The judging of models as canonical JSON without brackets: one text for many trials. The data
    set enters by its name in results (equal rows may go by two names), the cost model by its
    ``costs_key``, metrics by their keys."""
    how: list[Any] = [dataset, costs, [*metrics], accounting, audit, splits]
    return canonical(how + ([["caps", *caps]] if caps else []))[1:-1]


@dataclass(frozen=True, slots=True)
class DescribedLearner:
    """A learner with its parameters, as a plan needs to know it.

    ``version`` is the class's own, ``encoded`` as by ``class_names.encode``, ``code`` a digest of
    its source and ``modules`` those that the source begins with. ``inner`` are the learners among
    its parameters, ``needs`` those that it stands on.
    """

    name: str
    tasks: tuple[str, ...]
    version: str
    encoded: Mapping[str, Any]
    code: str
    modules: tuple[str, ...]
    stamp: str
    numerics: tuple[str, ...]
    inner: Mapping[str, DescribedLearner]
    needs: tuple[DescribedLearner, ...]

    @classmethod
    def of(cls, learner: Any) -> DescribedLearner:
        """The description of an instance."""
        kind: Any = type(learner)
        own = learner_of(learner)
        held = {p.name: getattr(learner, p.name) for p in parameters(kind)}
        return cls(
            name=kind.name,
            tasks=tuple(sorted(map(str, own.tasks))),
            version=str(own.version),
            encoded=encode(learner),
            code=code_key(kind),
            modules=tuple(code_modules(kind)),
            stamp=own.stamp(),
            numerics=tuple(own.numerics),
            inner={name: cls.of(value) for name, value in held.items() if is_learner(value)},
            needs=tuple(map(cls.of, own.needs())),
        )

    @property
    def spelling(self) -> str:
        """Module and name of its class."""
        return str(self.encoded["class"])

    @property
    def params(self) -> dict[str, Any]:
        """Its parameters, as ``parameters.as_json``."""
        return {
            name: {"learner": inner.name, **inner.params}
            if (inner := self.inner.get(name))
            else value
            for name, value in self.encoded["fields"].items()
        }

    def with_inner(self) -> Iterator[DescribedLearner]:
        """It and the learners that it holds."""
        yield self
        for inner in self.inner.values():
            yield from inner.with_inner()

    def key(self, version: str = "") -> dict[str, Any]:
        """Everything that decides what it computes, as JSON."""
        decides = versions(*self.numerics)
        return {
            "name": self.name,
            "version": version,
            "code": self.code,
            "params": self.params,
            "inner": [inner.key() for inner in self.inner.values()],
            **({"stamp": self.stamp} if self.stamp else {}),
            **({"numerics": decides} if decides else {}),
        }

    @property
    def row_code(self) -> str:
        """A digest of its code and of that of the learners that it holds, for rows: 16 digits."""
        return digest([each.code for each in self.with_inner()])[:16]

    @property
    def libraries(self) -> str:
        """Stamps and numerics that decide next to code, of it and the learners that it holds."""
        texts = [t for one in self.with_inner() for t in (one.stamp, versions(*one.numerics)) if t]
        return ", ".join(dict.fromkeys(texts))

    def unsuited(self, task: str, data: str) -> str:
        """Why it cannot work on data of a task, or nothing."""
        if task not in self.tasks:
            return f"{self.name} does {', '.join(self.tasks)}, {data} is {task}"
        for need in self.needs:
            if reason := need.unsuited(task, data):
                return f"{self.name} stands on {reason.replace(' does ', ', which does ', 1)}"
        return ""


def learner_key(learner: Any, version: str = "") -> dict[str, Any]:
    """Everything about a learner that decides what it computes, as JSON."""
    return DescribedLearner.of(learner).key(version)


_OF_USE = ("fold", "fingerprint", "stand_in", "task", "metrics", "unit", "accounting", "caps")


@dataclass(slots=True, eq=False)
class PreparedFold:
    """One prepared fold of a data set, with what all fits and all trials on it have in common.

    ``fit`` and ``trial`` are fields of their specifications, ``fit_ends`` is the canonical JSON
    with which all keys of fits end, ``billed`` the key of what bills, ``metrics`` those of metrics.
    """

    use: DatasetUse
    billed: str
    metrics: list[tuple[str, ...]]
    fit_ends: str
    fit: dict[str, Any]
    trial: dict[str, Any]


@dataclass(slots=True, eq=False)
class _Known:
    """All of a learner that is the same on all data: worked out once, as there may be hundreds."""

    held: Any  # so that no other learner takes its identity
    learner: DescribedLearner
    key: str  # canonical JSON of its ``DescribedLearner.key``
    needs: list[tuple[str, DescribedLearner]]  # by the canonical JSON of each, encoded
    libraries: str
    fit: dict[str, Any]  # fields of the specifications of its fits
    trial: dict[str, Any]  # and of its trials


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
    _known: dict[int, _Known] = field(default_factory=dict)
    modules: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def ground(self, use: DatasetUse, splits: Splits, data: str, costs: str) -> PreparedFold:
        """A prepared fold: ``data`` is its folder, ``costs`` the key of its cost model ("" for the
        one prepared with it)."""
        trained = {
            "fingerprint": use.fingerprint,
            "task": use.task,
            "classes": use.classes,
            "fold": use.fold,
            "prices": costs_key(splits.prices),
            "names": splits.feature_names,
        }
        metrics = [metric_key(name, self.registry.metrics) for name in use.metrics]
        both = {
            "dataset": use.name,
            "seed": use.seed,
            "data": data,
            "states": self.states,
            "costs": costs,
            "plugins": self.request.plugins,
            "modules": modules_of(self.request),
        }
        trial = {name: getattr(use, name) for name in _OF_USE}
        trial |= {
            "cost_model": splits.costs.name,
            "surrogate": splits.cost_model is not None,
            "audit_mode": self.request.audit,
        }
        return PreparedFold(
            use,
            billed=costs_key(splits.costs),
            metrics=metrics,
            fit_ends=",".join(map(canonical, (trained, metrics[0], use.seed))),
            fit=both | {"metric": use.metrics[0]},
            trial=both | trial,
        )

    def add(self, chosen: ChosenLearner, on: PreparedFold, suffix: str) -> list[str]:
        """Specify all instances of one learner on one data set; ``suffix`` ends their titles.

        Returns why some were left out: a learner that was not asked for by name and does not suit
        the data's task, or stands on one that does not.
        """
        left_out = []
        use, audit = on.use, self.request.audit
        splits: tuple[str, ...] = ("valid", "test")
        reference = self._known_of(chosen.instances[0]).learner.name == self.reference
        if reference and use.rows["train"] <= CHEAP_TRAINING_ROWS:
            splits = ("train", *splits)
        how = judged(use.name, on.billed, on.metrics, use.accounting, audit, splits, use.caps)
        common = on.trial | {"splits": splits}
        for instance, varied in zip(chosen.instances, chosen.varied, strict=True):
            about = self._known_of(instance)
            reason = about.learner.unsuited(use.task, use.name)
            if reason and not chosen.named:
                left_out.append(reason)
                continue
            title = f"{f'{chosen.name} {varied}'.rstrip()} on {use.name}{suffix}"
            fit = self.fit_key(about, [], on) if reason else self._fit(about, on, title)
            key = score_key(fit, how)
            if key not in self.trials:
                libraries = "" if reason else about.libraries
                self.trials[key] = TrialSpec(
                    key=key, title=title, fit=fit, libraries=libraries, **about.trial, **common
                )
            if reason:
                self.skipped[key] = reason
        return left_out

    def _fit(self, about: _Known, on: PreparedFold, title: str) -> str:
        """Specify a fit after those it stands on; its key."""
        needs = {
            spelt: self._fit(self._known_of(need), on, f"{need.name} for {title}")
            for spelt, need in about.needs
        }
        key = self.fit_key(about, list(needs.values()), on)
        if key not in self.fits:
            self.fits[key] = FitSpec(key=key, title=title, needs=needs, **about.fit, **on.fit)
        return key

    def fit_key(self, about: _Known, needs: Sequence[str], on: PreparedFold) -> str:
        """The FitKey; ``needs`` are those of the fits that this one stands on."""
        return text_digest(f'["fit",{about.key},{canonical([*needs])},{on.fit_ends}]')

    def _known_of(self, learner: Any) -> _Known:
        """All that is known of a learner, given as an instance or described."""
        if id(learner) not in self._known:
            known = (
                learner if isinstance(learner, DescribedLearner) else DescribedLearner.of(learner)
            )
            version = self._version(known)
            self.modules |= {one.spelling: one.modules for one in known.with_inner()}
            self._known[id(learner)] = _Known(
                held=learner,
                learner=known,
                key=canonical(known.key(version)),
                needs=[(canonical(need.encoded), need) for need in known.needs],
                libraries=known.libraries,
                fit={
                    "learner": known.encoded,
                    "learner_name": known.name,
                },
                trial={
                    "learner": known.name,
                    "learner_version": version,
                    "params": known.params,
                    "code": known.row_code,
                },
            )
        return self._known[id(learner)]

    def _version(self, learner: DescribedLearner) -> str:
        """The version of the distribution that registered a learner, or its own."""
        registered = self.registry.learners.get(learner.name)
        if registered is None or spelled(registered) != learner.spelling:
            return learner.version
        return self.registry.origin["learner", learner.name].version or learner.version
