"""Programs of fitted models: at a point, of a path under a cap, and with calibrated answers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bench_core.data import Features
from bench_core.errors import UsageError
from bench_core.metrics.calibration import Calibration
from bench_core.sequential import StoredPolicy
from bench_core.serving.policy_program import PolicyProgram, ServedProgram
from bench_core.serving.program import Exportable, Finish, Program, Stop, compact, in_sequence


def capped_program(model: Any, learner: str, features: int) -> ServedProgram:
    """Return a program for serving under a cap: as in ``execution.caps``, a row follows all points
    of the path."""
    nobody = Features(np.zeros((0, features), dtype=np.float32))
    left = [dict(prediction.point) for prediction in model.predict_path(nobody)]
    parts = list[Program]()
    while left:  # a program may stop at earlier points; what remains precedes it
        program = program_of(model, learner, left[-1])
        if not isinstance(program, Program):
            return program
        end = len(program.steps) - 1
        stops = [s for s in program.stops if s.step < end and dict(s.point) in left]
        parts.insert(0, replace(program, stops=[*stops, Stop(end, left[-1])]))
        passed = [dict(stop.point) for stop in parts[0].stops]
        left = [point for point in left if point not in passed]
    return in_sequence(parts)


def program_of(model: Any, learner: str, point: Mapping[str, int | float]) -> ServedProgram:
    """Return the program of a fitted model at a point. Raises UsageError if it has none."""
    if not isinstance(model, Exportable):
        raise UsageError(
            f"{learner}: its model, {type(model).__name__}, has no 'program' and cannot be "
            "exported; docs/guide/serving.md shows how to add it"
        )
    program: ServedProgram = model.program(point)
    return compact(program) if isinstance(program, Program) else program


def calibrated_program(
    program: ServedProgram, calibration: Calibration, capped: bool
) -> ServedProgram:
    """Return a program that calibrates its answers; if ``capped``, also without a purchase."""
    slope, base = calibration.slope, np.array(calibration.base)
    if isinstance(program, StoredPolicy):
        return replace(program, slope=slope, base=tuple(base.tolist()))
    if isinstance(program, PolicyProgram):  # the last step answers
        *values, answer = program.scores.steps
        bias = answer.bias.copy()
        bias[: len(base)] = slope * (bias[: len(base)] + base)
        answer = replace(answer, weights=slope * answer.weights, bias=bias)
        return replace(program, scores=replace(program.scores, steps=[*values, answer]))
    line = Finish(calibration.base, slope=slope)
    finishes = [step.finish.followed(line) if step.finish else line for step in program.steps]
    steps = [replace(s, finish=f) for s, f in zip(program.steps, finishes, strict=True)]
    nothing = program.nothing
    if capped and nothing is not None:
        nothing = slope * (base + nothing)
    return replace(program, steps=steps, nothing=nothing)
