"""The policy in PyTorch of docs/examples keeps every promise, where there is PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from helpers.commands import Run

from bench_core.results.store import Store


@pytest.mark.slow
def test_the_policy_is_sound_and_learns(
    bench: Run, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(root / "docs" / "examples"))
    sys.modules.pop("torch_policy", None)
    checked = bench("check", "-p", "torch_policy", "--set", "torch-policy.steps=30")
    assert checked.status == 0, checked.out
    run = ("run", "--data", "breast-cancer", "--executor", "inline", "--no-progress", "-p")
    ended = bench(*run, "torch_policy", "--learners", "torch-policy,constant", "--audit", "full")
    assert ended.status == 0, ended.err
    frame = Store("results/bench.db").frame("last")
    best = frame[frame["split"] == "test"].groupby("learner")["accuracy"].max()
    assert best["torch-policy"] > best["constant"] + 0.2
