"""Every hook a plugin may implement. Hooks are pure: they return classes or values.

A plugin is a module registered in the entry-point group ``bench``::

    [project.entry-points.bench]
    mine = "my_package.my_module"

whose functions are marked ``@bench_core.hookimpl``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from bench_core.costs.model import CostModel
    from bench_core.protocols import BudgetedLearner, Dataset, Metric

hookspec = pluggy.HookspecMarker("bench")
hookimpl = pluggy.HookimplMarker("bench")


@hookspec
def bench_learners() -> Sequence[type[BudgetedLearner]]:  # type: ignore[empty-body]
    """Learner classes, each with a unique ``name``."""


@hookspec
def bench_datasets() -> Sequence[type[Dataset]]:  # type: ignore[empty-body]
    """Data-set classes, each with a unique ``name`` and a constructor without arguments."""


@hookspec
def bench_metrics() -> Sequence[Metric]:  # type: ignore[empty-body]
    """Metric values; ``name@k`` families register a value per default cut-off."""


@hookspec
def bench_cost_models() -> Sequence[type[CostModel]]:  # type: ignore[empty-body]
    """Cost-model classes, each with a unique ``name``: key ``model`` of a cost file names one."""


@hookspec
def bench_suites() -> Sequence[Path]:  # type: ignore[empty-body]
    """Folders that hold suite files (``*.toml``)."""


@hookspec
def bench_warm_up(say: Callable[[str], None]) -> None:
    """Compile or load, before the first fit of one of the plugin's learners, what all fits need."""
