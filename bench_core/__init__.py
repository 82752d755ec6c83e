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
    "Download": "formats.download",
    "Examples": "data",
    "Extractor": "measuring",
    "Facts": "formats.facts",
    "Features": "data",
    "FitContext": "protocols",
    "Frames": "data",
    "InputError": "errors",
    "Measured": "measuring",
    "Metric": "protocols",
    "MetricValues": "protocols",
    "Prediction": "prediction",
    "Prices": "costs",
    "Queries": "data",
    "Source": "protocols",
    "Splits": "data",
    "Task": "data",
    "UsageError": "errors",
    "cost_document": "measuring",
    "find_class": "references",
    "hookimpl": "hookspecs",
    "measure": "measuring",
    "param": "parameters",
    "price_list": "costs",
    "remember_class": "references",
    "run": "api",
}

__all__ = [*_HOMES, "__version__"]

if TYPE_CHECKING:
    from bench_core.api import run as run
    from bench_core.costs import DiscountGroup as DiscountGroup
    from bench_core.costs import Prices as Prices
    from bench_core.costs import price_list as price_list
    from bench_core.data import Examples as Examples
    from bench_core.data import Features as Features
    from bench_core.data import Frames as Frames
    from bench_core.data import Queries as Queries
    from bench_core.data import Splits as Splits
    from bench_core.data import Task as Task
    from bench_core.errors import BenchError as BenchError
    from bench_core.errors import InputError as InputError
    from bench_core.errors import UsageError as UsageError
    from bench_core.formats.download import Download as Download
    from bench_core.formats.facts import Facts as Facts
    from bench_core.hookspecs import hookimpl as hookimpl
    from bench_core.measuring import Extractor as Extractor
    from bench_core.measuring import Measured as Measured
    from bench_core.measuring import cost_document as cost_document
    from bench_core.measuring import measure as measure
    from bench_core.parameters import param as param
    from bench_core.prediction import Acquired as Acquired
    from bench_core.prediction import Bill as Bill
    from bench_core.prediction import Prediction as Prediction
    from bench_core.protocols import BudgetedLearner as BudgetedLearner
    from bench_core.protocols import BudgetedModel as BudgetedModel
    from bench_core.protocols import CostModel as CostModel
    from bench_core.protocols import Dataset as Dataset
    from bench_core.protocols import FitContext as FitContext
    from bench_core.protocols import Metric as Metric
    from bench_core.protocols import MetricValues as MetricValues
    from bench_core.protocols import Source as Source
    from bench_core.references import find_class as find_class
    from bench_core.references import remember_class as remember_class


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bench_core' has no attribute {name!r}")
    return getattr(import_module(f"bench_core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
