"""Benchmarks from Python: the same engine that the command line drives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from bench_core.api.arguments import request_of, settings_as_given
from bench_core.api.result import Best, Figure, Result
from bench_core.api.words import in_python, speaking_python
from bench_core.class_names import importable
from bench_core.costs.model import CostModel
from bench_core.datasets.data_folder import data_folder
from bench_core.datasets.user_datasets import add_own_data
from bench_core.execution.events import Event, OnEvent, silent
from bench_core.execution.runner import Interrupted, RunResult, carry_out, carry_out_audit
from bench_core.execution.work import warming
from bench_core.parameters import is_learner
from bench_core.planning.plan import Plan
from bench_core.planning.planner import make_plan
from bench_core.planning.reprice import plan_reprice
from bench_core.planning.request import DAY, RunRequest, check_request
from bench_core.plugins import Registry, load_registry
from bench_core.results.budgets import Budget, as_caps
from bench_core.results.store import Store
from bench_core.results.store_files import store_path
from bench_core.results.writer import check_writable, open_writer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from bench_core.protocols import BudgetedLearner, Dataset
    from bench_core.splits import Splits

    Table: TypeAlias = ArrayLike | DataFrame | Mapping[str, ArrayLike]
    Pair: TypeAlias = tuple[Table, ArrayLike] | tuple[Table, ArrayLike, ArrayLike]
    File: TypeAlias = str | PathLike[str]
    Learner: TypeAlias = str | BudgetedLearner

__all__ = [
    "Best",
    "Event",
    "Figure",
    "Interrupted",
    "Plan",
    "Result",
    "RunRequest",
    "RunResult",
    "audit",
    "best",
    "export",
    "load_run",
    "plan",
    "report",
    "reprice",
    "run",
]

load_run = Result.load
P = ParamSpec("P")
Answer = TypeVar("Answer")


def run(
    X: Table | Splits | None = None,
    y: ArrayLike | str | None = None,
    *,
    queries: ArrayLike | str | None = None,
    valid: Pair | DataFrame | File = "",
    test: Pair | DataFrame | File = "",
    split: ArrayLike | str = "",
    task: str = "",
    name: str = "data",
    costs: ArrayLike | Mapping[Any, Any] | CostModel | File | None = None,
    learners: Learner | Sequence[Learner] | Mapping[str, Mapping[str, Any]] = (),
    settings: str | Sequence[str] | Mapping[str, Any] = (),
    reference: str = "",
    configs: int = 0,
    caps: float | Sequence[float] = (),
    metrics: str | Sequence[str] = (),
    suite: str = "",
    data: File | Dataset | Sequence[File | Dataset] = (),
    label: str = "",
    query: str = "",
    index_base: int = 1,
    drop: str | Sequence[str] = (),
    groups: str | Sequence[str] = (),
    cv: int = 0,
    share: float | Sequence[float] = (),
    unit: str = "",
    profile: str = "",
    seeds: int | Iterable[int] | None = None,
    folds: int | Iterable[int] | None = None,
    workers: int = 0,
    threads: int = 0,
    executor: str = "",
    timeout: float = DAY,
    memory: int = 0,
    retries: int = 0,
    audit: str = "sample",
    fresh: bool = False,
    strict_data: bool = False,
    data_dir: File = "",
    store: File = "",
    plugins: str | Sequence[str] = (),
    request: RunRequest | None = None,
    on_event: OnEvent | None = None,
    progress: bool = True,
) -> Result:
    """Run learners on data and keep the results in the store; the same call again goes on.

    ::

        bench_core.run(X, y, costs={"age": 1, "biopsy": 120}, learners=["cegb", "gbrt"])
        bench_core.run(suite="yahoo", learners={"miser": {"trees": 300}})

    ==================  ==========================================================================
    what                meaning
    ==================  ==========================================================================
    X, y                features (n, d), NaN = missing, and labels (n,): arrays, data frames,
                        mappings of columns, or ``Splits``; y may name a column of X
    queries             the query of each row: ids (n,) or a column's name; makes the task ranking
    valid, test         (X, y) or (X, y, queries); else a part is cut off by a hash of the rows
    split               train, valid or test for each row (n,), or a column's name
    task                binary, multiclass, ranking or regression; else the labels decide
    name                what boards call these data
    costs               by feature (mapping, series), one for each in order, a cost model, a file
                        or the content of one; else every feature costs 1, or the data set's own
    learners            names, instances, ``"all"``, or names with parameters (lists are grids);
                        else the suite's, or five for a first board
    settings            ``"miser.trees=300"``, or ``{"miser.trees": 300}``
    reference           the learner that savings are measured against; it joins the board
    configs             settings tried of each learner from its declared ranges; 0: grids
    caps                costs that no row may exceed, each enforced at prediction and measured
    metrics             names, the primary one first; else the task's
    suite               a suite's name, in place of X
    data                registered data sets, instances, or a file; of a suite those to use
    label, query        columns of a file; its ``valid``, ``test`` and ``split`` are files, a column
    index_base          number of the first feature in SVMlight files
    drop, groups        columns to leave out; columns that share one sensor (``"a,b:5"``)
    cv, share           folds; or the parts for validation and test; ``unit`` is that of the costs
    profile             quick, standard or paper
    seeds, folds        whole numbers; None: as the profile says
    workers, threads    processes, and threads of each; 0: by the cores at hand
    executor            ``"local"`` (processes that can be killed), ``"inline"`` or ``"dask"``;
                        else the suite's, or local
    timeout, memory     seconds (0: no limit) and bytes (0: 80% of the machine's, shared by the
                        workers) for each job with all processes that it starts
    retries             how often a job that does not end well is tried again
    audit               ``"sample"``, ``"full"`` or ``"off"``: replay with unpaid cells replaced
    fresh               do everything anew
    strict_data         refuse generated data in place of licensed ones
    data_dir, store     folder of data sets' files; file of the results
    plugins             modules to load plugins from
    request             all options as one value; those given beside it override it
    on_event            is called with every ``Event``, in place of a display
    progress            bars in a terminal or notebook, lines elsewhere; False: warnings alone
    ==================  ==========================================================================

    Raises InputError or UsageError before any work where something is unusable, ``Interrupted`` on
    Ctrl-C or an interrupted cell: finished work is kept.
    """
    given = dict(locals())  # all arguments: the first line of the function
    with speaking_python(request is None) as words, _display(given) as notify:
        asked = _reachable(_asked(given, words), notify)
        path = store_path(asked.store)
        check_writable(path)
        registry = _registry(asked, notify)
        made = _plan(asked, registry, notify)

        asked = replace(asked, executor=made.executor)
        if asked.executor.startswith("dask"):
            from bench_core.execution.dask import carry_out_dask

            return Result.of(carry_out_dask(made, asked, path, notify))
        with open_writer(path) as writer:
            try:
                warm_up = warming(registry, made.metrics, notify)
                return Result.of(carry_out(made, asked, writer, notify, warm_up))
            except Interrupted as stop:
                stop.result = Result.of(stop.result)
                raise


def _taking_the_arguments_of(
    other: Callable[P, Any],
) -> Callable[[Callable[..., Answer]], Callable[P, Answer]]:
    def signed(function: Callable[..., Answer]) -> Callable[P, Answer]:
        function.__signature__ = signature(other)  # type: ignore[attr-defined]
        return function

    return signed


@_taking_the_arguments_of(run)
def plan(*arguments: Any, **options: Any) -> Plan:
    """What ``run`` would do with the same arguments; prepares data, trains nothing."""
    bound = signature(run).bind(*arguments, **options)
    bound.apply_defaults()
    given = {"progress": False, **bound.arguments}
    with speaking_python(given["request"] is None) as words, _display(given) as notify:
        asked = _reachable(_asked(given, words), notify)
        registry = _registry(asked, notify)
        return _plan(asked, registry, notify)


def audit(
    run: str = "last",
    *,
    store: str = "",
    workers: int = 0,
    executor: str = "local",
    plugins: Sequence[str] = (),
    on_event: OnEvent | None = None,
) -> Result:
    """Replay every query and every point of a run's finished trials, and keep the verdicts."""
    asked = RunRequest(workers=workers, executor=executor, plugins=tuple(plugins), store=store)
    check_request(asked)
    kept = Store(store_path(store))
    name = kept.resolve(run)
    with open_writer(kept.path) as writer:
        return Result.of(carry_out_audit(kept, name, asked, writer, on_event or silent))


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
) -> Result:
    """Bill a run anew under the costs of a file, from its stored models: nothing is trained.

    A new run of the store has the same metrics and the new costs; ``data`` restricts it to some of
    the run's data sets, ``caps`` are measured under the new costs.
    """
    notify = on_event or silent
    modules, limits = tuple(plugins), as_caps(caps)
    asked = RunRequest(
        workers=workers,
        executor=executor,
        plugins=modules,
        costs=costs,
        caps=limits,
    )
    check_request(asked)
    kept = Store(store_path(store))
    registry = _registry(asked, notify)
    made, request = plan_reprice(kept, run, tuple(data), asked, registry)
    for line in made.notes:
        notify(Event("note", line))
    with open_writer(kept.path) as writer:
        return Result.of(carry_out(made, request, writer, notify, lambda learners: None))


def best(
    budget: float | str | Budget | None = None,
    run: str = "last",
    *,
    kind: str = "mean",
    dataset: str | None = None,
    store: File = "",
) -> Best:
    """The learner and setting of a run that are best within a budget."""
    return load_run(run, store).best(budget, kind, dataset)


def report(output: File, run: str = "last", *, store: File = "") -> Path:
    """Write a run as a file of the format that its name ends in: .html, .tex, .md, .csv, .svg."""
    return load_run(run, store).report(output)


def export(run: str = "last", *, store: File = "") -> DataFrame:
    """The results of a run: one row for each trial, operating point and split."""
    from bench_core.results.marks import with_choices

    with speaking_python():
        kept = Store(fspath(store))
        return with_choices(kept.frame(run), kept.info(run))


def _asked(given: Mapping[str, Any], words: dict[str, str]) -> RunRequest:
    """The request in the arguments of ``run``; ``words`` takes how they give its settings."""
    own = ("X", "y", "queries", "name", "request", "on_event", "progress")
    options = {k: v for k, v in given.items() if k not in own}
    X, y, queries, name, request = (given[k] for k in own[:5])
    words |= settings_as_given(given["learners"], given["settings"])
    return request_of(request, X, y, queries, name, options)


@contextmanager
def _display(given: Mapping[str, Any]) -> Iterator[OnEvent]:
    """What takes the events: the caller's function, or a display, or a warning for each."""
    from bench_core.terminal.progress import progress

    if given["on_event"] is not None:
        yield given["on_event"]
    elif not given["progress"]:
        yield _warn
    else:
        of_python = given["request"] is None
        with progress(quiet=False, bars=True, verbose=False) as show:
            yield lambda event: show(
                replace(event, message=in_python(event.message)) if of_python else event
            )


def _warn(event: Event) -> None:
    if event.warning:
        warnings.warn(in_python(event.message), stacklevel=6)


def _reachable(request: RunRequest, notify: OnEvent) -> RunRequest:
    """The same request, inline where another process could not import a class of it."""
    given = [x for x in request.learners if is_learner(x)]
    given += [request.costs] if isinstance(request.costs, CostModel) else []
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
