"""Defaults and checks for the protocols of ``protocols.py``.

Defaults are applied only here, on reading a plugin's class. The class is not modified.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from inspect import get_annotations, getattr_static, signature
from types import FunctionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np

from bench_core import protocols
from bench_core.costs.model import CostModel, SensorPrices, pays_by_row
from bench_core.data import Examples, Task
from bench_core.errors import UsageError
from bench_core.protocols import (
    CompleteDataset,
    CompleteLearner,
    CompleteMetric,
    CompleteModel,
    Metric,
    Report,
)
from bench_core.splits import SPLITS, Splits

CONTRACTS: dict[str, type] = {
    "bench_learners": CompleteLearner,
    "bench_datasets": CompleteDataset,
    "bench_metrics": Metric,
    "bench_cost_models": CostModel,
    "bench_reports": Report,
}
"""Protocol required of a hook's values."""

FIT = ("train", "valid", "prices", "context")
"""Arguments of a learner's ``fit``, in order."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")


class Complete:
    """Plugin's class or instance with the protocol's default for each missing member."""

    def __init__(self, value: Any, contract: type) -> None:
        self.value = value
        self._contract = contract

    def __getattr__(self, name: str) -> Any:
        if hasattr(self.value, name):  # own members come first
            return getattr(self.value, name)
        default = vars(self._contract).get(name, self)
        if name.startswith("_") or default is self:
            raise AttributeError(f"{type(self.value).__name__!r} has no attribute {name!r}")
        return default.__get__(self) if isinstance(default, FunctionType) else default


def _complete(contract: Any, value: Any) -> Any:
    return value if isinstance(value, Complete) else Complete(value, contract)


# classes, instances and models with defaults for missing members
learner_of: Callable[[Any], CompleteLearner] = partial(_complete, CompleteLearner)
dataset_of: Callable[[Any], CompleteDataset] = partial(_complete, CompleteDataset)
model_of: Callable[[Any], CompleteModel] = partial(_complete, CompleteModel)
metric_of: Callable[[Any], CompleteMetric] = partial(_complete, CompleteMetric)


def name_of(value: Any) -> str:
    """Name of an object, "" if it has none; the object need not come from a plugin."""
    return str(getattr(value, "name", ""))


def check_name(kind: str, name: str) -> None:
    """Raise UsageError for an invalid name of a plugin's object: names appear in reports, files and
    commands, and no two may look alike."""
    fault = ""
    if not _NAME.fullmatch(name.replace("@", "", kind == "metric")):
        fault = "a name is a letter or digit (ASCII), then at most 59 of these, '-', '_' and '.'"
    elif name == "all":
        fault = "this name means all of them"
    if fault:
        raise UsageError(f"{kind} {ascii(name)[:80]}: {fault}; rename it")


def check(value: Any, contract: type, where: str) -> None:
    """Check a plugin's object; TypeError or ValueError, which begins with ``where``, if invalid."""
    is_value = contract in (Metric, Report)
    if isinstance(value, type) == is_value:
        raise TypeError(f"{where}; expected {'an instance' if is_value else 'a class'} instead")
    cls: Any = value if isinstance(value, type) else type(value)
    # fields without a default appear only as annotations
    annotated = {name for c in cls.__mro__ for name in get_annotations(c)}
    needed = [name for name in _types(contract) if not hasattr(contract, name)]
    needed += sorted(getattr(contract, "__abstractmethods__", ()))
    lacks = [name for name in needed if not hasattr(value, name) and name not in annotated]
    if lacks:
        raise TypeError(f"{where}, which has no {', '.join(lacks)}")
    for name, kind in {"name": str, **_types(contract)}.items():
        given = getattr(value, name, vars(contract).get(name))
        if not isinstance(given, kind | property):
            raise TypeError(f"{where}, whose {name} is {given!r}, not {kind.__name__}")
    if not value.name:
        raise TypeError(f"{where}, whose name is empty")
    as_dataclass: Any = getattr(cls, "__dataclass_params__", None)
    if contract is CompleteLearner and as_dataclass and not as_dataclass.frozen:
        raise TypeError(f"{where}, a dataclass that is not frozen: write @dataclass(frozen=True)")
    if contract is CompleteLearner and isinstance(fit := getattr_static(cls, "fit"), FunctionType):
        try:
            signature(fit).bind("self", *FIT)
        except TypeError as error:
            raise TypeError(f"{where}, whose fit does not take {', '.join(FIT)}: {error}") from None
    if contract is CompleteDataset:
        signature(value).bind()  # TypeError if the constructor needs arguments
    elif hasattr(value, "tasks"):
        frozenset(map(Task, value.tasks))  # ValueError for an invalid task


def shapes_fault(splits: Any) -> str:
    """Error in the shapes of a data set's splits, or ""."""
    if not isinstance(splits, Splits):
        return f"prepare gives {_kind(splits)}, not Splits"
    parts = {name: getattr(splits, name) for name in SPLITS}
    d = 0  # features of the training rows
    for name, examples in parts.items():
        if not isinstance(examples, Examples):
            return f"{name} is {_kind(examples)}, not Examples"
        d = d or examples.X.shape[1]
        if not len(examples) or examples.X.shape[1] != d:
            return f"{name} has {examples.X.shape} cells, train {d} features"
    prices: Any = splits.prices
    if not isinstance(prices, SensorPrices) or not pays_by_row(prices):
        return f"prices are {_kind(prices)}, not SensorPrices; other costs are a cost_model"
    names = len(splits.feature_names)
    if prices.features != d or names not in (0, d):
        named = f", {names} names" if names else ""
        return f"prices or names are not for {d} features ({prices.features} prices{named})"
    return ""


def labels_fault(task: Task, splits: Splits) -> str:
    """Error in the labels for a data set's task, or ""; shapes must be valid."""
    if splits.task != task:
        return f"its task is {task}, but its splits have {splits.task}"
    parts, classes = [getattr(splits, name) for name in SPLITS], splits.classes
    if (task in (Task.BINARY, Task.MULTICLASS, Task.CHOICE)) != (classes >= 2):
        return f"{task} with {classes} classes"
    if {split.y.shape[1:] for split in parts} != {(classes,) if task == Task.CHOICE else ()}:
        return f"labels y of {task} have the shapes {[split.y.shape for split in parts]}"
    # a split may lack a class
    y = np.concatenate([split.y for split in parts])
    if y.dtype.kind not in "biuf":
        return f"labels y are {y.dtype}, not numbers"
    if task == Task.CHOICE:
        if not ((y >= 0) & (y <= 1)).all():
            return "the quality of an answer is from 0 to 1"
        lacking = [splits.class_names[k] for k in np.flatnonzero(splits.calls < 0)]
        if len(splits.class_names) != classes or lacking:
            which = (
                f"{lacking[0]!r} of the class_names" if lacking else "class_names of each source"
            )
            return f"{which} must be a feature, or begin one's name, which the call yields"
        return ""
    if not np.isfinite(y).all() or (classes and not np.isin(y, np.arange(classes)).all()):
        numbered = f": {classes} classes are numbered from 0" if classes else ""
        return f"labels {np.unique(y)[:5].tolist()} do not fit {task}{numbered}"
    if task == Task.RANKING and (y.min() < 0 or any(split.queries is None for split in parts)):
        return "ranking needs queries, and grades of at least 0"
    return ""


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


@cache
def _types(contract: type) -> dict[str, type]:
    """Types of a protocol's variables."""
    # ClassVar[frozenset[Task]] is checked as frozenset
    hints = get_type_hints(contract, {**vars(protocols), "ClassVar": ClassVar})
    kinds = {n: get_args(h)[0] if get_origin(h) is ClassVar else h for n, h in hints.items()}
    return {n: get_origin(kind) or kind for n, kind in kinds.items() if kind is not Any}
