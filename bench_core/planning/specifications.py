"""The specifications of a plan's fits and trials, gathered by their keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench_core._io.digests import canonical
from bench_core.class_names import spelled
from bench_core.costs.model import costs_key
from bench_core.planning.keys import DescribedLearner, fit_key, metric_key, score_key
from bench_core.planning.plan import DatasetUse
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_learners import ChosenLearner
from bench_core.plugins import Registry
from bench_core.results.records import FitSpec, TrialSpec
from bench_core.splits import Splits

CHEAP_TRAINING_ROWS = 50_000
"""Up to so many training rows the reference learner is scored on them too."""

_OF_USE = ("fold", "fingerprint", "stand_in", "task", "metrics", "unit", "accounting", "caps")


@dataclass(slots=True, eq=False)
class Specifications:
    """Gathers fits and trials by their keys; what several trials stand on is there once.

    ``skipped`` holds, by trial key, why a learner that was asked for by name cannot be judged on
    some data set.
    """

    request: RunRequest
    registry: Registry
    states: str
    reference: str
    fits: dict[str, FitSpec] = field(default_factory=dict)
    trials: dict[str, TrialSpec] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    _described: dict[int, list[DescribedLearner]] = field(default_factory=dict)

    def add(
        self,
        learners: Sequence[ChosenLearner],
        use: DatasetUse,
        splits: Splits,
        data: str,
        costs: str,
        suffix: str,
    ) -> Iterator[str]:
        """Specify all learners on one prepared fold, whose folder is ``data``, and whose cost model
        has the key ``costs`` ("" for the one prepared with it); ``suffix`` ends titles.

        Yields why some were left out: a learner that was not asked for by name and does not suit
        the data's task, or stands on one that does not.
        """
        trained = {
            "fingerprint": use.fingerprint,
            "task": use.task,
            "classes": use.classes,
            "fold": use.fold,
            "prices": costs_key(splits.prices),
            "names": splits.feature_names,
        }
        metrics = [metric_key(name, self.registry.metrics) for name in use.metrics]
        trained_on = [trained, metrics[0], use.seed]
        both: dict[str, Any] = {
            "dataset": use.name,
            "seed": use.seed,
            "data": data,
            "states": self.states,
            "costs": costs,
            "plugins": self.request.plugins,
        }
        judged: dict[str, Any] = {name: getattr(use, name) for name in _OF_USE}
        judged |= {
            "cost_model": splits.costs.name,
            "surrogate": splits.cost_model is not None,
            "audit_mode": self.request.audit,
        }
        cheap = use.rows["train"] <= CHEAP_TRAINING_ROWS
        billed = costs_key(splits.costs)

        def fit(learner: DescribedLearner, title: str) -> str:
            """The key of a fit, specified after those it stands on."""
            needs = {
                canonical(need.encoded): fit(need, f"{need.name} for {title}")
                for need in learner.needs
            }
            key = fit_key(learner.key(self.version(learner)), needs.values(), trained_on)
            if key not in self.fits:
                about: dict[str, Any] = {
                    "learner": learner.encoded,
                    "learner_name": learner.name,
                    "needs": needs,
                }
                self.fits[key] = FitSpec(key, title, **about, **both, metric=use.metrics[0])
            return key

        for chosen in learners:
            splits_of = ("train",) if cheap and chosen.name == self.reference else ()
            for learner, varied in zip(self.described(chosen), chosen.varied, strict=True):
                reason = learner.unsuited(use.task, use.name)
                if reason and not chosen.named:
                    yield reason
                    continue
                title = f"{f'{chosen.name} {varied}'.rstrip()} on {use.name}{suffix}"
                version = self.version(learner)
                spec = TrialSpec(
                    key="",
                    title=title,
                    fit=fit_key(learner.key(version), [], trained_on)
                    if reason
                    else fit(learner, title),
                    learner=learner.name,
                    learner_version=version,
                    params=learner.params,
                    code=learner.row_code,
                    libraries="" if reason else learner.libraries,
                    splits=(*splits_of, "valid", "test"),
                    **both,
                    **judged,
                )
                key = score_key(spec, billed, metrics)
                self.trials.setdefault(key, replace(spec, key=key))
                if reason:
                    self.skipped[key] = reason

    def described(self, chosen: ChosenLearner) -> list[DescribedLearner]:
        """The instances of a learner, described once for all data sets."""
        if id(chosen) not in self._described:
            self._described[id(chosen)] = [DescribedLearner(one) for one in chosen.instances]
        return self._described[id(chosen)]

    def version(self, learner: DescribedLearner) -> str:
        """The version of the distribution that registered a learner, or its own."""
        registered = self.registry.learners.get(learner.name)
        if registered is None or spelled(registered) != learner.encoded["class"]:
            return learner.version
        return self.registry.origin["learner", learner.name].version or learner.version
