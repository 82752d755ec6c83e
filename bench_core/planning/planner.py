"""Plan a run: turn a request into fits and trials with content keys."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product

from bench_core._io.digests import digest, look_again
from bench_core._io.text import is_url
from bench_core.contracts import dataset_of, metric_of
from bench_core.costs.model import CostModel, costs_key
from bench_core.datasets.cache import prepare
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.pricing import under_groups, with_costs
from bench_core.datasets.remote import fetched
from bench_core.datasets.user_data import CUT
from bench_core.errors import UsageError, blaming, option
from bench_core.metrics.catalogue import USUAL, default_metric, parse_metric
from bench_core.planning.duration import estimate, job_seconds, median_seconds
from bench_core.planning.keys import Specifications
from bench_core.planning.plan import (
    DatasetUse,
    Notify,
    Plan,
    fits_left,
    trials_left,
    usable_fits,
)
from bench_core.planning.request import (
    EXECUTORS,
    PROFILES,
    RunRequest,
    cores_for,
)
from bench_core.planning.resolve_datasets import (
    ChosenDataset,
    check_fold,
    choose_datasets,
)
from bench_core.planning.resolve_learners import (
    ChosenLearner,
    choose_learners,
    default_reference,
)
from bench_core.planning.settings import check_owners, read_settings
from bench_core.planning.suites import NO_SUITE, Suite, find_suite
from bench_core.plugins import Registry
from bench_core.protocols import Metric, Source
from bench_core.results.budgets import as_caps
from bench_core.results.records import FitSpec, TrialSpec
from bench_core.results.store import Store
from bench_core.results.store_files import check_store, states_folder, store_path
from bench_core.splits import SPLITS, Splits


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
    return _Planner(request, registry, notify, say).plan()


@dataclass(slots=True, eq=False)
class _Planner:
    request: RunRequest
    registry: Registry
    notify: Notify
    say: Callable[[str, str], None]
    suite: Suite = NO_SUITE
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    uses: list[DatasetUse] = field(default_factory=list)
    costs: dict[str, CostModel] = field(default_factory=dict)

    def plan(self) -> Plan:
        request, registry = self.request, self.registry
        check_store(store_path(request.store))
        if request.suite:
            self.suite = find_suite(request.suite, registry)
        names = registry.learner_name
        with blaming(option("learners")):
            given = tuple(names(x) if isinstance(x, str) else x for x in request.learners)
        executor = request.executor or self.suite.executor or EXECUTORS[0]
        request = self.request = replace(
            request, executor=executor, learners=given, reference=names(request.reference)
        )
        profile = self.suite.profile(request.profile)
        settings = read_settings(request, registry)
        learners_on = partial(choose_learners, request, self.suite, registry, settings, self.note)
        learners = learners_on()
        source = DataFolder(request.data_dir or None)
        datasets, absent = choose_datasets(
            request, self.suite, registry, source, settings, self.note
        )
        data = [name for d in datasets for name in (d.replaces, d.dataset.name)]
        on = {name: learners_on(name) for name in dict.fromkeys(data) if name in self.suite.on}
        check_owners(settings, registry, [learner.name for learner in learners], data)
        self.check_metrics()
        if request.costs and len(datasets) > 1:
            labels = ", ".join(d.label for d in datasets)
            costs = f"{option('costs')} holds for one data set, not for {labels}"
            raise UsageError(f"{costs}: choose by {option('data')}")
        specs = Specifications(
            request,
            registry,
            states=str(states_folder(store_path(request.store)).absolute()),
            reference=request.reference
            or (self.suite.reference if self.suite.name else default_reference(learners)),
        )
        for chosen in datasets:
            name, folds = chosen.replaces or chosen.dataset.name, dataset_of(chosen.dataset).folds
            here = on.get(name, learners)
            # the folds asked for, or those of the suite's that the data set has
            there = tuple(fold for fold in profile.folds if fold < folds) or profile.folds
            folds_of = request.folds or (range(request.cv) if request.cv else there)
            for fold, seed in product(folds_of, request.seeds or profile.seeds):
                self.dataset(chosen, fold, seed, profile.size, source, here, specs)
        if len(specs.skipped) == len(specs.trials):
            reasons = sorted(set(specs.skipped.values())) or ["no learner suits the data"]
            raise UsageError(f"nothing to run: {'; '.join(reasons)}")
        baselines = tuple(x.name for x in learners if x.role == "baseline")
        return self.finish(specs, baselines, absent)

    def note(self, line: str, warning: bool = False) -> None:
        """Emit a message once: a warning now, a note after planning has succeeded."""
        kept = self.warnings if warning else self.notes
        if line not in kept:
            kept.append(line)
            if warning:
                self.notify(line, True)

    def check_metrics(self) -> None:
        """Refuse a misspelt metric before any data is read."""
        with blaming(option("metric")):
            self.parsed(self.request.metrics)
        with blaming(f"{self.suite.place}, key 'metrics'"):
            self.parsed(self.suite.metrics)

    def parsed(self, names: Iterable[str]) -> list[Metric]:
        """The metrics of these spellings, each once."""
        found = (parse_metric(name, self.registry.metrics) for name in names)
        return list({metric.name: metric for metric in found}.values())

    def metrics(self, splits: Splits, label: str) -> list[Metric]:
        """The metrics that judge a data set, the primary one first.

        One asked for by name that cannot judge it is an error; of a suite's, those that can are
        taken, and the task's default where none can.
        """
        task, asked = splits.task, self.parsed(self.request.metrics)
        for metric in asked:
            if reason := _unsuited(metric, splits, label):
                raise UsageError(
                    f"{option('metric')}: metric {metric.name} {reason}: take for example "
                    f"{' or '.join(USUAL[task])}; 'bench list metrics' has all"
                )
        listed = asked or self.parsed(self.suite.metrics or USUAL[task])
        fitting = [metric for metric in listed if not _unsuited(metric, splits, label)]
        if not fitting:
            fitting = [default_metric(task)]
            self.note(f"{label}: no metric of the suite judges {task}, so {fitting[0].name} does")
        return fitting

    def dataset(
        self,
        chosen: ChosenDataset,
        fold: int,
        seed: int,
        size: str,
        source: Source,
        learners: Sequence[ChosenLearner],
        specs: Specifications,
    ) -> None:
        """Prepare one fold of a data set and specify all learners on it."""
        from bench_core.datasets.publishers.fetch import remedy  # with all that downloads need

        label = chosen.label
        check_fold(chosen.dataset, label, fold)
        say = partial(self.say, label)
        source = DataFolder(source.folder, say, remedy(chosen.dataset))
        prepared = prepare(chosen.dataset, size, fold, seed, source, say=say)
        splits, costs = prepared.splits, ""
        if given := self.request.costs or self.suite.costs:
            if isinstance(given, str) and is_url(given):
                given = str(fetched(given))
            splits = with_costs(splits, given, self.registry.cost_models)
            splits = under_groups(splits, self.request.groups, prepared.splits)
            costs = costs_key(splits.costs)
            self.costs[costs] = splits.costs
        if self.request.unit:
            splits = splits.in_unit(self.request.unit)
            costs = costs_key(splits.costs)
            self.costs[costs] = splits.costs
        notes = (*splits.all_notes, *_flattered(splits, learners))
        for line in notes:
            self.note(f"{label}: {line}")
        names = tuple(metric.name for metric in self.metrics(splits, label))
        use = _use(chosen, splits, fold, seed, size, names, learners, own_prices=not costs)
        suite, name = self.suite, chosen.replaces or chosen.dataset.name
        use = replace(
            use,
            notes=notes,
            caps=as_caps(self.request.caps or suite.caps_on(name)),
            budgets=tuple(map(str, suite.budgets_on(name))),
            accounting=suite.accounting[0],
        )
        uses = [use, *map(use.under, suite.accounting[1:])]
        self.uses += uses
        first = self.uses[0]
        same = (fold, seed) == (first.fold, first.seed)
        suffix = "" if same else f", fold {fold}, seed {seed}"
        for ground in (specs.ground(use, splits, str(prepared.path), costs) for use in uses):
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
        store = Store(path) if check_store(path) else None
        reused = store is not None and not request.fresh
        finished, fitted = store.finished() if store and reused else (frozenset(), frozenset())
        needed = {trial.fit for key, trial in trials.items() if key not in finished}
        for key in reversed(fits):
            needed.update(fits[key].needs.values() if key in needed else ())
        about = suite.name or "+".join(dict.fromkeys(u.name for u in self.uses))
        name, size = request.profile or PROFILES[0], self.uses[0].size
        slug, part = (re.sub(r"[^\w+.-]", "_", word)[:40] for word in (about, name))
        key = digest([about, size, specs.reference, list(metrics), sorted(trials)])
        plan = Plan(
            run=f"{slug}-{part}-{key[:8]}",
            suite=suite.name,
            title=suite.title,
            profile=name,
            reference=specs.reference,
            baselines=baselines,
            absent=absent,
            accounting=", ".join(suite.accounting),
            metrics=tuple(metrics),
            higher_is_better=metrics,
            datasets=tuple(self.uses),
            fits=tuple(fits.values()),
            trials=tuple(trials.values()),
            costs=self.costs,
            notes=tuple(self.notes),
            warnings=tuple(self.warnings),
            finished=finished & trials.keys(),
            finished_fits=usable_fits(fits.values(), fitted, specs.states, needed),
            extra=suite.extra,
            paper=suite.paper,
            modules=specs.modules,
            skipped=tuple(specs.skipped.items()),
            executor=request.executor,
        )
        for line in self.notes:
            self.notify(line, False)
        workers, threads = cores_for(request, len(trials_left(plan)))
        plan = replace(plan, workers=workers, threads=threads)
        return _estimated(plan, store)

    def all_metrics(self) -> dict[str, bool]:
        """All metrics of the run, in the order in which they were asked for, and whether more of
        each is better."""
        used = [name for use in self.uses for name in use.metrics]
        asked = self.parsed(self.request.metrics or self.suite.metrics)
        metrics = [metric for metric in asked if metric.name in used] + self.parsed(used)
        return {metric.name: metric.higher_is_better for metric in metrics}


def _estimated(plan: Plan, store: Store | None) -> Plan:
    """The plan with the time of its jobs, from recorded durations."""
    recorded, _ = store.durations() if store else ({}, {})
    left: list[FitSpec | TrialSpec] = [*fits_left(plan), *trials_left(plan)]
    expected = job_seconds(left, median_seconds(recorded))
    return replace(plan, expected=expected, estimate=estimate(len(left), expected, plan.workers))


def _unsuited(metric: Metric, splits: Splits, label: str) -> str:
    """Why a metric cannot judge a data set, or nothing."""
    if splits.task not in metric.tasks:
        return f"does not judge {splits.task} ({label})"
    if metric_of(metric).pictures and splits.valid.frames is None:
        return f"judges pictures, and the rows of {label} are not their pixels"
    return ""


def _flattered(splits: Splits, learners: Sequence[ChosenLearner]) -> Iterator[str]:
    """A note where rows that a user's model was trained on may judge it, as they were cut off."""
    own = [learner.name for learner in learners if learner.role == "own"]
    if own and any(note.startswith(CUT) for note in splits.notes):
        yield (
            f"{own[0]} is flattered by validation and test rows that it was trained on: give rows "
            f"that it has not seen with {option('valid')} and {option('test')}"
        )


def _use(
    chosen: ChosenDataset,
    splits: Splits,
    fold: int,
    seed: int,
    size: str,
    metrics: tuple[str, ...],
    learners: Sequence[ChosenLearner],
    own_prices: bool,
) -> DatasetUse:
    parts = {name: getattr(splits, name) for name in SPLITS}
    return DatasetUse(
        name=chosen.label,
        title=dataset_of(chosen.dataset).title or chosen.label,
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
        metrics=metrics,
        optimum=dict(dataset_of(chosen.dataset).optimum) if own_prices else {},
        ends={x.name: x.ends for x in learners},
    )
