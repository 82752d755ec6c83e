"""Hooks that a plugin may implement. Hooks are pure: they return classes or values.

A plugin is a module registered in the entry-point group ``bench``::

    [project.entry-points.bench]
    mine = "my_package.my_module"

Its functions are marked ``@bench_core.hookimpl``. Each hook is called once for all plugins, so
pluggy's ``tryfirst``, ``trylast``, blocking and tracing work. The two most common hooks need no
function:
``bench_learners = provide_learners(MyLearner)``, and ``provide_datasets``. Verbs are not hooks but
``click`` commands in a separate group. ``bench --help`` then reads their names from the installed
metadata, and ``bench VERB`` loads only that command::

    [project.entry-points."bench.commands"]
    my-verb = "my_package.my_module:command"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from bench_core.costs.model import CostModel
    from bench_core.protocols import (
        BudgetedLearner,
        ColumnsOf,
        Dataset,
        Export,
        Metric,
        Report,
        SectionOf,
        SuiteKey,
    )

hookspec = pluggy.HookspecMarker("bench")
hookimpl = pluggy.HookimplMarker("bench")


@hookspec
def bench_learners() -> Sequence[type[BudgetedLearner]]:  # type: ignore[empty-body]
    """Learner classes, each with a unique ``name``."""


@hookspec
def bench_datasets() -> Sequence[type[Dataset]]:  # type: ignore[empty-body]
    """Data-set classes, each with a unique ``name`` and no required constructor argument."""


@hookspec
def bench_metrics() -> Sequence[Metric]:  # type: ignore[empty-body]
    """Metric values; ``name@k`` families register one value per default cut-off."""


@hookspec
def bench_cost_models() -> Sequence[type[CostModel]]:  # type: ignore[empty-body]
    """Cost models, each with a unique ``name``, the value of ``model`` in a cost file."""


@hookspec
def bench_reports() -> Sequence[Report]:  # type: ignore[empty-body]
    """Formats of ``bench report``, each with a unique ``name`` and the suffixes of its files."""


@hookspec
def bench_report_sections() -> Mapping[str, SectionOf]:  # type: ignore[empty-body]
    """Sections of reports by name (``protocols.SectionOf``)."""


@hookspec
def bench_columns() -> Mapping[str, ColumnsOf]:  # type: ignore[empty-body]
    """Columns of boards, in every format, by name (``protocols.ColumnsOf``)."""


@hookspec
def bench_exports() -> Mapping[str, Export]:  # type: ignore[empty-body]
    """Formats of ``bench model export`` by name (``protocols.Export``)."""


@hookspec
def bench_suites() -> Sequence[Path]:  # type: ignore[empty-body]
    """Folders that hold suite files (``*.toml``)."""


@hookspec
def bench_suite_keys() -> Mapping[str, SuiteKey]:  # type: ignore[empty-body]
    """Top-level keys of suite files that the plugin defines, each with a function to check it."""


def provide_learners(
    *classes: type[BudgetedLearner], family: str = ""
) -> Callable[[], list[type[BudgetedLearner]]]:
    """Return the hook ``bench_learners`` that registers these classes, listed under ``family``."""
    for one in classes if family else ():
        one.family = family  # type: ignore[attr-defined]
    return hookimpl(lambda: list(classes))


def provide_datasets(*classes: type[Dataset]) -> Callable[[], list[type[Dataset]]]:
    """Return the hook ``bench_datasets`` that registers these classes."""
    return hookimpl(lambda: list(classes))
