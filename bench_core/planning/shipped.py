"""Metrics, cost models, suites and exports of the core, registered by the hooks of plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import bench_core
from bench_core.hookspecs import hookimpl
from bench_core.metrics.evaluation import families, parse_metric
from bench_core.protocols import Metric

if TYPE_CHECKING:
    from bench_core.costs.model import CostModel
    from bench_core.protocols import Export
    from bench_core.serving import Folder

CUT_OFFS = (5, 10)


@hookimpl
def bench_metrics() -> Sequence[Metric]:
    """All families: with cut-offs 5 and 10, and without a cut-off if that is defined."""
    names = []
    for family, metric in families().items():
        if not metric.needs_cut_off:
            names.append(family)
        if "k" in metric.__dataclass_fields__:
            names.extend(f"{family}@{k}" for k in CUT_OFFS)
    return [parse_metric(name) for name in names]


@hookimpl
def bench_cost_models() -> Sequence[type[CostModel]]:
    """Sensor and per-query prices."""
    from bench_core.costs.shipped import MODELS

    return tuple(MODELS.values())


@hookimpl
def bench_suites() -> list[Path]:
    """Return the installed folder, or the checkout's folder for editable installs."""
    package = Path(bench_core.__file__).parent
    installed = package / "_suites"
    return [installed if installed.is_dir() else package.parent / "suites"]


@hookimpl
def bench_exports() -> Mapping[str, Export]:
    """The format ``folder``."""
    return {"folder": write_arrays}


def write_arrays(model: Folder, output: Path) -> None:
    """For Python: arrays and JSON, which bench_core.serving.load opens."""
    from bench_core.serving.folder import fill

    fill(output, model)
