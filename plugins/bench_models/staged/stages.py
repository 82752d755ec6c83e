"""The values that describe a staged model: stages and operating points, with their state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bench_core.arrays import FloatArray, IntArray

END = -1  # as ``then`` or ``otherwise``: the row's route ends here
MOST_POINTS = 100

Rejected = Literal["score", "below"] | float
"""The score of a row that ended below a bar."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """One stage: ``weights`` (m,) over dictionary ``entries`` (m,), and a row's next stage.

    With T trees, entry e < T is tree e and entry e >= T is column e - T, standardised by the
    model's ``scaling``. Trees are summed first, then columns, each in the order given. Entries of
    zero weight cost nothing. A tree adds to its own output, a column to the first.
    """

    entries: IntArray  # (m,)
    weights: FloatArray  # (m,)
    bias: FloatArray  # (K,)
    carry: bool = False  # on top of the previous stage's score
    bar: float | None = None  # the least score that passes; None: all rows pass
    then: int = END  # the stage of rows that pass
    otherwise: int = END

    @property
    def onward(self) -> set[int]:
        """The stages a row may go to."""
        return {self.then, END if self.bar is None else self.otherwise} - {END}


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """An operating point: stages ``0..stage`` are evaluated, and rows end where they are."""

    stage: int  # its gate is not applied
    values: Mapping[str, int | float]  # ``Prediction.point``


def parents(stages: Sequence[Stage]) -> IntArray:
    """The stage that each stage is entered from, -1 for the first.

    Raises ValueError where a stage is entered from two stages, from none, or from a later one.
    """
    parent = np.full(len(stages), -1, dtype=np.int64)
    for k, stage in enumerate(stages):
        for onward in stage.onward:
            if not k < onward < len(stages) or parent[onward] >= 0:
                raise ValueError(
                    f"stage {k} leads to stage {onward}, which is earlier or has another parent"
                )
            parent[onward] = k
    lost = np.flatnonzero(parent[1:] < 0) + 1
    if len(lost):
        raise ValueError(f"no stage leads to stage {int(lost[0])}")
    return parent


def stages_state(stages: Sequence[Stage]) -> dict[str, Any]:
    """S stages as arrays: sparse rows ``stages.start``, and one value per stage or entry."""
    sizes = [len(s.entries) for s in stages]
    return {
        "stages.start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "stages.entries": np.concatenate([s.entries for s in stages]).astype(np.int64),
        "stages.weights": np.concatenate([s.weights for s in stages]).astype(np.float64),
        "stages.bias": np.array([s.bias for s in stages], dtype=np.float64),
        "stages.carry": np.array([s.carry for s in stages], dtype=np.bool_),
        "stages.bar": np.array([s.bar for s in stages], dtype=np.float64),  # None: NaN
        "stages.onward": np.array([(s.then, s.otherwise) for s in stages], dtype=np.int64),
    }


def stages_from(state: Mapping[str, Any]) -> list[Stage]:
    """The inverse of ``stages_state``."""
    inner = state["stages.start"][1:-1]
    split = (np.split(state[f"stages.{name}"], inner) for name in ("entries", "weights"))
    plain = (state[f"stages.{name}"].tolist() for name in ("carry", "bar", "onward"))
    return [
        Stage(entries, weights, bias, carry, None if np.isnan(bar) else bar, then, otherwise)
        for bias, entries, weights, carry, bar, (then, otherwise) in zip(
            state["stages.bias"], *split, *plain, strict=True
        )
    ]
