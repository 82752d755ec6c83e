"""Broken learners cost their own trials and no other, and the rows say how they ended."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import bench_core
from bench_core.results.store import Store
from canaries.hostile import FEW, FIT, MEMORY, PREDICT

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="guards and limits as tried here are Linux's"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, and a mark that all processes of this test have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOSTILE_MARK", secrets.token_hex(16))
    return tmp_path


def left_behind() -> list[int]:
    """Processes with the mark, apart from this one (which has it in ``os.environ`` alone)."""
    mark = os.environ["HOSTILE_MARK"].encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ended = (process / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            if mark in (process / "environ").read_bytes() and not ended:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def ends(ways: Iterable[str], later: bool, timeout: float) -> dict[str, tuple[str, str]]:
    """How each way of breaking ended, beside a learner that does not break."""
    result = bench_core.run(
        data="toy-binary",
        plugins=("helpers.toys", "canaries.hostile"),
        learners=["hostile", "toy-prefix"],
        settings=[
            f"hostile.how={[*ways]!r}",
            "hostile.tradeoff=1",
            f"hostile.later={str(later).lower()}",
            "toy-prefix.tradeoff=[0.1, 1.0]",
        ],
        timeout=timeout,
        memory=MEMORY,
        workers=2,
        audit="off",
    )
    frame = result.frame().drop_duplicates(["learner", "params"])
    assert set(frame.loc[frame["learner"] == "toy-prefix", "status"]) == {"ok"}
    broken = frame[frame["learner"] == "hostile"]
    names = [_way(params) for params in broken["params"]]
    return dict(zip(names, zip(broken["status"], broken["error"], strict=True), strict=True))


def _way(params: str) -> str:
    import json

    return str(json.loads(params)["how"])


def check(found: dict[str, tuple[str, str]], expected: dict[str, tuple[str, str]]) -> None:
    wrong = {
        name: (found.get(name), (status, text))
        for name, (status, text) in expected.items()
        if found.get(name, ("", ""))[0] != status or text not in (found[name][1] or "")
    }
    assert not wrong
    until = time.monotonic() + 60
    while left_behind() and time.monotonic() < until:
        time.sleep(0.1)
    assert not left_behind()


def test_a_handful_of_broken_learners_cost_their_own_trials_alone(home: Path) -> None:
    check(ends(FEW, False, 60), {name: FIT[name][1:] for name in FEW})
    assert max(len(attempt.trace) for attempt in Store().attempts()) < 50_000


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
def test_broken_learners_cost_their_own_trials_alone(home: Path, part: int) -> None:
    ways = [*FIT][part::5]
    check(ends(ways, False, 30), {name: FIT[name][1:] for name in ways})


@pytest.mark.slow
def test_models_that_break_later_cost_their_own_trials_alone(home: Path) -> None:
    check(ends(PREDICT, True, 30), PREDICT)


@pytest.mark.slow
def test_a_plugin_that_hangs_while_a_worker_imports_it_is_ended(home: Path) -> None:
    result: Any = bench_core.run(
        data="toy-binary",
        plugins=("helpers.toys", "canaries.hanging"),
        learners=["hanging", "toy-prefix"],
        settings=["hanging.tradeoff=1", "toy-prefix.tradeoff=1"],
        timeout=20,
    )
    assert result.counts == {"timeout": 1, "ok": 1}  # no rival imports it
    assert {status for _, status, _ in result.failures} == {"timeout"}
