"""Planning of a run: turn a request into fits and trials with content keys."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from bench_core._io.digests import canonical, digest, look_again
from bench_core.class_names import spelled
from bench_core.contracts import dataset_of, learner_of, metric_of
from bench_core.costs.cost_file import CostFile
from bench_core.costs.error_costs import ErrorCosts, Matrix, error_costs
from bench_core.costs.model import NO_UNIT, CostModel, costs_key
from bench_core.data import Task
from bench_core.datasets.cache import prepare
from bench_core.datasets.cautions import cautions, joined
from bench_core.datasets.data_folder import DataFolder, local_path
from bench_core.datasets.pricing import with_costs
from bench_core.datasets.user_datasets import groups_and_unit
from bench_core.errors import UsageError, blaming, option
from bench_core.metrics.evaluation import USUAL, default_metric, parse_metric
from bench_core.metrics.rows import TOTAL_COST
from bench_core.planning.keys import DescribedLearner, billed, fit_key, metric_key, priced
from bench_core.planning.plan import Notify, Plan, resumed, typical_time
from bench_core.planning.request import EXECUTORS, PROFILES, RunRequest
from bench_core.planning.resolve_datasets import ChosenDataset, choose_datasets
from bench_core.planning.resolve_learners import (
    ChosenLearner,
    check_owners,
    choose_learners,
    default_reference,
    parse_settings,
)
from bench_core.planning.suites import NO_SUITE, Suite, find_suite
from bench_core.plugins import Registry
from bench_core.protocols import Metric, Source
from bench_core.results.budgets import SHARE, as_caps
from bench_core.results.records import DatasetUse, FitSpec, TrialSpec
from bench_core.results.store_files import check_store, states_folder, store_path
from bench_core.splits import CAUTION, CUT, SPLITS, UNUSED, Note, Splits


def make_plan(
    request: RunRequest,
    registry: Registry,
    notify: Notify = lambda line, warning: None,
    say: Callable[[str, str], None] = lambda dataset, message: None,
) -> Plan:
    """Find, prepare and fingerprint the data, and specify every fit and trial with its key.

    ``say`` reports data in preparation. Raises InputError and UsageError. The store is unchanged.
    """
    look_again()  # modules may change between runs of one session
    check_store(store_path(request.store))
    suite = find_suite(request.suite, registry) if request.suite else NO_SUITE
    request = replace(request, executor=request.executor or suite.executor or EXECUTORS[0])
    return _Planner(request, registry, suite, notify, say).plan()


SLOW = 300.0
"""Typical seconds of a fit beyond which a first board leaves a learner out."""

CHEAP_TRAINING_ROWS = 50_000
"""Maximum training rows on which the reference learner is also scored."""

_OF_TRIALS = (
    *("fold", "fingerprint", "stand_in", "task", "metrics", "error_costs", "unit", "accounting"),
)
"""Fields of a trial taken from its data set's use."""


@dataclass(slots=True, eq=False)
class _Planner:
    """Collects fits and trials by key, so that shared ones occur once.

    ``skipped`` holds, by trial key, the reason why a requested learner does not suit a data set.
    """

    request: RunRequest
    registry: Registry
    suite: Suite
    notify: Notify
    say: Callable[[str, str], None]
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    uses: list[DatasetUse] = field(default_factory=list)
    costs: dict[str, CostModel] = field(default_factory=dict)
    fits: dict[str, FitSpec] = field(default_factory=dict)
    trials: dict[str, TrialSpec] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def plan(self) -> Plan:
        request, registry, suite = self.request, self.registry, self.suite
        profile = suite.profile(request.profile)
        settings = parse_settings(request.settings)
        learners_on = partial(choose_learners, request, suite, registry, settings, self.note)
        learners = learners_on()
        source = DataFolder(request.data_dir or None)
        datasets, absent = choose_datasets(request, suite, registry, source, settings, self.note)
        names = [name for d in datasets for name in (d.replaces, d.dataset.name) if name]
        on = {name: learners_on(name) for name in dict.fromkeys(names) if name in suite.on}
        check_owners(settings, [*names, *(learner.name for learner in learners)], registry)
        with blaming(option("metrics")):  # before any data is read
            self.metrics(request.metrics)
        with blaming(f"{suite.place}, key 'metrics'"):
            self.metrics(suite.metrics)
        if request.costs and len(datasets) > 1:
            labels = ", ".join(d.label for d in datasets)
            costs = f"{option('costs')} applies to one data set, not to {labels}"
            raise UsageError(f"{costs}: choose by {option('data')}")
        for chosen in datasets:
            here = on.get(chosen.replaces or chosen.dataset.name, learners)
            count = dataset_of(chosen.dataset).folds
            # the requested folds, or the suite's folds that exist for the data set
            there = tuple(fold for fold in profile.folds if fold < count) or profile.folds
            folds = request.folds or (range(request.cv) if request.cv else there)
            if count > 1 and [*folds] == [0] and hasattr(chosen.dataset, "place"):
                others = f"{option('folds')} chooses others, 0 to {count - 1}"
                self.note(f"{chosen.label}: of its {count} folds the first is run; {others}")
            for fold, seed in product(folds, request.seeds or profile.seeds):
                self.dataset(chosen, fold, seed, profile.size, source, here)
        if len(self.skipped) == len(self.trials):
            reasons = sorted(set(self.skipped.values())) or ["no learner suits the data"]
            raise UsageError(f"nothing to run: {'; '.join(reasons)}")
        baselines = tuple(x.name for x in learners if x.role == "baseline")
        return self.finished(baselines, absent)

    def note(self, line: str, warning: bool = False) -> None:
        """Emit a message once: a warning immediately, a note after planning has succeeded."""
        kept = self.warnings if warning else self.notes
        if line not in kept:
            kept.append(line)
            if warning:
                self.notify(line, True)

    def metrics(self, names: Iterable[str]) -> list[Metric]:
        """Return the metrics of these spellings without duplicates."""
        found = (parse_metric(name, self.registry.metrics) for name in names)
        return list({metric.name: metric for metric in found}.values())

    @property
    def error_costs(self) -> str:
        """Costs of errors that the request or its suite gives, "" for none."""
        return self.request.error_costs or self.suite.error_costs

    def judges(self, splits: Splits, label: str) -> tuple[str, ...]:
        """Return the metrics that apply to a data set, the primary one first: the total cost if
        errors have costs.

        A metric requested by name that does not apply is an error. A suite's metrics are filtered;
        if none applies, the task's default is used.
        """
        task, fitting = splits.task, []
        if self.error_costs and not splits.classes:
            fault = f"{label} is {task}, which has no classes"
            raise UsageError(f"{option('error_costs')}: {fault}; leave it out")
        names = self.request.metrics or self.suite.metrics or USUAL[task]
        for metric in self.metrics((TOTAL_COST, *names) if self.error_costs else names):
            reason = ""
            if metric.name == TOTAL_COST and not self.error_costs:
                reason = f"needs costs of errors: {option('error_costs', like='COSTS')}"
            elif task not in metric.tasks:
                reason = f"does not apply to {task} ({label})"
            elif why := metric_of(metric).unsuitable(splits.valid):
                reason = f"does not apply to {label}: {why}"
            if reason and self.request.metrics:
                raise UsageError(
                    f"{option('metrics')}: metric {metric.name} {reason}: try for example "
                    f"{' or '.join(USUAL[task])}; 'bench list metrics' has all"
                )
            fitting += [] if reason else [metric]
        if all(metric_of(metric).in_money for metric in fitting):  # others stop learners early
            fitting.append(usual := default_metric(task))
            if not self.request.metrics:
                instead = f"no metric of the suite applies to {task}; using {usual.name} instead"
                self.note(f"{label}: {instead}")
        return tuple(metric.name for metric in fitting)

    def reference(self, learners: Sequence[ChosenLearner], label: str, task: Task) -> str:
        """Return the reference on a data set: the request's learner, else the suite's, else one
        with the role of a reference; only learners that suit the task, "" for none."""
        request, registry = self.request, self.registry
        suited = {
            c.name: c for c in learners if any(not d.unsuited(task, label) for d in c.described)
        }
        for name in (request.reference, self.suite.reference):
            if name in suited:
                return name
        usual = default_reference([*suited.values()], registry, self.note)
        if not usual and len(suited) > 1 and not self.error_costs:
            others = (
                name
                for name, cls in registry.learners.items()
                if learner_of(cls).role == "reference" and task in cls.tasks
            )
            self.note(
                "no saving will be measured: no learner here is a reference; add "
                f"{next(others, 'gbrt')} to the learners, or name one of them with "
                f"{option('reference')}"
            )
        return usual

    def dataset(
        self,
        chosen: ChosenDataset,
        fold: int,
        seed: int,
        size: str,
        source: Source,
        learners: Sequence[ChosenLearner],
    ) -> None:
        """Prepare one fold of a data set and specify all learners on it."""
        from bench_core.datasets.publishers import remedy  # imports libraries for downloads

        label, suite, request = chosen.label, self.suite, self.request
        about, name = dataset_of(chosen.dataset), chosen.replaces or chosen.dataset.name
        if not 0 <= fold < about.folds:
            has = f"folds 0 to {about.folds - 1}" if about.folds > 1 else "only fold 0"
            remedies = f"choose by {option('folds')}"
            if "seed" in about.depends_on:
                remedies += f", or draw new splits by {option('seeds')}"
            if fold > 2 and chosen.dataset.name not in self.registry.datasets:
                remedies += f", or divide into {fold} by {option('cv', fold)}"
            raise UsageError(f"data set {label} has {has}, not {fold}: {remedies}")
        say = partial(self.say, label)
        source = DataFolder(source.folder, say, remedy(chosen.dataset))
        prepared = prepare(chosen.dataset, size, fold, seed, source, say=say)
        splits = prepared.splits
        if costs := request.costs or suite.costs:
            costs = str(local_path(costs)) if isinstance(costs, str) else costs
            models, usual = self.registry.cost_models, groups_and_unit(chosen.dataset, request)
            splits = with_costs(splits, costs, models, request.encoding, **usual)
        if request.unit:
            splits = splits.in_unit(request.unit)
        cost_key = costs_key(splits.costs) if costs or request.unit else ""
        if cost_key:
            self.costs[cost_key] = splits.costs
        lines = cautions(splits)
        imported = [learner.name for learner in learners if learner.role == "own"]
        if imported and any(note.kind == CUT for note in splits.all_notes):
            lines.append(
                f"{imported[0]} may have been trained on these validation and test rows: give rows "
                f"that it was not trained on with {option('valid')} and {option('test')}"
            )
        metrics = self.judges(splits, label)
        reference = self.reference(learners, label, splits.task)
        parts = {name: getattr(splits, name) for name in SPLITS}
        undefined = {}
        for metric, split in product(self.metrics(metrics), ("valid", "test")):
            if why := metric_of(metric).undefined(parts[split].y):
                undefined[metric.name] = why
                part = "validation" if split == "valid" else split
                where = f"{part} (fold {fold}, seed {seed})"
                self.note(f"{label}: {metric.name} is not defined on {where}: {why}", warning=True)
        of_learners = [
            line for x in learners for one in x.instances for line in _notes(one, splits)
        ]
        notes = [*splits.all_notes, *(Note(CAUTION, line) for line in lines)]
        for note in notes:
            mistyped = note.kind == UNUSED and isinstance(costs, CostFile)
            self.note(f"{label}: {note}", mistyped)
        for line, warning in of_learners:
            self.note(f"{label}: {line}", warning)
        notes += dict.fromkeys(Note.of(line) for line, _ in of_learners)
        caps = as_caps(request.caps or suite.caps_on(name))
        if caps and splits.task is Task.CHOICE:
            what = "a row that can buy no call has no answer; leave caps out for a choice"
            raise UsageError(f"{option('caps')}: {label}: {what}")
        use = DatasetUse(
            name=label,
            title=about.title or label,
            task=str(splits.task),
            stand_in=bool(splits.stand_in),
            stand_in_for=chosen.replaces if splits.stand_in else "",
            fold=fold,
            seed=seed,
            size=size,
            fingerprint=splits.fingerprint,
            features=len({*splits.columns}),  # as cost files count them
            classes=splits.classes,
            rows={name: len(examples) for name, examples in parts.items()},
            queries={name: len(examples.units or ()) for name, examples in parts.items()},
            test_classes=_test_classes(splits),
            metrics=metrics,
            reference=reference,
            error_costs=matrix_for(splits, self.error_costs, request.encoding),
            undefined=undefined,
            notes=tuple(notes),
            ends={learner.name: learner.ends for learner in learners},
            budgets=tuple(map(str, suite.budgets_on(name))),
            accounting=suite.accounting[0],
        )
        use = priced(use, splits, caps, None if cost_key else about.optimum)
        uses = [use, *map(use.under, suite.accounting[1:])]
        self.uses += uses
        first = self.uses[0]
        same = (fold, seed) == (first.fold, first.seed)
        suffix = "" if same else f", fold {fold}, seed {seed}"
        for each in uses:
            self.specify(learners, each, splits, str(prepared.path), cost_key, suffix)

    def specify(
        self,
        learners: Sequence[ChosenLearner],
        use: DatasetUse,
        splits: Splits,
        data: str,
        costs: str,
        suffix: str,
    ) -> None:
        """Specify all learners on one prepared fold in folder ``data``. The cost model has the key
        ``costs`` ("" for the one prepared with the data); ``suffix`` ends titles.

        A learner that does not suit the task is a skipped trial if it was requested by name.
        """
        encodings = [*map(asdict, splits.encodings)]
        trained = {
            "fingerprint": use.fingerprint,
            "task": use.task,
            "classes": use.classes,
            "fold": use.fold,
            # the unit of costs, such as ms, does not change results
            "prices": costs_key(replace(splits.prices, unit=NO_UNIT)),
            "names": [splits.feature_names, encodings, splits.class_names],
        }
        metrics = [metric_key(name, self.registry.metrics) for name in use.metrics]
        # costs of errors decide nothing in training
        in_money = [metric_of(metric).in_money for metric in self.metrics(use.metrics)]
        stops_by = in_money.index(False)
        trained_on = [trained, metrics[stops_by], use.seed]
        both: dict[str, Any] = {
            "dataset": use.name,
            "seed": use.seed,
            "data": data,
            "states": str(states_folder(store_path(self.request.store)).absolute()),
            "costs": costs,
            "plugins": self.request.plugins,
        }
        judged: dict[str, Any] = {name: getattr(use, name) for name in _OF_TRIALS}
        cheap = use.rows["train"] <= CHEAP_TRAINING_ROWS
        prices = costs_key(splits.prices)

        def fit(learner: DescribedLearner, title: str) -> str:
            """Return the key of a fit, after specifying the fits it needs."""
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
                self.fits[key] = FitSpec(key, title, **about, **both, metric=use.metrics[stops_by])
            return key

        for chosen in learners:
            splits_of = ("train",) if cheap and chosen.name == use.reference else ()
            for learner, varied in zip(chosen.described, chosen.varied, strict=True):
                reason = learner.unsuited(use.task, use.name)
                slow = "" if chosen.name == use.reference else self.too_slow(learner, use)
                if (reason or slow) and not chosen.named:
                    self.note(f"skipped: {reason}" if reason else f"left out: {slow}")
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
                    audit_mode=self.request.audit,
                    **both,
                    **judged,
                )
                spec = billed(spec, use, splits, prices, metrics)
                self.trials.setdefault(spec.key, spec)
                if reason:
                    self.skipped[spec.key] = reason
                    self.note(f"skipped: {reason}", warning=True)

    def too_slow(self, learner: DescribedLearner, use: DatasetUse) -> str:
        """Return why a first board leaves a learner out, "" if it does not: a fit takes long."""
        if self.request.learners or self.suite.name:
            return ""
        parts = (typical_time(one.name, use, fit=True) for one in (learner, *learner.needs))
        if (seconds := sum(parts)) <= SLOW:
            return ""
        takes = f"a fit of {learner.name} on {use.name} takes about {seconds / 60:.0f} minutes"
        return f"{takes}; to run it, name it: {option('learners', learner.name)}"

    def version(self, learner: DescribedLearner) -> str:
        """Version of the distribution that registered a learner, or the learner's own."""
        registered = self.registry.learners.get(learner.name)
        if registered is None or spelled(registered) != learner.encoded["class"]:
            return learner.version
        return self.registry.origin["learner", learner.name].version or learner.version

    def finished(self, baselines: tuple[str, ...], absent: tuple[str, ...]) -> Plan:
        """Return the plan, including finished work in the store."""
        request, suite, fits, trials = self.request, self.suite, self.fits, self.trials
        used = [name for use in self.uses for name in use.metrics]
        asked = [m for m in self.metrics(request.metrics or suite.metrics) if m.name in used]
        metrics = {m.name: m for m in asked + self.metrics(used)}
        about = suite.name or "+".join(dict.fromkeys(u.name for u in self.uses))
        name = request.profile or PROFILES[0]
        data_slug, profile_slug = (re.sub(r"[^\w+.-]", "_", word)[:40] for word in (about, name))
        references = ",".join(dict.fromkeys(use.reference for use in self.uses))
        decides: list[Any] = [about, self.uses[0].size, references, list(metrics), sorted(trials)]
        decides += [request.keep] * (request.keep != SHARE)
        notes = tuple(joined(self.notes))
        plan = Plan(
            run=f"{data_slug}-{profile_slug}-{digest(decides)[:8]}",
            suite=suite.name,
            title=suite.title,
            profile=name,
            baselines=baselines,
            absent=absent,
            accounting=", ".join(suite.accounting),
            metrics=tuple(metrics),
            higher_is_better={name: m.higher_is_better for name, m in metrics.items()},
            in_money=tuple(name for name, m in metrics.items() if metric_of(m).in_money),
            datasets=tuple(self.uses),
            fits=tuple(fits.values()),
            trials=tuple(trials.values()),
            costs=self.costs,
            notes=notes,
            warnings=tuple(self.warnings),
            extra=suite.extra,
            paper=suite.paper,
            skipped=tuple(self.skipped.items()),
        )
        plan = resumed(plan, request)  # a damaged store is an error before notes are shown
        for line in notes:
            self.notify(line, False)
        return plan


def _test_classes(splits: Splits) -> dict[str, int]:
    """Return the test rows of each class of a data set with labels of classes."""
    if not splits.classes or splits.task is Task.CHOICE:
        return {}
    names = splits.class_names or tuple(map(str, range(splits.classes)))
    sizes = np.bincount(splits.test.y.astype(np.int64), minlength=splits.classes)
    return dict(zip(names, sizes.tolist(), strict=True))


def matrix_for(splits: Splits, costs: str, encoding: str) -> Matrix:
    """Return the costs of errors between the classes of a data set, () for none."""
    if not costs:
        return ()
    names = splits.class_names or tuple(map(str, range(splits.classes)))
    matrix = error_costs(costs, names, encoding)
    ErrorCosts.of(matrix, splits.train, splits.price_columns)  # refuses unknown columns
    return matrix


def _notes(learner: Any, splits: Splits) -> Iterator[tuple[str, bool]]:
    """Yield the notes of a learner and of the learners it uses."""
    for need in learner_of(learner).needs():
        yield from _notes(need, splits)
    yield from learner_of(learner).notes(splits)
