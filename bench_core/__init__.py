"""Budget Bench: a benchmark for machine learning under test-time budgets.

This module is the public surface: everything a plugin or a script may import. Names are loaded
on first use, so that ``import bench_core`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Acquired": "costs.bill",
    "BenchError": "errors",
    "Bill": "costs.bill",
    "BudgetedLearner": "protocols",
    "BudgetedModel": "protocols",
    "CostModel": "costs.model",
    "Dataset": "protocols",
    "DiscountGroup": "costs.model",
    "Download": "datasets.publishers.download",
    "Examples": "data",
    "Extractor": "costs.timing",
    "Facts": "datasets.publishers.fetch",
    "Features": "data",
    "FitContext": "protocols",
    "Frames": "data",
    "InputError": "errors",
    "Measured": "costs.timing",
    "Metric": "protocols",
    "MetricValues": "protocols",
    "Prediction": "costs.bill",
    "Prices": "costs.model",
    "Queries": "data",
    "SensorPrices": "costs.model",
    "Source": "protocols",
    "Splits": "splits",
    "Task": "data",
    "UsageError": "errors",
    "cost_document": "costs.timing",
    "find_class": "class_names",
    "hookimpl": "hookspecs",
    "measure": "costs.timing",
    "param": "parameters",
    "price_list": "costs.model",
    "read_costs": "costs.cost_file",
    "remember_class": "class_names",
    "run": "api",
}

__all__ = [*_HOMES, "__version__"]

if TYPE_CHECKING:
    from bench_core.api import run as run
    from bench_core.class_names import find_class as find_class
    from bench_core.class_names import remember_class as remember_class
    from bench_core.costs.bill import Acquired as Acquired
    from bench_core.costs.bill import Bill as Bill
    from bench_core.costs.bill import Prediction as Prediction
    from bench_core.costs.cost_file import read_costs as read_costs
    from bench_core.costs.model import CostModel as CostModel
    from bench_core.costs.model import DiscountGroup as DiscountGroup
    from bench_core.costs.model import Prices as Prices
    from bench_core.costs.model import SensorPrices as SensorPrices
    from bench_core.costs.model import price_list as price_list
    from bench_core.costs.timing import Extractor as Extractor
    from bench_core.costs.timing import Measured as Measured
    from bench_core.costs.timing import cost_document as cost_document
    from bench_core.costs.timing import measure as measure
    from bench_core.data import Examples as Examples
    from bench_core.data import Features as Features
    from bench_core.data import Frames as Frames
    from bench_core.data import Queries as Queries
    from bench_core.data import Task as Task
    from bench_core.datasets.publishers.download import Download as Download
    from bench_core.datasets.publishers.fetch import Facts as Facts
    from bench_core.errors import BenchError as BenchError
    from bench_core.errors import InputError as InputError
    from bench_core.errors import UsageError as UsageError
    from bench_core.hookspecs import hookimpl as hookimpl
    from bench_core.parameters import param as param
    from bench_core.protocols import BudgetedLearner as BudgetedLearner
    from bench_core.protocols import BudgetedModel as BudgetedModel
    from bench_core.protocols import Dataset as Dataset
    from bench_core.protocols import FitContext as FitContext
    from bench_core.protocols import Metric as Metric
    from bench_core.protocols import MetricValues as MetricValues
    from bench_core.protocols import Source as Source
    from bench_core.splits import Splits as Splits


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bench_core' has no attribute {name!r}")
    return getattr(import_module(f"bench_core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
