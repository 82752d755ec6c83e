"""Benchmarks from Python: the same engine that the command line drives."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bench_core.class_names import importable
from bench_core.datasets.search import data_folder
from bench_core.datasets.user_datasets import add_own_data
from bench_core.errors import UsageError, blaming, unknown
from bench_core.execution.events import Event, OnEvent, silent
from bench_core.execution.runner import Interrupted, RunResult, carry_out, carry_out_audit
from bench_core.metrics import parse_metric
from bench_core.metrics.evaluation import warm_up as warm_up_metrics
from bench_core.parameters import is_learner
from bench_core.planning.plan import Plan
from bench_core.planning.planner import make_plan
from bench_core.planning.reprice import plan_reprice
from bench_core.planning.request import RunRequest, check_request
from bench_core.plugins import Registry, load_registry
from bench_core.results.budgets import as_caps
from bench_core.results.store import Store
from bench_core.results.store_files import store_path
from bench_core.results.writer import check_writable, open_writer

__all__ = [
    "Event",
    "Interrupted",
    "Plan",
    "RunRequest",
    "RunResult",
    "audit",
    "plan",
    "reprice",
    "run",
]


def run(
    *, request: RunRequest | None = None, on_event: OnEvent | None = None, **options: Any
) -> RunResult:
    """Run a suite or a data set through learners and keep the results in the store.

    ``options`` are the fields of ``RunRequest`` (``bench_core.planning.request``); lists, and one
    word for a list, are accepted::

        bench_core.run(suite="yahoo", learners=["miser", MyLearner()])

    The same call again does only what is unfinished. Raises InputError or UsageError before any
    work where something is unusable, ``Interrupted`` on Ctrl-C.
    """
    notify = on_event or silent
    asked = _reachable(_asked(request, options), notify)
    path = store_path(asked.store)
    check_writable(path)
    registry = _registry(asked, notify)
    made = _plan(asked, registry, notify)

    def warm_up(learners: Iterable[str]) -> None:
        def say(line: str) -> None:
            notify(Event("note", line))

        registry.warm_up(learners, say)
        warm_up_metrics([parse_metric(name, registry.metrics) for name in made.metrics], say)

    with open_writer(path) as writer:
        return carry_out(made, asked, writer, notify, warm_up)


def plan(
    *, request: RunRequest | None = None, on_event: OnEvent | None = None, **options: Any
) -> Plan:
    """What ``run`` would do with the same options; prepares data, trains nothing."""
    notify = on_event or silent
    asked = _reachable(_asked(request, options), notify)
    return _plan(asked, _registry(asked, notify), notify)


def audit(
    run: str = "last",
    *,
    store: str = "",
    workers: int = 0,
    executor: str = "local",
    plugins: Sequence[str] = (),
    on_event: OnEvent | None = None,
) -> RunResult:
    """Replay every query and every point of a run's finished trials, and keep the verdicts."""
    asked = RunRequest(workers=workers, executor=executor, plugins=tuple(plugins), store=store)
    check_request(asked)
    load_registry(asked.plugins)  # an unknown module is one clear line
    kept = Store(store_path(store))
    name = kept.resolve(run)
    with open_writer(kept.path) as writer:
        return carry_out_audit(kept, name, asked, writer, on_event or silent)


def reprice(
    run: str = "last",
    *,
    costs: str,
    data: Sequence[str] = (),
    caps: Sequence[float] = (),
    store: str = "",
    workers: int = 0,
    executor: str = "local",
    plugins: Sequence[str] = (),
    on_event: OnEvent | None = None,
) -> RunResult:
    """Bill a run anew under the costs of a file, from its stored models: nothing is trained.

    A new run of the store has the same metrics and the new costs; ``data`` restricts it to some of
    the run's data sets, ``caps`` are measured under the new costs.
    """
    notify = on_event or silent
    kept = Store(store_path(store))
    named = kept.info(run).request.get("plugins", ())
    modules = tuple(dict.fromkeys([*named, *plugins]))
    limits = as_caps(caps)
    asked = RunRequest(
        workers=workers, executor=executor, plugins=modules, costs=costs, caps=limits
    )
    check_request(asked)
    made, request = plan_reprice(kept, run, tuple(data), asked, _registry(asked, notify))
    for line in made.notes:
        notify(Event("note", line))
    with open_writer(kept.path) as writer:
        return carry_out(made, request, writer, notify, lambda learners: None)


_LISTS = ("data", "metrics", "caps", "learners", "settings", "seeds", "folds", "plugins")


def _asked(request: RunRequest | None, options: Mapping[str, Any]) -> RunRequest:
    known = [f.name for f in fields(RunRequest)]
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            raise UsageError(unknown("option", name, known))
        if name in _LISTS and value is not None:
            single = isinstance(value, str | int | float) or not isinstance(value, Iterable)
            value = tuple(map(_plain, (value,) if single else value))
        given[name] = str(value) if isinstance(value, Path) else value
    if "caps" in given:
        with blaming("caps"):
            given["caps"] = as_caps(given["caps"] or ())
    return replace(request or RunRequest(), **given)


def _plain(value: Any) -> Any:
    """numpy's whole numbers as Python's, paths as text, everything else as it is."""
    if isinstance(value, Path):
        return str(value)
    return value.__index__() if hasattr(value, "__index__") else value


def _reachable(request: RunRequest, notify: OnEvent) -> RunRequest:
    """The same request, inline where another process could not import a learner."""
    given = [x for x in request.learners if is_learner(x)]
    stuck = [type(x).__qualname__ for x in given if not importable(type(x))]
    if not stuck or request.executor == "inline":
        return request
    line = (
        f"{', '.join(dict.fromkeys(stuck))} cannot be imported by another process, so everything "
        "runs in this one, without limits on time and memory; put it in a module"
    )
    notify(Event("note", line, warning=True))
    return replace(request, executor="inline")


def _registry(request: RunRequest, notify: OnEvent) -> Registry:
    registry = load_registry(request.plugins)
    add_own_data(registry, data_folder(request.data_dir or None))
    for info in registry.plugins:
        if info.error:
            line = f"plugin {info.name} ({info.origin}) does not load: {info.error}"
            notify(Event("note", message=line, warning=True))
    return registry


def _plan(request: RunRequest, registry: Registry, notify: OnEvent) -> Plan:
    return make_plan(
        request,
        registry,
        lambda line, warning: notify(Event("note", line, warning=warning)),
        lambda dataset, line: notify(Event("prepare", line, title=dataset, dataset=dataset)),
    )
