"""A program that is not its model is found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from bench_methods.gbrt import GBRT
from bench_models.staged import StagedModel

from bench_core import Task
from bench_core.conformance import ConformanceError, task_splits
from bench_core.conformance.programs import check_program
from bench_core.serving import Program

SPLITS = task_splits(Task.REGRESSION, 200)
LEARNER = GBRT(trees=5)


def test_a_program_that_is_the_model_passes() -> None:
    check_program(LEARNER, SPLITS)


def test_a_program_with_other_bills_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    own: Any = StagedModel.program

    def wrong(model: StagedModel, point: Mapping[str, int | float]) -> Program:
        program: Program = own(model, point)
        return replace(program, multiplier=program.multiplier * 2)

    monkeypatch.setattr(StagedModel, "program", wrong)
    with pytest.raises(ConformanceError, match=r"program\(.*other costs than predict_path, row 0"):
        check_program(LEARNER, SPLITS)
