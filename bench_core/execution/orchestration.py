"""Planning and running a request, and repeating a trial; for the command line and Python."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_core.class_names import importable
from bench_core.costs.model import CostModel
from bench_core.datasets.user_datasets import open_registry
from bench_core.errors import InputError, UsageError, option
from bench_core.execution.runner import RunResult, carry_out, carry_out_audit
from bench_core.metrics.evaluation import given_metrics
from bench_core.parameters import is_learner
from bench_core.planning.plan import Event, OnEvent, Plan
from bench_core.planning.planner import make_plan
from bench_core.planning.reprice import plan_reprice
from bench_core.planning.request import RunRequest, given_from_python
from bench_core.planning.resolve_learners import ALL, parse_setting
from bench_core.plugins import Registry
from bench_core.results.records import RunInfo, Trial, differences
from bench_core.results.store import Store
from bench_core.results.store_files import store_path
from bench_core.results.writer import check_writable, open_writer


def registry_of(request: RunRequest) -> Registry:
    """Return the plugins of a request: installed and named ones, and the user's data sets."""
    return open_registry(request.plugins, request.data_dir)


def planned(request: RunRequest, registry: Registry, notify: OnEvent) -> Plan:
    """Return the plan of a request. Data are prepared, nothing is trained."""
    for info in registry.plugins:
        if info.error:
            line = f"plugin {info.name} ({info.origin}) does not load: {info.error}"
            notify(Event("note", line, warning=True))
    objects = [x for x in request.learners if is_learner(x)]
    objects += [request.costs] if isinstance(request.costs, CostModel) else []
    # such as a class defined in a notebook
    stuck = [type(x).__qualname__ for x in objects if not importable(type(x))]
    judges = [f"metric {name}" for name in request.metrics if name in given_metrics]
    stuck += judges
    if stuck and request.executor != "inline":
        line = (
            f"{', '.join(dict.fromkeys(stuck))} cannot be imported by another process: "
            "everything runs in this one, without limits on time and memory; put it in a module"
            f"{' of plugins=' if judges else ''}"
        )
        notify(Event("note", line, warning=True))
        request = replace(request, executor="inline")
    return make_plan(
        request,
        registry,
        lambda line, warning: notify(Event("note", line, warning=warning)),
        lambda dataset, line: notify(Event("prepare", line, title=dataset, dataset=dataset)),
    )


def carried_out(request: RunRequest, registry: Registry, notify: OnEvent) -> RunResult:
    """Plan a request and run the work that the store lacks."""
    check_writable(store_path(request.store))  # before hours of work
    plan = planned(request, registry, notify)
    return _done(plan, replace(request, executor=plan.executor), registry, notify)


def audited(run: str, request: RunRequest, notify: OnEvent) -> RunResult:
    """Replay every query and every point of a stored run's finished trials."""
    if request.executor.startswith("dask"):
        place = option("executor", request.executor)
        raise UsageError(f"{place}: an audit runs on this machine; choose local or inline")
    kept = Store(store_path(request.store))
    with open_writer(kept.path) as writer:
        return carry_out_audit(kept, kept.resolve(run), request, writer, notify)


def repriced(
    run: str, data: Sequence[str], request: RunRequest, registry: Registry, notify: OnEvent
) -> RunResult:
    """Bill a stored run's trials under the costs of the request, from their fitted models."""
    kept = Store(store_path(request.store))
    plan, request = plan_reprice(kept, run, data, request, registry)
    for line in plan.notes:
        notify(Event("note", line))
    return _done(plan, request, registry, notify)


def same_trials(
    store: Store, info: RunInfo, places: RunRequest, registry: Registry, notify: OnEvent
) -> None:
    """Raise UsageError unless a run's request plans the same trials now. ``places`` names plugins
    and the data folder."""
    if given_from_python(info.request):
        raise UsageError(
            "data or costs of the run were Python objects, which are not in the store: write them "
            "to files and run these"
        )
    data_dir = places.data_dir or info.request.get("data_dir", "")
    request = RunRequest.of(info.request, store=places.store, data_dir=data_dir, fresh=False)
    plan = planned(request, registry, notify)
    known = {trial.key for trial in store.trials(info.run)}
    if other := [trial.title for trial in plan.trials if trial.key not in known]:
        raise UsageError(
            f"{len(other)} of {len(plan.trials)} trials would be others now, such as {other[0]}: "
            "data, costs, code or libraries changed since; repeat 'bench run' first"
        )


def _done(plan: Plan, request: RunRequest, registry: Registry, notify: OnEvent) -> RunResult:
    with ExitStack() as stack:
        writer, cluster = stack.enter_context(open_writer(store_path(request.store))), None
        if request.executor.startswith("dask"):
            from bench_core.execution.dask import on_cluster

            cluster = stack.enter_context(on_cluster(plan, request, writer))
        return carry_out(plan, request, registry, writer, notify, cluster)


_SAME = ("learner", "params", "dataset", "fold", "seed")
"""Fields that identify a trial whose key changed."""

_DECIDE = (
    *("code", "learner_version", "params", "fingerprint", "libraries", "cost_model", "costs"),
    *("unit", "metrics", "accounting", "caps", "splits", "audit_mode", "versions", "machine"),
)
"""Fields of a trial that decide its numbers."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """Comparison of a repeated trial with the stored one."""

    trial: str  # its key
    title: str
    rows: int  # operating points compared
    changed: tuple[str, ...]  # numbers that differ, one text each
    ingredients: tuple[str, ...]  # changed code, data and libraries, one text each

    @property
    def same(self) -> bool:
        """True if every number has the same bits."""
        return not self.changed


def rerun(trial: str, places: RunRequest, on_event: OnEvent) -> Rerun:
    """Train and score the trial whose key starts with ``trial`` again, in a separate store.

    ``places`` names the trial's store, plugins and data folder. Raises UsageError if there is no
    such trial or it cannot be requested again, InputError if it fails now.
    """
    store = Store(places.store)
    then = store.trial(trial)
    with tempfile.TemporaryDirectory(prefix="bench-rerun-") as folder:
        path = Path(folder, "bench.db")
        before = store.request_for(then.key)
        places = replace(places, data_dir=places.data_dir or before.get("data_dir", ""))
        registry = registry_of(places)
        request = _request(then, before, path, places, registry)
        plan = make_plan(request, registry)
        same = [
            spec
            for spec in plan.trials
            if spec.key == then.key
            or all(getattr(spec, name) == getattr(then, name) for name in _SAME)
        ]
        if not same:
            raise UsageError(
                f"the run's request no longer includes {then.title}: the suite or the learner's "
                "parameters changed"
            )
        # the one with the same key, or the first
        spec = min(same, key=lambda spec: spec.key != then.key)
        with open_writer(path) as writer:
            alone = replace(plan, trials=(spec,), skipped=())
            result = carry_out(alone, request, registry, writer, on_event)
        for title, status, error in result.failures:
            raise InputError(f"{title} is {status} now: {error}")
        now = Store(path).trial(spec.key)
        changes = differences(then, now)
    decide = {name.replace("_", " "): (getattr(then, name), getattr(now, name)) for name in _DECIDE}
    return Rerun(
        then.key,
        then.title,
        len(then.points),
        tuple(f"{at}: {what} {old} then, {new} now" for at, what, old, new in changes),
        tuple(
            f"{what}: {old or 'none'} then, {new or 'none'} now"
            for what, (old, new) in decide.items()
            if old != new
        ),
    )


def _request(
    then: Trial, before: Mapping[str, Any], store: Path, places: RunRequest, registry: Registry
) -> RunRequest:
    """Return the run's request, limited to the trial's data set and repeat, without other learners
    that are not registered now."""
    if given_from_python(before):
        raise UsageError(
            "its data or costs were Python objects, which are not in the store: call "
            "bench_core.run with them and another store, and compare the exports"
        )
    names = [*registry.learners, *registry.datasets, ALL]
    modules = " ".join(f"-p {name}" for name in before.get("plugins", ()))
    for name in filter(None, (then.learner, before.get("reference"))):
        if name not in names:
            had = f"; the run had {modules}" if modules else ""
            raise UsageError(f"learner {name!r} is not installed{had}")
    learners = tuple(x for x in before.get("learners", ()) if x in names)
    alone = (then.learner,) * bool(before.get("suite"))  # it may name others that are not known
    return RunRequest.of(
        before,
        learners=learners or alone,
        settings=tuple(x for x in before.get("settings", ()) if parse_setting(x).owner in names),
        seeds=(then.seed,),
        folds=(then.fold,),
        data_dir=places.data_dir,
        store=str(store),
        plugins=places.plugins,
        workers=1,  # there is one trial
        timeout=0.0,  # no limit
        memory=0,
        fresh=False,
    )
