"""Plugin that registers the shipped cost models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from bench_core.costs.model import CostModel


@hookimpl
def bench_cost_models() -> Sequence[type[CostModel]]:
    """Sensor and per-query prices."""
    from bench_core.costs.shipped import MODELS

    return tuple(MODELS.values())
