"""The policy of docs/examples."""

import re
import sys

import pytest

from bench_core.results.store import Store

pytestmark = pytest.mark.slow


def test_a_policy_is_few_lines_beside_its_networks(root):
    text = (root / "docs" / "examples" / "torch_policy.py").read_text(encoding="utf-8")
    (policy,) = re.findall(r"^class Policy:\n(?:(?: .*)?\n)*", text, re.M)
    lines = len([line for line in policy.splitlines() if line.strip()])
    assert lines <= 25
    guide = (root / "docs/reference/plugins.md").read_text(encoding="utf-8")
    assert f"it takes {lines} lines" in guide


def test_the_policy_is_sound_and_learns(bench, root, monkeypatch):
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
