"""A gated pair as a program for serving: the gate's steps, then the cheap ones or those of f0."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from bench_core import Features, UsageError
from bench_core.serving import Exportable, Finish, Program, joined
from bench_methods.adapt.q_step import last_prediction

ROW_GATES = ("always", "score", "class")


def whole(model: Any, features: int) -> Program:
    """A model at the last point of its path. Raises UsageError where it cannot be served."""
    if not isinstance(model, Exportable):
        raise UsageError(f"adapt: its f0, a {type(model).__name__}, cannot be exported")
    nobody = Features(np.zeros((0, features), dtype=np.float32))
    program = model.program(last_prediction(model, nobody).point)
    if program.in_queries and any(step.gate not in ROW_GATES for step in program.steps):
        raise UsageError("adapt: its f0 compares the documents of a query; choose another f0")
    return replace(program, rejected="score" if program.rejected == "below" else program.rejected)


def calibrated(program: Program, slope: float, intercept: float) -> Program:
    """With answers on a line."""

    def line(finish: Finish | None) -> Finish:
        return (finish or Finish((0.0,) * program.outputs)).lined(slope, intercept)

    return replace(program, steps=[replace(s, finish=line(s.finish)) for s in program.steps])


def routed(gate: Program, threshold: float, kept: Program, f0: Program) -> Program:
    """Rows whose gate score is above the threshold go to f0, the others stay."""
    first = len(gate.steps)
    program = joined([gate, kept, f0])
    decides = replace(
        program.steps[first - 1],
        gate="score",
        value=float(np.nextafter(threshold, np.inf)),
        then=first + len(kept.steps),
        otherwise=first,
    )
    steps = [*program.steps[: first - 1], decides, *program.steps[first:]]
    return replace(program, steps=steps, nothing=kept.nothing)
