"""Staged models as arrays and JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench_core import Prices
from bench_models.staged.stages import Gate, Stage
from bench_models.states import nest, unnest


def stages_state(stages: Sequence[Stage]) -> dict[str, Any]:
    """S stages as arrays: sparse rows ``stages.start``, and one value per stage or entry."""
    sizes = [len(s.entries) for s in stages]
    return {
        "stages.start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "stages.entries": np.concatenate([s.entries for s in stages]).astype(np.int64),
        "stages.weights": np.concatenate([s.weights for s in stages]).astype(np.float64),
        "stages.outputs": np.concatenate([s.into for s in stages]).astype(np.int64),
        "stages.bias": np.array([s.bias for s in stages], dtype=np.float64),
        "stages.carry": np.array([s.carry for s in stages], dtype=np.bool_),
        "stages.value": np.array([s.gate.value for s in stages], dtype=np.float64),
        "stages.onward": np.array([(s.then, s.otherwise) for s in stages], dtype=np.int64),
        "gates": [s.gate.kind for s in stages],
    }


def stages_from(state: Mapping[str, Any]) -> list[Stage]:
    """The inverse of ``stages_state``."""
    start, onward = state["stages.start"], state["stages.onward"]
    stages = []
    for k, kind in enumerate(state["gates"]):
        own = slice(int(start[k]), int(start[k + 1]))
        stages.append(
            Stage(
                entries=state["stages.entries"][own],
                weights=state["stages.weights"][own],
                bias=state["stages.bias"][k],
                carry=bool(state["stages.carry"][k]),
                gate=Gate(str(kind), float(state["stages.value"][k])),
                then=int(onward[k, 0]),
                otherwise=int(onward[k, 1]),
                outputs=state["stages.outputs"][own],
            )
        )
    return stages


def prices_state(prices: Prices) -> dict[str, Any]:
    """Prices as arrays and JSON."""
    return nest("prices", prices.state())


def prices_from(state: Mapping[str, Any]) -> Prices:
    """The inverse of ``prices_state``."""
    return Prices.from_state(unnest("prices", state))
