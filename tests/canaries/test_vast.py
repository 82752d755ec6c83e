"""No learner takes the board from others by numbers that are too large for its statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bench_core
from canaries.vast import WAYS


def test_vast_costs_fail_their_trial_and_vast_scores_leave_a_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    result: Any = bench_core.run(
        data="dear-canary",
        plugins="canaries.vast",
        learners={"vast": {"how": [*WAYS]}, "constant": {}},
        metrics=["log_loss", "accuracy"],
        workers=2,
    )
    assert result.counts == {"ok": 3, "failed": 1}
    assert "charges a row 1e+300: costs are >= 0 and below 1e+15" in result.failures[0][2]
    frame = result.frame()
    vast = frame[(frame["split"] == "test") & frame["params"].str.contains("scores")]
    assert vast["log_loss"].min() > 1e290  # what is reported is what was scored
    board = result.board()
    assert {"vast", "constant"} <= {*board["learner"]}
    assert result.report(tmp_path / "board.html").stat().st_size > 10_000
