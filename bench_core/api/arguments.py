"""The arguments of ``bench_core.run`` as a request: data, costs, learners and settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.contracts import labels_fault, shapes_fault
from bench_core.costs.cost_file import CostFile
from bench_core.costs.model import CostModel
from bench_core.datasets.pricing import under_groups
from bench_core.datasets.user_arrays import InMemory, array_splits
from bench_core.errors import InputError, UsageError, blaming, one_line, unknown
from bench_core.parameters import is_learner
from bench_core.planning.invocation import toml_literal
from bench_core.planning.option import options_of
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_datasets import division
from bench_core.planning.settings import GivenAs
from bench_core.results.budgets import as_caps
from bench_core.splits import Splits

_FILES = ("data", "suite", "label", "query")
_ROWS = ("y", "queries", "valid", "test", "split")
_IN_SPLITS = ("task", "drop", "groups", "cv", "share")


def request_of(
    options: Mapping[str, Any],
    X: Any = None,
    y: Any = None,
    queries: Any = None,
    name: str = "data",
    request: RunRequest | None = None,
) -> RunRequest:
    """The request, changed by the options that are given; None leaves one as it is."""
    known = options_of(RunRequest)
    for option_name in options:
        if option_name not in known:
            raise TypeError(unknown("argument", option_name, known))
    given = {k: v for k, v in options.items() if v is not None}
    for field, value in given.items():
        if known[field].form.many and isinstance(value, list | dict) and not value:
            raise UsageError(f"{field} is empty: give at least one, or leave it out")
    names: tuple[str, ...] = ()
    if X is None:
        _refuse_without_data(y, queries, given)
    else:
        dataset = _dataset(X, y, queries, name, given)
        names = dataset.splits[0].columns
        given = {k: v for k, v in given.items() if k not in ("valid", "test", "split", "task")}
        given["data"] = (dataset,)
    chosen = tuple(_parameters(given.get("learners")))
    if chosen or "settings" in given:
        given["settings"] = (*chosen, *_settings(given.get("settings", ())))
    if "learners" in given:
        given["learners"] = _learners(given["learners"])
    if "costs" in given:
        given["costs"] = costs_of(given["costs"], names)
    if "caps" in given:
        with blaming("caps"):
            given["caps"] = as_caps(given["caps"])
    changed: dict[str, Any] = {
        k: tuple(map(_plain, _listed(v))) if known[k].form.many else _plain(v)
        for k, v in given.items()
    }
    return replace(request or RunRequest(), **changed)


def _refuse_without_data(y: Any, queries: Any, given: Mapping[str, Any]) -> None:
    for name, value in (("y", y), ("queries", queries)):
        if value is not None:
            raise UsageError(f"{name} is given without X: {name} belongs to data in memory")
    data = given.get("data", ())
    for value in [data, *(data if isinstance(data, tuple | list) else ())]:
        if hasattr(value, "shape"):
            kind = type(value).__name__
            raise UsageError(f"data: a {kind} is no name or file; data in memory is run(X, y)")
    for name in ("valid", "test", "split"):
        value = given.get(name, "")
        if not isinstance(value, str | Path):
            raise UsageError(f"{name} is a {type(value).__name__} without X: give X and y")


def _dataset(X: Any, y: Any, queries: Any, name: str, given: Mapping[str, Any]) -> InMemory:
    """The data in memory as a data set."""
    for field in _FILES:
        if _is_given(given.get(field)):
            raise UsageError(f"{field} means nothing beside X: leave one of the two out")
    if given.get("index_base", 1) != 1:
        raise UsageError("index_base means nothing beside X: it numbers features of SVMlight files")
    if not isinstance(name, str) or not name.isprintable() or not name.strip():
        raise UsageError(f"name must be a word for the data in results, not {name!r}")
    rows = {"y": y, "queries": queries, **{k: given.get(k) for k in ("valid", "test", "split")}}
    if not isinstance(X, Splits):
        parts = {k: v if _is_given(v) else None for k, v in rows.items()}
        return InMemory(name, *_folds(X, parts, given))
    for field in (*_ROWS, *_IN_SPLITS):
        if _is_given(rows.get(field, given.get(field))):
            raise UsageError(f"{field} means nothing beside Splits, which hold it")
    fault = shapes_fault(X)
    X = X if fault else X.complete()
    if fault := fault or labels_fault(X.task, X):
        raise InputError(f"X: {fault}; correct the Splits")
    return InMemory(name, X)


def _folds(X: Any, parts: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[Splits]:
    """The splits of data in memory by fold."""
    lists = {name: tuple(_listed(given.get(name, ()))) for name in ("drop", "groups", "share")}
    apart = [k for k in ("split", "valid", "test") if parts[k] is not None]
    divided = division(RunRequest(cv=given.get("cv", 0), share=lists["share"]), apart)
    folds, shares = divided.get("folds", 1), divided.get("shares", ())
    for fold in range(folds):
        division_of = {"drop": lists["drop"], "shares": shares, "turn": fold / folds}
        splits = array_splits(X, **parts, task=given.get("task", ""), **division_of)
        yield under_groups(splits, lists["groups"])


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, str | tuple | int) and not value)


def _listed(value: Any) -> Iterable[Any]:
    """A value that may stand for a list of one."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return value if several else (value,)


def _plain(value: Any) -> Any:
    """A value as a request holds it: numpy's whole numbers as Python's, paths as text."""
    if isinstance(value, Path):
        return str(value)
    return value.__index__() if hasattr(value, "__index__") else value


def _learners(given: Any) -> tuple[Any, ...]:
    listed = (given,) if is_learner(given) else tuple(_listed(given))
    for one in listed:
        if isinstance(one, type):
            raise UsageError(f"learners: {one.__name__} is a class; give {one.__name__}()")
    return listed


def _parameters(learners: Any) -> Iterator[GivenAs]:
    """Settings from a mapping of learners' names to parameters."""
    for name, table in learners.items() if isinstance(learners, Mapping) else ():
        if not isinstance(name, str) or not isinstance(table, Mapping):
            raise UsageError(
                f"learners: {name!r} is given {_brief(table)}; a mapping holds names "
                "and their parameters, as {'miser': {'trees': 300}}; instances go into a list"
            )
        for key, value in table.items():
            given = f"learners={{{name!r}: {{{key!r}: {_brief(value)}}}}}"
            yield GivenAs.of(f"{name}.{key}={_literal(value, key)}", given)


def _settings(given: Any) -> Iterable[Any]:
    """Settings as texts; a mapping of ``miser.trees`` to values is accepted."""
    if not isinstance(given, Mapping):
        return _listed(given)
    return [
        GivenAs.of(f"{key}={_literal(value, str(key))}", f"settings={{{key!r}: {_brief(value)}}}")
        for key, value in given.items()
    ]


def _brief(value: Any) -> str:
    return one_line(repr(value), 60)


def _literal(value: Any, key: str) -> str:
    """A Python value as a setting spells it."""
    if is_learner(value):
        raise UsageError(
            f"{key} is given an instance; give a name or a table, as {{'learner': 'gbrt'}}"
        )
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, range | set):
        value = sorted(value)
    return toml_literal(value)


def costs_of(given: Any, names: tuple[str, ...]) -> str | CostFile | CostModel:
    """Costs as a file's name, a cost model, or what a file would hold; ``names`` are the features',
    () where they are not known yet. UsageError for what can be no costs."""
    if given is None:
        return ""
    if isinstance(given, str | CostFile | CostModel):
        return given
    if isinstance(given, Path):
        return str(given)
    table: Any = given
    if hasattr(given, "to_dict") and getattr(given, "ndim", 0) == 1:  # a series
        table = given.tolist() if given.index.equals(_positions(given)) else given.to_dict()
    if isinstance(table, Mapping):
        table = {_feature(key, names): _number(value) for key, value in table.items()}
        whole = isinstance(table.get("costs"), Mapping | list) or isinstance(
            table.get("model"), str
        )
        return CostFile(Path("costs"), "", table if whole else {"costs": table})
    if isinstance(given, int | float) or np.ndim(table) != 1:
        raise UsageError(
            f"costs is a {type(given).__name__}; give a mapping of features to costs, one cost for "
            "each feature in order, a cost model or a file"
        )
    return CostFile(Path("costs"), "", {"costs": [_number(value) for value in table]})


def _positions(series: Any) -> Any:
    import pandas as pd

    return pd.RangeIndex(len(series))


def _feature(key: Any, names: tuple[str, ...]) -> str:
    """A feature's name; a whole number counts the columns of an array from 0."""
    by_number = isinstance(key, int | np.integer) and str(key) not in names
    return f"x{key}" if by_number and f"x{key}" in names else str(key)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
