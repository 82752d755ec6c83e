"""The values that describe a staged model: stages, gates and operating points; their state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bench_core.arrays import FloatArray, IntArray

END = -1  # as ``then`` or ``otherwise``: the row's way ends here
MOST_POINTS = 100
GATES = ("always", "score", "rank")

Rejected = Literal["score", "below"] | float
"""What a row scores whose way ended at a gate that did not let it pass."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Who passes: all (``always``), rows with score >= ``value`` (``score``), or rows ranked
    within the best ``value`` of their query (``rank``; without queries every row is the best).

    Ranks are among the rows of the query that reached the stage; ties share the better rank.
    """

    kind: str = "always"
    value: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in GATES or not np.isfinite(self.value):
            raise ValueError(f"gate must be one of {GATES} with a finite value, got {self}")


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One stage: ``weights`` (m,) over dictionary ``entries`` (m,), and where a row goes next.

    With T trees, entry e < T is tree e and entry e >= T is raw column e - T. Trees are summed
    first, then columns, each in the order given; a missing raw cell adds nothing. Entries of
    zero weight cost nothing. A tree adds to its own output.
    """

    entries: IntArray  # (m,)
    weights: FloatArray  # (m,)
    bias: FloatArray  # (K,)
    carry: bool = False  # on top of the score of the stage before
    gate: Gate = Gate()
    then: int = END  # the stage of rows that pass
    otherwise: int = END
    outputs: IntArray | None = None  # (m,) what a column adds to; None: output 0

    @property
    def into(self) -> IntArray:
        """The output each entry adds to, were it a column."""
        return np.zeros(len(self.entries), dtype=np.int64) if self.outputs is None else self.outputs

    @property
    def onward(self) -> set[int]:
        """The stages a row may go to."""
        return {self.then, self.otherwise if self.gate.kind != "always" else END} - {END}


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """An operating point: stages ``0..stage`` are evaluated, and rows end where they then are."""

    stage: int  # whose gate is not applied
    values: Mapping[str, int | float]  # ``Prediction.point``


def parents(stages: Sequence[Stage]) -> IntArray:
    """The stage that each stage is entered from, -1 for the first.

    Raises ValueError where one is entered from two stages, from none, or from a later one.
    """
    parent = np.full(len(stages), -1, dtype=np.int64)
    for k, stage in enumerate(stages):
        for onward in stage.onward:
            if not k < onward < len(stages) or parent[onward] >= 0:
                raise ValueError(f"stage {k} leads to stage {onward}, an earlier one or twice")
            parent[onward] = k
    lost = np.flatnonzero(parent[1:] < 0) + 1
    if len(lost):
        raise ValueError(f"no stage leads to stage {int(lost[0])}")
    return parent


def check(stages: Sequence[Stage], points: Sequence[Point], trees: int, features: int) -> None:
    """Raise ValueError where stages and points do not form a model."""
    if not stages:
        raise ValueError("a model needs at least one stage")
    parents(stages)
    outputs = len(stages[0].bias)
    for k, stage in enumerate(stages):
        entries, into = stage.entries, stage.into
        inside = (entries >= 0) & (entries < trees + features) if len(entries) else True
        shapes = {entries.shape, stage.weights.shape, into.shape}
        if stage.bias.shape != (outputs,) or len(shapes) > 1 or not np.all(inside):
            raise ValueError(
                f"stage {k}: entries, weights and bias do not fit {trees} trees, {features} "
                f"columns and {outputs} outputs"
            )
        if not (np.isfinite(stage.weights).all() and np.isfinite(stage.bias).all()):
            raise ValueError(f"stage {k}: a weight or bias is not finite")
        if stage.gate.kind != "always" and outputs != 1:
            raise ValueError(f"stage {k}: a gate needs one output, the model has {outputs}")
    ends = [p.stage for p in points]
    if not 1 <= len(ends) <= MOST_POINTS:
        raise ValueError(f"a path has 1 to {MOST_POINTS} points, got {len(ends)}")
    if sorted(set(ends)) != ends or ends[0] < 0 or ends[-1] != len(stages) - 1:
        raise ValueError(f"points must rise by stage and end with the last, got {ends}")


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
    inner = state["stages.start"][1:-1]
    split = (np.split(state[f"stages.{name}"], inner) for name in ("entries", "weights", "outputs"))
    plain = (state[f"stages.{name}"].tolist() for name in ("carry", "value", "onward"))
    return [
        Stage(entries, weights, bias, carry, Gate(kind, value), then, otherwise, outputs)
        for bias, kind, entries, weights, outputs, carry, value, (then, otherwise) in zip(
            state["stages.bias"], state["gates"], *split, *plain, strict=True
        )
    ]
