"""Budget Bench: a benchmark for machine learning under test-time budgets.

This module is the public surface: everything a plugin or a script may import. Names are loaded
on first use, so that ``import bench_core`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Acquired": "prediction",
    "BenchError": "errors",
    "Bill": "prediction",
    "BudgetedLearner": "protocols",
    "BudgetedModel": "protocols",
    "CostModel": "protocols",
    "Dataset": "protocols",
    "DiscountGroup": "costs",
    "Examples": "data",
    "Features": "data",
    "FitContext": "protocols",
    "InputError": "errors",
    "Metric": "protocols",
    "MetricValues": "protocols",
    "Prediction": "prediction",
    "Prices": "costs",
    "Queries": "data",
    "Source": "protocols",
    "Splits": "data",
    "Task": "data",
    "UsageError": "errors",
    "hookimpl": "hookspecs",
    "param": "parameters",
    "price_list": "costs",
    "run": "api",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604 - the names are loaded lazily

if TYPE_CHECKING:
    from bench_core.api import run
    from bench_core.costs import DiscountGroup, Prices, price_list
    from bench_core.data import Examples, Features, Queries, Splits, Task
    from bench_core.errors import BenchError, InputError, UsageError
    from bench_core.hookspecs import hookimpl
    from bench_core.parameters import param
    from bench_core.prediction import Acquired, Bill, Prediction
    from bench_core.protocols import (
        BudgetedLearner,
        BudgetedModel,
        CostModel,
        Dataset,
        FitContext,
        Metric,
        MetricValues,
        Source,
    )


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bench_core' has no attribute {name!r}")
    return getattr(import_module(f"bench_core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
