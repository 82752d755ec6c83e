"""Fits and trials of learners on prepared data, with the content keys that name them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench_core._io.digests import canonical
from bench_core.class_names import encode
from bench_core.contracts import learner_of
from bench_core.costs.model import costs_key
from bench_core.data import Task
from bench_core.metrics import parse_metric
from bench_core.parameters import as_json
from bench_core.planning.keys import fit_key, learner_key, metric_key, score_key
from bench_core.planning.resolve_learners import described
from bench_core.results.records import FitSpec, TrialSpec
from bench_core.splits import Splits

if TYPE_CHECKING:
    from bench_core.planning.plan import DatasetUse
    from bench_core.planning.request import RunRequest
    from bench_core.planning.resolve_learners import ChosenLearner
    from bench_core.plugins import Registry

CHEAP_TRAINING_ROWS = 50_000
"""Up to so many training rows the reference learner is scored on them too."""


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
        fit = self._fit_key(instance, [], on) if reason else self._fit(instance, on, title)
        splits: tuple[str, ...] = ("valid", "test")
        if instance.name == self.reference and use.rows["train"] <= CHEAP_TRAINING_ROWS:
            splits = ("train", *splits)
        metrics = [metric_key(parse_metric(name, self.registry.metrics)) for name in use.metrics]
        how = (metrics, self.accounting, request.audit, splits)
        key = score_key(fit, use.name, costs_key(on.splits.costs), *how)
        if reason:
            self.skipped[key] = reason
        if key in self.trials:
            return
        self.trials[key] = TrialSpec(
            key=key,
            title=title,
            fit=fit,
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
        )

    def _fit(self, instance: Any, on: Ground, title: str) -> str:
        """Specify a fit after those it stands on; its key."""
        needs = {}
        for need in learner_of(instance).needs():
            needs[canonical(encode(need))] = self._fit(need, on, f"{need.name} for {title}")
        key = self._fit_key(instance, list(needs.values()), on)
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
            )
        return key

    def _fit_key(self, instance: Any, needs: Sequence[str], on: Ground) -> str:
        learner = learner_key(instance, self._version(type(instance)))
        data = {
            "fingerprint": on.use.fingerprint,
            "task": on.use.task,
            "classes": on.use.classes,
            "fold": on.use.fold,
            "prices": costs_key(on.splits.prices),
            "names": on.splits.feature_names,
        }
        metric = metric_key(parse_metric(on.use.metrics[0], self.registry.metrics))
        return fit_key(learner, needs, data, metric, on.use.seed)

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
