"""Plan a run: turn a request into fits and trials with content keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from bench_core._io.digests import digest, look_again
from bench_core.costs.model import CostModel, costs_key
from bench_core.datasets.cache import prepare
from bench_core.datasets.priced import with_costs
from bench_core.datasets.search import DataFolder
from bench_core.errors import UsageError
from bench_core.metrics import parse_metric
from bench_core.planning.overrides import check_owners, read_settings
from bench_core.planning.plan import DatasetUse, Notify, Plan, estimated_seconds, trials_left
from bench_core.planning.request import RunRequest, check_request, cores_for, without_repeats
from bench_core.planning.resolve_datasets import ChosenDataset, check_fold, choose_datasets
from bench_core.planning.resolve_learners import ChosenLearner, choose_learners, default_reference
from bench_core.planning.resolve_metrics import check_metrics, choose_metrics
from bench_core.planning.specifications import Ground, Specifications
from bench_core.planning.suites import find_suite
from bench_core.results.model_files import state_path
from bench_core.results.schema import check_store, states_folder, store_path
from bench_core.results.store import Store
from bench_core.splits import SPLITS, Splits

if TYPE_CHECKING:
    from bench_core.planning.suites import Profile, Suite
    from bench_core.plugins import Registry
    from bench_core.protocols import Source


def make_plan(
    request: RunRequest,
    registry: Registry,
    notify: Notify = lambda line, warning: None,
    say: Callable[[str, str], None] = lambda dataset, message: None,
) -> Plan:
    """Find, prepare and fingerprint the data, and work out every fit and trial with its key.

    ``say`` hears what is being prepared. Raises InputError and UsageError; writes nothing to the
    store.
    """
    look_again()  # modules are rewritten between two runs of one session
    return _Planner(without_repeats(request), registry, notify, say).plan()


@dataclass(slots=True, eq=False)
class _Planner:
    request: RunRequest
    registry: Registry
    notify: Notify
    say: Callable[[str, str], None]
    suite: Suite | None = None
    profile: Profile | None = None
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    uses: list[DatasetUse] = field(default_factory=list)
    costs: dict[str, CostModel] = field(default_factory=dict)

    def plan(self) -> Plan:
        request, registry = self.request, self.registry
        check_request(request)
        check_store(store_path(request.store))
        if request.suite:
            self.suite = find_suite(request.suite, registry)
            self.profile = self.suite.profile(request.profile)
        settings = read_settings(request, registry)

        def learners_on(dataset: str = "") -> list[ChosenLearner]:
            return choose_learners(
                request, self.suite, self.profile, registry, settings, self.note, dataset
            )

        learners = learners_on()
        source = DataFolder(request.data_dir or None)
        datasets, absent = choose_datasets(
            request, self.suite, registry, source, settings, self.note
        )
        names = [name for d in datasets for name in (d.replaces, d.dataset.name)]
        check_owners(settings, [learner.name for learner in learners], names)
        check_metrics(request, self.suite, registry)
        if request.costs and len(datasets) > 1:
            labels = ", ".join(d.label for d in datasets)
            raise UsageError(f"--costs holds for one data set, not for {labels}: choose by --data")
        specs = Specifications(
            request,
            registry,
            states=str(states_folder(store_path(request.store)).absolute()),
            accounting=self.suite.accounting if self.suite else "path",
            reference=self.suite.reference if self.suite else default_reference(learners),
        )
        for chosen in datasets:
            name = chosen.replaces or chosen.dataset.name
            here = learners_on(name) if self.suite and name in self.suite.on else learners
            for fold, seed in product(self.folds(chosen.dataset), self.seeds()):
                self.dataset(chosen, fold, seed, source, here, specs)
        if len(specs.skipped) == len(specs.trials):
            reasons = sorted(set(specs.skipped.values())) or ["no learner suits the data"]
            raise UsageError(f"nothing to run: {'; '.join(reasons)}")
        baselines = tuple(x.name for x in learners if x.cls.role == "baseline")
        return self.finish(specs, baselines, absent)

    def note(self, line: str, warning: bool = False) -> None:
        """Emit a message once: a warning now, a note after planning has succeeded."""
        kept = self.warnings if warning else self.notes
        if line not in kept:
            kept.append(line)
            if warning:
                self.notify(line, True)

    def seeds(self) -> tuple[int, ...]:
        return self.request.seeds or (self.profile.seeds if self.profile else (0,))

    def folds(self, dataset: Any) -> tuple[int, ...]:
        """Those asked for, or those of the suite's that the data set has."""
        wanted = self.profile.folds if self.profile else (0,)
        return self.request.folds or tuple(f for f in wanted if f < dataset.folds) or wanted

    def dataset(
        self,
        chosen: ChosenDataset,
        fold: int,
        seed: int,
        source: Source,
        learners: Sequence[ChosenLearner],
        specs: Specifications,
    ) -> None:
        """Prepare one fold of a data set and specify all learners on it."""
        from bench_core.datasets.publishers.fetch import remedy  # with all that downloads need

        request, label = self.request, chosen.label
        check_fold(chosen.dataset, label, fold)
        size = self.profile.size if self.profile else request.profile or "quick"
        say = partial(self.say, label)
        source = DataFolder(source.folder, say, remedy(chosen.dataset))
        prepared = prepare(chosen.dataset, size, fold, seed, source, say=say)
        splits, costs = prepared.splits, ""
        if given := request.costs or (self.suite.costs if self.suite else None):
            splits = with_costs(splits, given, self.registry.cost_models)
            costs = costs_key(splits.costs)
            self.costs[costs] = splits.costs
        for line in splits.all_notes:
            self.note(f"{label}: {line}")
        metrics = choose_metrics(request, self.suite, self.registry, splits, label, self.note)
        use = _use(chosen, splits, fold, seed, size, [m.name for m in metrics])
        self.uses.append(use)
        first = self.uses[0]
        same = (fold, seed) == (first.fold, first.seed)
        suffix = "" if same else f", fold {fold}, seed {seed}"
        ground = Ground(use, splits, str(prepared.path), costs)
        for learner in learners:
            for reason in specs.add(learner, ground, suffix):
                self.note(f"skipped: {reason}")

    def finish(
        self, specs: Specifications, baselines: tuple[str, ...], absent: tuple[str, ...]
    ) -> Plan:
        """Put the plan together, with what the store already has."""
        request, suite, fits, trials = self.request, self.suite, specs.fits, specs.trials
        metrics = self.all_metrics()
        path = store_path(request.store)
        store = Store(path) if check_store(path) and not request.fresh else None
        finished, fitted = store.finished() if store else (frozenset(), frozenset())
        kept = (k for k in fitted & fits.keys() if state_path(specs.states, k).is_file())
        about = suite.name if suite else "+".join(dict.fromkeys(u.name for u in self.uses))
        size = self.uses[0].size
        key = digest([about, size, specs.reference, metrics, sorted(trials)])
        plan = Plan(
            run=f"{_slug(about)}-{size}-{key[:8]}",
            suite=suite.name if suite else "",
            title=suite.title if suite else "",
            profile=(request.profile or "quick") if suite else size,
            reference=specs.reference,
            baselines=baselines,
            absent=absent,
            accounting=specs.accounting,
            metrics=metrics,
            higher_is_better={
                m: parse_metric(m, self.registry.metrics).higher_is_better for m in metrics
            },
            datasets=tuple(self.uses),
            fits=tuple(fits.values()),
            trials=tuple(trials.values()),
            costs=self.costs,
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
            finished=finished & trials.keys(),
            finished_fits=frozenset(kept),
            extra=suite.extra if suite else {},
            paper=suite.paper if suite else "",
            skipped=tuple(specs.skipped.items()),
            executor=request.executor,
        )
        for line in self.notes:
            self.notify(line, False)
        plan = _with_cores(plan, *cores_for(request, len(trials_left(plan))))
        return replace(
            plan, seconds=estimated_seconds(plan, store.typical_seconds() if store else {})
        )

    def all_metrics(self) -> tuple[str, ...]:
        """The names of all metrics of the run, in the order in which they were asked for."""
        used = [name for use in self.uses for name in use.metrics]
        wanted = self.request.metrics or (self.suite.metrics if self.suite else ())
        spelt = [parse_metric(name, self.registry.metrics).name for name in wanted]
        return tuple(dict.fromkeys([*(name for name in spelt if name in used), *used]))


def _with_cores(plan: Plan, workers: int, threads: int) -> Plan:
    return replace(
        plan,
        workers=workers,
        threads=threads,
        fits=tuple(replace(fit, threads=threads) for fit in plan.fits),
        trials=tuple(replace(trial, threads=threads) for trial in plan.trials),
    )


def _use(
    chosen: ChosenDataset,
    splits: Splits,
    fold: int,
    seed: int,
    size: str,
    metrics: list[str],
) -> DatasetUse:
    parts = {name: getattr(splits, name) for name in SPLITS}
    return DatasetUse(
        name=chosen.label,
        title=chosen.dataset.title or chosen.label,
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
        unit=splits.costs.unit,
        metrics=tuple(metrics),
        notes=splits.all_notes,
    )


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-+." else "_" for c in text)[:40]
