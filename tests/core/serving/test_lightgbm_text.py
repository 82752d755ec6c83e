"""Sums of trees as LightGBM's text: LightGBM reads it and gives the same scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.program_cases import PROGRAMS, X, folder_of

from bench_core import UsageError
from bench_core.serving import Finish, Predictor
from bench_core.serving.lightgbm_text import text


@pytest.mark.parametrize(("name", "task"), [("chain", "binary"), ("outputs", "multiclass")])
def test_lightgbm_gives_the_same_scores(name: str, task: str) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    folder = replace(folder_of(PROGRAMS[name]), about={"task": task})
    booster = lightgbm.Booster(model_str=text(folder))
    model = Predictor(folder)
    assert booster.num_feature() == len(folder.names)
    raw = booster.predict(X, raw_score=True, num_threads=1)
    assert np.allclose(raw, model.predict_rows(X).scores, rtol=1e-12, atol=1e-12)
    shares = booster.predict(X, num_threads=1)
    own = model.predict_proba(X)
    assert np.allclose(shares, own[:, 1] if task == "binary" else own, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "why"),
    [("gated", "it has gates"), ("vectors", "averaged"), ("support", "it has columns")],
)
def test_what_is_no_sum_of_trees_is_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        text(folder_of(PROGRAMS[name]))


def test_a_link_is_refused() -> None:
    program = PROGRAMS["chain"]
    last = replace(program.steps[-1], finish=Finish((0.0,), link="exp"))
    with pytest.raises(UsageError, match="passes a link"):
        text(folder_of(replace(program, steps=[*program.steps[:-1], last])))
