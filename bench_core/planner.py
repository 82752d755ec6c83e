"""From a request to fits and trials with content keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench_core.data import Splits, Task
from bench_core.errors import UsageError
from bench_core.plan import DatasetUse, Plan, RunRequest, check_request, cores_for

if TYPE_CHECKING:
    from bench_core.choices import ChosenDataset, ChosenLearner
    from bench_core.protocols import Metric
    from bench_core.registry import Registry
    from bench_core.store import Store
    from bench_core.suites import Profile, Suite
    from bench_core.trial import FitSpec, TrialSpec

CHEAP_TRAINING_ROWS = 50_000
"""Up to so many training rows the reference learner is scored on them too."""

Tell = Callable[[str, bool], None]
"""Takes one line for the user, and whether it is a warning."""


def make_plan(
    request: RunRequest,
    registry: Registry,
    tell: Tell = lambda line, warning: None,
    say: Callable[[str, str], None] = lambda dataset, message: None,
) -> Plan:
    """Find, prepare and fingerprint the data, and work out every fit and trial with its key.

    ``say`` hears what is being prepared. Raises InputError and UsageError; writes nothing to the
    store.
    """
    return _Planner(request, registry, tell, say).plan()


@dataclass(slots=True, eq=False)
class _Planner:
    request: RunRequest
    registry: Registry
    tell: Tell
    say: Callable[[str, str], None]
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    uses: list[DatasetUse] = field(default_factory=list)
    fits: dict[str, FitSpec] = field(default_factory=dict)
    trials: dict[str, TrialSpec] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    suite: Suite | None = None
    reference: str = ""
    rungs: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def plan(self) -> Plan:
        from bench_core.choices import (
            check_owners,
            choose_datasets,
            choose_learners,
            lone_blind,
            read_settings,
            role,
        )
        from bench_core.formats.source import DataFolder
        from bench_core.store import check_store, store_path
        from bench_core.suites import find_suite

        request = self.request
        check_request(request)
        check_store(store_path(request.store))
        self.suite = find_suite(request.suite, self.registry) if request.suite else None
        profile = self.suite.profile(request.profile) if self.suite else None
        settings = read_settings(request, self.registry)
        learners = choose_learners(request, self.suite, profile, self.registry, settings, self.note)
        self.reference = self.suite.reference if self.suite else lone_blind(learners)
        self.rungs = tuple(c.name for c in learners if role(c.cls) == "rung")
        source = DataFolder(request.data_dir or None)
        datasets, self.absent = choose_datasets(
            request, self.suite, self.registry, source, settings, self.note
        )
        check_owners(settings, learners, datasets)
        self.known_metrics()
        if request.costs and len(datasets) > 1:
            names = ", ".join(d.label for d in datasets)
            raise UsageError(f"--costs holds for one data set, not for {names}: choose by --data")
        for chosen in datasets:
            here = learners
            if self.suite and (name := chosen.replaces or chosen.dataset.name) in self.suite.on:
                here = choose_learners(
                    request, self.suite, profile, self.registry, settings, self.note, name
                )
            for fold in self.folds(profile, chosen.dataset):
                for seed in self.seeds(profile):
                    self.dataset(chosen, fold, seed, profile, source, here)
        if len(self.skipped) == len(self.trials):
            reasons = sorted(set(self.skipped.values())) or ["no learner suits the data"]
            raise UsageError(f"nothing to run: {'; '.join(reasons)}")
        return self.finish(profile)

    def note(self, line: str, warning: bool = False) -> None:
        """Tell the user, once; remarks on what is sound wait until all of it is."""
        kept = self.warnings if warning else self.notes
        if line not in kept:
            kept.append(line)
            if warning:
                self.tell(line, True)

    def seeds(self, profile: Profile | None) -> tuple[int, ...]:
        return self.request.seeds or (profile.seeds if profile else (0,))

    def folds(self, profile: Profile | None, dataset: Any) -> tuple[int, ...]:
        """Those asked for, or those of the suite's that the data set has."""
        count = getattr(dataset, "folds", 1)
        wanted = profile.folds if profile else (0,)
        return self.request.folds or tuple(f for f in wanted if f < count) or wanted

    def dataset(
        self,
        chosen: ChosenDataset,
        fold: int,
        seed: int,
        profile: Profile | None,
        source: Any,
        learners: Sequence[ChosenLearner],
    ) -> None:
        """Prepare one fold of a data set and plan all learners on it."""
        from bench_core.choices import check_folds
        from bench_core.formats.costfiles import prices_to_json, with_costs
        from bench_core.formats.prepared import prepare

        request, label = self.request, chosen.label
        check_folds(chosen.dataset, label, [fold])
        size = profile.size if profile else request.profile or "quick"
        prepared = prepare(
            chosen.dataset, size, fold, seed, source, say=lambda line: self.say(label, line)
        )
        splits, prices = prepared.splits, None
        if request.costs:
            splits = with_costs(splits, request.costs)
            prices = prices_to_json(splits.prices)
        for line in splits.notes:
            self.note(f"{label}: {line}")
        metrics = self.metrics(splits.task, label)
        use = _use(chosen, splits, fold, seed, size, [m.name for m in metrics])
        self.uses.append(use)
        on = _Ground(use, splits, str(prepared.path), prices)
        for learner in learners:
            self.learner(learner, on)

    def known_metrics(self) -> None:
        """Refuse a misspelt metric before any data is read."""
        from bench_core.choices import blaming

        with blaming("--metric"):
            for name in self.request.metrics:
                self.registry.metric(name)
        if self.suite:
            with blaming(f"{self.suite.place}, key 'metrics'"):
                for name in self.suite.metrics:
                    self.registry.metric(name)

    def metrics(self, task: Task, label: str) -> list[Metric]:
        from bench_core.metrics import default_metric

        asked = self.request.metrics
        if asked:
            found = [self.registry.metric(name) for name in asked]
            for metric in found:
                if task not in metric.tasks:
                    raise UsageError(
                        f"--metric: metric {metric.name} does not judge {task} ({label}): take for "
                        f"example {' or '.join(_USUAL[task])}; 'bench list metrics' has all"
                    )
            return found
        listed = self.suite.metrics if self.suite else _USUAL[task]
        found = [self.registry.metric(name) for name in listed]
        fitting = [m for m in found if task in m.tasks]
        if not fitting:
            fitting = [default_metric(task)]
            self.note(f"{label}: no metric of the suite judges {task}, so {fitting[0].name} does")
        return fitting

    def learner(self, chosen: ChosenLearner, on: _Ground) -> None:
        """Plan all instances of one learner on one data set."""
        task = Task(on.use.task)
        reason = ""
        if task not in chosen.cls.tasks:
            does = ", ".join(sorted(chosen.cls.tasks))
            reason = f"{chosen.name} does {does}, {on.use.name} is {task}"
            if not chosen.named:
                self.note(f"skipped: {reason}")
                return
        for instance in chosen.instances:
            self.trial(chosen, instance, on, reason)

    def trial(self, chosen: ChosenLearner, instance: Any, on: _Ground, reason: str) -> None:
        from bench_core.choices import describe
        from bench_core.keys import metric_key, score_key
        from bench_core.parameters import as_json
        from bench_core.trial import TrialSpec

        use, request = on.use, self.request
        varied = describe(instance, chosen.instances)
        title = f"{chosen.name} {varied} on {use.name}".replace("  ", " ")
        if (use.fold, use.seed) != (self.uses[0].fold, self.uses[0].seed):
            title += f", fold {use.fold}, seed {use.seed}"
        fit = self.fit(instance, on, title) if not reason else ""
        if reason:
            fit = self.fit_key(instance, [], on)
        splits: tuple[str, ...] = ("valid", "test")
        if chosen.name == self.reference and use.rows["train"] <= CHEAP_TRAINING_ROWS:
            splits = ("train", *splits)
        accounting = self.suite.accounting if self.suite else "path"
        metrics = [metric_key(self.registry.metric(name)) for name in use.metrics]
        key = score_key(fit, use.name, metrics, accounting, request.audit, splits)
        if reason:
            self.skipped[key] = reason
        self.trials.setdefault(
            key,
            TrialSpec(
                key=key,
                title=title,
                fit=fit,
                learner=chosen.name,
                learner_version=self.version(chosen.cls),
                params=as_json(instance),
                dataset=use.name,
                fold=use.fold,
                seed=use.seed,
                fingerprint=use.fingerprint,
                stand_in=use.stand_in,
                task=use.task,
                data=on.data,
                states=str(self.states()),
                metrics=use.metrics,
                unit=use.unit,
                accounting=accounting,
                audit=request.audit,
                splits=splits,
                prices=on.prices,
                plugins=request.plugins,
            ),
        )

    def fit(self, instance: Any, on: _Ground, title: str) -> str:
        """Plan a fit after those it stands on; its key."""
        from bench_core.keys import canonical
        from bench_core.references import encode
        from bench_core.trial import FitSpec

        if Task(on.use.task) not in type(instance).tasks:
            raise UsageError(f"{title}: stands on {instance.name}, which does no {on.use.task}")
        needs = {}
        for need in instance.needs():
            name = f"{need.name} for {title}"
            needs[canonical(encode(need))] = self.fit(need, on, name)
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
                states=str(self.states()),
                needs=needs,
                prices=on.prices,
                plugins=self.request.plugins,
            )
        return key

    def fit_key(self, instance: Any, needs: list[str], on: _Ground) -> str:
        from bench_core.keys import fit_key, learner_key, metric_key, prices_key

        learner = learner_key(instance, self.version(type(instance)))
        data = {
            "fingerprint": on.use.fingerprint,
            "task": on.use.task,
            "classes": on.use.classes,
            "fold": on.use.fold,
            "prices": prices_key(on.splits.prices),
        }
        metric = metric_key(self.registry.metric(on.use.metrics[0]))
        return fit_key(learner, needs, data, metric, on.use.seed)

    def version(self, cls: Any) -> str:
        """The version of the distribution that registered a learner, or its own."""
        plugin = self.registry.origin.get(("learner", cls.name), "")
        if self.registry.learners.get(cls.name) is cls:
            for info in self.registry.plugins:
                if info.name == plugin and info.version:
                    return info.version
        return str(getattr(cls, "version", ""))

    def states(self) -> Path:
        from bench_core.store import states_folder, store_path

        return states_folder(store_path(self.request.store)).absolute()

    def finish(self, profile: Profile | None) -> Plan:
        """Put the plan together, with what the store already has."""
        from bench_core.keys import digest
        from bench_core.store import Store, check_store, store_path

        request, suite = self.request, self.suite
        names = list(dict.fromkeys(m for use in self.uses for m in use.metrics))
        wanted = [*request.metrics] or (list(suite.metrics) if suite else names)
        spelt = [self.registry.metric(name).name for name in wanted]
        metrics = tuple(dict.fromkeys([*(m for m in spelt if m in names), *names]))
        path = store_path(request.store)
        store = Store(path) if check_store(path) and not request.fresh else None
        finished, fitted = store.finished() if store else (frozenset(), frozenset())
        workers, threads = cores_for(request, len(self.trials))
        about = suite.name if suite else "+".join(dict.fromkeys(u.name for u in self.uses))
        size = self.uses[0].size
        key = digest([about, size, self.reference, metrics, sorted(self.trials)])
        plan = Plan(
            run=f"{_slug(about)}-{size}-{key[:8]}",
            suite=suite.name if suite else "",
            title=suite.title if suite else "",
            profile=(request.profile or "quick") if suite else size,
            reference=self.reference,
            rungs=self.rungs,
            absent=self.absent,
            accounting=suite.accounting if suite else "path",
            metrics=metrics,
            higher_is_better={m: self.registry.metric(m).higher_is_better for m in metrics},
            datasets=tuple(self.uses),
            fits=tuple(replace(fit, threads=threads) for fit in self.fits.values()),
            trials=tuple(replace(trial, threads=threads) for trial in self.trials.values()),
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
            finished=finished & self.trials.keys(),
            finished_fits=frozenset(k for k in fitted & self.fits.keys() if self._kept(k)),
            claims=suite.claims if suite else (),
            paper=suite.paper if suite else "",
            skipped=tuple(self.skipped.items()),
            workers=workers,
            threads=threads,
            executor=request.executor,
        )
        for line in self.notes:
            self.tell(line, False)
        return replace(plan, seconds=_estimate(plan, store))

    def _kept(self, fit: str) -> bool:
        from bench_core.states import state_path

        return state_path(self.states(), fit).is_file()


@dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """One prepared fold of a data set."""

    use: DatasetUse
    splits: Splits
    data: str
    prices: Mapping[str, Any] | None


_USUAL = {
    Task.RANKING: ("ndcg@5", "precision@5"),
    Task.REGRESSION: ("mse",),
    Task.BINARY: ("accuracy", "auc"),
    Task.MULTICLASS: ("accuracy",),
}


def _use(
    chosen: ChosenDataset,
    splits: Splits,
    fold: int,
    seed: int,
    size: str,
    metrics: list[str],
) -> DatasetUse:
    parts = {name: getattr(splits, name) for name in ("train", "valid", "test")}
    return DatasetUse(
        name=chosen.label,
        title=getattr(chosen.dataset, "title", chosen.label),
        task=str(splits.task),
        stand_in=bool(splits.stand_in),
        stand_in_for=chosen.replaces if splits.stand_in else "",
        fold=fold,
        seed=seed,
        size=size,
        fingerprint=splits.fingerprint,
        features=splits.prices.features,
        classes=splits.classes,
        rows={name: len(part) for name, part in parts.items()},
        queries={name: len(part.queries or ()) for name, part in parts.items()},
        price_of_everything=splits.prices.everything,
        unit=splits.prices.unit,
        metrics=tuple(metrics),
        notes=splits.notes,
    )


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-+." else "_" for c in text)[:40]


def _estimate(plan: Plan, store: Store | None) -> float | None:
    """Seconds for the work left: medians of what like fits and trials took, None if unknown."""
    timings = store.timings() if store else []
    fits: dict[tuple[str, str], list[float]] = {}
    scores: dict[tuple[str, str], list[float]] = {}
    for t in timings:
        fits.setdefault((t.dataset, t.learner), []).append(t.fit_seconds)
        scores.setdefault((t.dataset, t.learner), []).append(t.score_seconds)
    skipped = {key for key, _ in plan.skipped}
    left = [t for t in plan.trials if t.key not in plan.finished and t.key not in skipped]
    to_fit = {f.key: f for f in plan.fits if f.key not in plan.finished_fits}
    total = 0.0
    for place in [(f.dataset, f.learner_name) for f in to_fit.values()]:
        if place not in fits:
            return None
        total += median(fits[place])
    for place in [(t.dataset, t.learner) for t in left]:
        if place not in scores:
            return None
        total += median(scores[place])
    return total / plan.workers
