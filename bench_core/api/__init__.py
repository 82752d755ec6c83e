"""Benchmarks from Python, with the engine of the command line."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bench_core.api.arguments import documented, request_of
from bench_core.api.result import Best, Figure, Result
from bench_core.datasets.user_arrays import InMemory
from bench_core.errors import UsageError, require
from bench_core.execution.orchestration import audited, carried_out, planned, registry_of, repriced
from bench_core.execution.runner import Interrupted, RunResult
from bench_core.planning.plan import Event, OnEvent, Plan, silent
from bench_core.planning.request import RunRequest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from bench_core.api.arguments import Table
    from bench_core.splits import Splits

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
    "load_run",
    "plan",
    "reprice",
    "run",
]

load_run = Result.load
_WORK = ("store", "workers", "executor", "timeout", "memory", "plugins")


@documented
def run(
    X: Table | Splits | None = None,
    y: ArrayLike | str | None = None,
    *,
    queries: ArrayLike | str | None = None,
    sample_weight: ArrayLike | None = None,
    name: str = "data",
    transformer: Any = None,
    request: RunRequest | None = None,
    on_event: OnEvent | None = None,
    progress: bool = True,
    **options: Any,
) -> Result:
    """Run learners on data and keep the results in the store; repeat the call to continue.

    ::

        bench_core.run(X, y, costs={"age": 1, "biopsy": 120}, learners=["cegb", "gbrt"])
        bench_core.run(suite="yahoo", learners={"miser": {"trees": 300}})

    Raises InputError or UsageError for unusable input, before any work starts. Raises
    ``Interrupted`` on Ctrl-C or an interrupted cell; finished work is kept.

    Parameters
    ----------
    X, y : data in memory
        Features (n, d), NaN = missing, and labels (n,): arrays, data frames, mappings of columns,
        or ``Splits``. y may be the name of a column of X.
    queries : default None
        Query of each row: ids (n,) or a column's name. The task is then ranking.
    sample_weight : default None
        Number of identical copies that each row stands for: whole numbers (n,) from 1. They weigh
        training, validation and test: qualities and mean costs too.
    name : default 'data'
        Name of these data on boards.
    transformer : default None
        A ColumnTransformer of scikit-learn, or a Pipeline with one, that transforms X. It is fitted
        on the training rows. The columns made by one of its transformers share a sensor, named
        after the transformer: ``costs={"tfidf": 3.0, "age": 1.0}``. The result's ``transformer``
        is the fitted copy (of the first fold), for rows that a model shall predict.
    request : default None
        All options as one value; keyword options override it.
    on_event : default None
        Function called with every ``Event`` instead of the display.
    progress : default True
        True: bars in a terminal or notebook, lines elsewhere. False: only warnings.
    """
    with _display(on_event, progress) as notify:
        asked = _asked(options, X, y, queries, name, request, transformer, sample_weight)
        result = _result(carried_out, asked, registry_of(asked), notify)
        fitted = [data.transformer for data in asked.data if isinstance(data, InMemory)]
        return replace(result, transformer=fitted[0]) if fitted else result


@documented
def plan(
    X: Table | Splits | None = None,
    y: ArrayLike | str | None = None,
    *,
    queries: ArrayLike | str | None = None,
    sample_weight: ArrayLike | None = None,
    name: str = "data",
    transformer: Any = None,
    request: RunRequest | None = None,
    on_event: OnEvent | None = None,
    progress: bool = True,
    **options: Any,
) -> Plan:
    """Return the plan of ``run`` with the same arguments. Data are prepared, nothing is trained.

    Parameters
    ----------
    X, y, queries, sample_weight, name, transformer, request, on_event, progress
        As in ``run``.
    """
    with _display(on_event, progress) as notify:
        asked = _asked(options, X, y, queries, name, request, transformer, sample_weight)
        return planned(asked, registry_of(asked), notify)


def audit(run: str = "last", *, on_event: OnEvent | None = None, **options: Any) -> Result:
    """Audit a run's finished trials: replay every query and operating point, and keep the verdicts.

    A trial whose audit exceeds a limit fails the audit.

    Parameters
    ----------
    store, workers, executor, timeout, memory, plugins
        As in ``run``.
    """
    require("argument", options, _WORK)
    return _result(audited, run, request_of(options), on_event or silent)


def reprice(
    run: str = "last",
    *,
    costs: Any,
    on_event: OnEvent | None = None,
    **options: Any,
) -> Result:
    """Bill a run under other costs, from its stored models and without training.

    The result is a new run in the store with the same metrics and the new costs. ``caps`` are
    measured under the new costs.

    Parameters
    ----------
    data : default ()
        Data sets of the run. Default: all.
    costs, caps, encoding, store, workers, executor, timeout, memory, plugins
        As in ``run``.
    """
    require("argument", options, ("data", "caps", "encoding", *_WORK))
    asked = request_of({**options, "costs": costs})
    registry, notify = registry_of(asked), on_event or silent
    return _result(repriced, run, asked.data, asked, registry, notify)


def _result(work: Callable[..., RunResult], *arguments: Any) -> Result:
    """Do the work, and return its result with the methods for scripts."""
    try:
        return Result.made_of(work(*arguments))
    except Interrupted as stop:
        stop.result = Result.made_of(stop.result)  # of the finished work
        raise


def _asked(*given: Any) -> RunRequest:
    asked = request_of(*given)
    if not (asked.suite or asked.data):
        raise UsageError("nothing to run: give X and y, suite=NAME or data=NAME_OR_FILE")
    return asked


@contextmanager
def _display(on_event: OnEvent | None, shown: bool) -> Iterator[OnEvent]:
    """Yield the caller's function for events, or a display, or a function that only warns."""
    from bench_core.terminal.progress import progress

    if on_event is not None:
        yield on_event
    elif shown:
        with progress(quiet=False, bars=True, verbose=False) as show:
            yield show
    else:
        yield _warn


def _warn(event: Event) -> None:
    if event.warning:
        warnings.warn(event.message, stacklevel=8)  # the line of the caller of ``run``
