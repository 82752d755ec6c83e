"""Arguments of ``bench_core.run``: their signature, and the resulting request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from bench_core._io.frames import pandas_of, rows_of
from bench_core.contracts import check, check_name, labels_fault, shapes_fault
from bench_core.costs.cost_file import CostFile, names_a_model, price_columns_of
from bench_core.costs.error_costs import error_columns, error_costs_text
from bench_core.costs.model import CostModel
from bench_core.datasets.pricing import by_transformer, under_groups
from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.transformers import transformer_splits
from bench_core.datasets.user_arrays import InMemory, array_splits, check_order
from bench_core.errors import InputError, UsageError, blaming, unknown
from bench_core.metrics.evaluation import families, given_metrics
from bench_core.option_fields import options_of, short
from bench_core.parameters import is_learner
from bench_core.planning.request import RunRequest, toml_literal
from bench_core.protocols import Metric
from bench_core.results.budgets import as_caps, as_share
from bench_core.splits import Splits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    Table: TypeAlias = ArrayLike | DataFrame | Mapping[str, ArrayLike]

Function = TypeVar("Function", bound=Callable[..., Any])
_MEANT = {
    "prices": "did you mean costs?",
    "random_state": "did you mean seeds?",
    "weights": "did you mean sample_weight?",
    "budget": "a budget is given to the result: result.best(60); a limit for rows as caps",
}
_APART = ("split", "valid", "test")
"""Options that accept data in memory, and names of files and columns."""

_OF_COSTS = ("unit", "encoding")
"""Table options that also apply to costs."""


def documented(function: Function) -> Function:
    """Add all options of a run to the signature and the docstring of a function of ``**options``,
    for ``help``."""
    options, declared = options_of(RunRequest), signature(function)
    names = {name: name for name in options}
    arguments = [p for p in declared.parameters.values() if p.kind is not p.VAR_KEYWORD]
    text = function.__doc__ or ""
    for name, option in options.items():
        arguments.append(Parameter(name, Parameter.KEYWORD_ONLY, default=option.default))
        about = fill(f"{option.help.format_map(names)} {option.python}", 88)
        text += f"{name} : default {option.default!r}\n{indent(about, ' ' * 8)}\n    "
    function.__doc__ = text
    vars(function)["__signature__"] = declared.replace(parameters=arguments)
    return function


def request_of(
    options: Mapping[str, Any],
    X: Any = None,
    y: Any = None,
    queries: Any = None,
    name: str = "data",
    request: RunRequest | None = None,
    transformer: Any = None,
    sample_weight: Any = None,
) -> RunRequest:
    """Return the request with the given options; None leaves an option unchanged."""
    request_options = options_of(RunRequest)
    fields = {k: v for k, v in options.items() if v is not None}
    for field in fields:
        if field not in request_options:
            known = [*request_options, "queries", "sample_weight", "transformer", "progress"]
            raise UsageError(unknown("argument", field, known, _MEANT.get(field, "")))
    if "positive" in fields:  # a label of any type
        fields["positive"] = str(_plain(fields["positive"]))
    for field, value in fields.items():
        if request_options[field].form.many and isinstance(value, list | dict) and not value:
            raise UsageError(f"{field} is empty: give at least one, or leave it out")
    if "groups" in fields:
        fields["groups"] = _groups(fields["groups"])
    if "error_costs" in fields:
        fields["error_costs"] = error_costs_text(fields["error_costs"])
    if X is not None:  # data in memory are a data set of one name
        folds = _splits(X, y, queries, fields, transformer, sample_weight)
        splits, fitted = zip(*folds, strict=True)
        fields = {field: fields[field] for field in fields if field not in (*_APART, "task")}
        if not isinstance(name, str) or not name.isprintable() or not name.strip():
            raise UsageError(f"name must be a word that names the data, not {name!r}")
        if transformer is not None and not splits[0].costs_assumed:
            fields.pop("costs")  # prices of the columns of X
        fields["data"] = InMemory(name, *splits, transformer=fitted[0])
    rows = {"y": y, "queries": queries, "sample_weight": sample_weight}
    for field, value in {**rows, "transformer": transformer}.items():
        if X is None and value is not None:
            raise UsageError(f"{field} is given without X, the features")
    for field in _APART if X is None else ():
        if not isinstance(fields.get(field, ""), str | Path):
            raise UsageError(f"{field} is given as data without X, the features; give X and y too")
    if "metrics" in fields:
        fields["metrics"] = [
            metric if isinstance(metric, str) else checked_metric(metric).name
            for metric in _listed(fields["metrics"])
        ]
    learners, settings = fields.get("learners"), fields.get("settings", ())
    texts: list[str] = []
    for owner, table in learners.items() if isinstance(learners, Mapping) else ():
        if not isinstance(owner, str) or not isinstance(table, Mapping):
            raise UsageError(
                f"learners: {owner!r} is given {short(table)}; a mapping holds names "
                "and their parameters, as {'miser': {'trees': 300}}; instances go into a list"
            )
        texts += _texts((f"{owner}.{key}", value) for key, value in table.items())
    texts += _texts(settings.items()) if isinstance(settings, Mapping) else _listed(settings)
    if texts:  # also from the mapping of learners
        fields["settings"] = texts
    if "costs" in fields:
        fields["costs"] = costs_of(fields["costs"])
    if "keep" in fields:
        fields["keep"] = as_share(fields["keep"])
    if "caps" in fields:
        with blaming("caps"):
            fields["caps"] = as_caps(fields["caps"])
    return replace(request or RunRequest(), **{k: _stored(k, v) for k, v in fields.items()})


def checked_metric(metric: Any) -> Metric:
    """Return a metric that is an object, checked and kept for this process by its name."""
    try:
        check(metric, Metric, f"metrics: {short(metric)} is given")
    except (TypeError, ValueError) as error:
        raise UsageError(f"{error}; 'bench new metric' writes one") from error
    if metric.name.partition("@")[0] in families():
        raise UsageError(f"metrics: {metric.name!r} is built in: rename yours")
    check_name("metric", metric.name)
    checked: Metric = metric
    given_metrics[checked.name] = checked
    return checked


def _splits(
    X: Any, y: Any, queries: Any, fields: Mapping[str, Any], transformer: Any, sample_weight: Any
) -> Iterator[tuple[Splits, Any]]:
    """Yield the splits of data in memory, one for each fold, and the fitted transformer."""
    rows = {"y": y, "queries": queries, "sample_weight": sample_weight}
    rows |= {name: fields.get(name) for name in _APART}
    values = {**fields, **rows, "transformer": transformer}
    values["index_base"] = fields.get("index_base", 1) != 1
    if isinstance(X, str | Path):
        raise UsageError(f"X is a file's name: give it as data={str(X)!r}")
    refused, whole = ["data", "suite", "label", "query", "index_base"], isinstance(X, Splits)
    if whole:
        of_tables = [name for name in options_of(TableOptions) if name not in _OF_COSTS]
        refused += [*rows, *of_tables, "transformer"]
    refused += [] if hasattr(X, "toarray") else ["unwritten"]  # of a sparse matrix
    for field in refused:
        if _is_given(values.get(field)):
            named = {} if whole else {"label": "y", "query": "queries"}
            value = repr(values[field]) if isinstance(values[field], str) else "..."
            hint = f": write {named[field]}={value}" if field in named else ""
            what = "Splits, which are divided and encoded already: change them" if whole else "X"
            raise UsageError(f"{field} cannot be used with {what}{hint}")
    if whole:
        fault = shapes_fault(X)
        X = X if fault else X.complete()
        if fault := fault or labels_fault(X.task, X):
            raise InputError(f"X: {fault}; correct the Splits")
        yield X, None
        return
    for field in ("y", "queries", "split", "sample_weight"):
        check_order(X, rows[field], field)
    costs = fields.get("costs")
    by_row = price_columns_of(costs_of(costs)) if _is_given(costs) else ()
    by_row += error_columns(fields.get("error_costs", ""))
    # an empty text means not given, as in the request
    rows = {name: value if _is_given(value) else None for name, value in rows.items()}
    options = TableOptions(
        **{k: _stored(k, v) for k, v in fields.items() if k in options_of(TableOptions)}
        | {"split": ""},
        prices_by_row=by_row,
    )
    options.check_division([name for name in _APART if rows[name] is not None])
    for fold in range(options.cv or 1):
        fitted = None
        if transformer is None:
            splits = array_splits(X, **rows, options=options, fold=fold)
            splits = by_transformer(splits, priced_names(fields.get("costs")))
        else:
            costs = costs_of(fields["costs"]) if "costs" in fields else None
            how: dict[str, Any] = {"options": options, "fold": fold, "costs": costs}
            splits, fitted = transformer_splits(transformer, X, **rows, **how)
            if not splits.costs_assumed and options.unit:
                splits = splits.in_unit(options.unit)
        yield under_groups(splits, options.groups), fitted


def _stored(name: str, value: Any) -> Any:
    """Return the value of an option as a request holds it."""
    many = options_of(RunRequest)[name].form.many
    return tuple(map(_plain, _listed(value))) if many else _plain(value)


def priced_names(costs: Any) -> list[str]:
    """Return the names in a mapping of costs or in the content of a cost file, and all texts in
    frames and lists, which may be names."""
    inner = costs.get("costs") if isinstance(costs, Mapping) else None
    table = costs if inner is None else inner
    table = [] if table is None or isinstance(table, str | Path) else _table_of(table)
    if not isinstance(table, list):
        return [*table] if isinstance(table, Mapping) else []
    rows = [[*row.values()] if isinstance(row, Mapping) else row for row in table]
    return [cell for row in rows if isinstance(row, list) for cell in row if isinstance(cell, str)]


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, str | tuple | int) and not value)


def _listed(value: Any) -> Iterable[Any]:
    """Return a list, or a single value as a list of one."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return value if several and not is_learner(value) else (value,)


def _groups(value: Any) -> tuple[str, ...]:
    """Return groups of columns as text, "a,b"; a group may also be a list of columns. Raises
    UsageError for one column, which shares its measurement with no other."""
    groups = tuple(",".join(map(str, _listed(group))) for group in _listed(value))
    alone = [group for group in groups if not set(group) & set(",:*")]
    if alone:
        ids = "" if isinstance(value, str | list | tuple) else "; ids of rows are queries"
        raise UsageError(
            f"groups: {alone[0]!r} is one column; a group is a text 'a,b' or a list of columns, "
            f"as groups=[['a', 'b']]{ids}"
        )
    return groups


def _plain(value: Any) -> Any:
    """Convert a value for a request or a cost file: numpy numbers to Python's, paths to text."""
    if isinstance(value, Path):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _texts(values: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """Yield the text of settings (``miser.trees=300``) from parameters and values."""
    for name, value in values:
        if is_learner(value):
            remedy = "give a name or a table, as {'learner': 'gbrt'}"
            raise UsageError(f"{name} cannot be an instance; {remedy}")
        value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        value = sorted(value) if isinstance(value, range | set) else value
        yield f"{name}={toml_literal(value)}"


def costs_of(costs: Any) -> str | CostFile | CostModel:
    """Return costs as a file's name, a cost model, or the content of a cost file. Raises UsageError
    for other values."""
    if isinstance(costs, str | CostFile | CostModel | Path):
        return str(costs) if isinstance(costs, Path) else costs
    table = _table_of(costs)
    # the content of a cost file, or its costs alone
    if isinstance(costs, Mapping):
        inner = _table_of(costs.get("costs"))
        if isinstance(inner, Mapping | list) or names_a_model(costs):
            return CostFile(Path("costs"), "", table | ({"costs": inner} if inner else {}))
    elif not isinstance(table, list) or not table:
        raise UsageError(
            f"costs is a {type(costs).__name__}; give a mapping of features to costs, one cost for "
            "each feature in order, a cost model or a file"
        )
    return CostFile(Path("costs"), "", {"costs": table})


def _table_of(value: Any) -> Any:
    """Return a frame or series as rows of cells with titles; other values as ``_listed_cells``."""
    value = pandas_of(value)
    value = value.to_frame() if hasattr(value, "to_frame") else value  # a series
    return rows_of(value) if hasattr(value, "columns") else _listed_cells(value)


def _listed_cells(value: Any) -> Any:
    """Return arrays and tuples as lists, also within a list, and numpy numbers as Python's."""
    if isinstance(value, np.ndarray):
        value = np.atleast_1d(np.squeeze(value))
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        return {str(key): _listed_cells(cell) for key, cell in value.items()}
    several = isinstance(value, list | tuple | range)
    return [*map(_listed_cells, value)] if several else _plain(value)
