"""A large run is read, and its boards are made, by two processes as by one."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import large_store
import pandas as pd
import pytest

from bench_core._io import second_process
from bench_core.leaderboard import assembly
from bench_core.leaderboard.board import Board
from bench_core.leaderboard.certainty import all_certified
from bench_core.results import store as store_module
from bench_core.results.store import Store
from bench_core.results.writer import open_writer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux")
TRIALS = 400


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "large.db"
    large_store.write(path, TRIALS)
    return path


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], list[int]]:
    """Let runs of so few trials be shared or not; the list has a copy's end status for each."""
    monkeypatch.setattr(store_module, "_IN_PART", 37)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    wait = os.waitpid

    def between(shared: bool) -> list[int]:
        ended: list[int] = []

        def waited(process: int, options: int) -> tuple[int, int]:
            found = wait(process, options)
            ended.append(found[1])
            return found

        many = 10 if shared else TRIALS + 1
        monkeypatch.setattr(store_module, "MANY", many)
        monkeypatch.setattr(assembly, "MANY", many)
        monkeypatch.setattr(second_process.os, "waitpid", waited)
        return ended

    return between


def read(path: Path) -> tuple[pd.DataFrame, list[Board]]:
    store = Store(path)
    with store.held():
        frame = store.frame(compact=True)
        return frame, all_certified(store.info(), store, frame)


def test_frame_and_boards_are_the_same(path: Path, copies: Callable[[bool], list[int]]) -> None:
    none = copies(False)
    frame, boards = read(path)
    ended = copies(True)
    again, shared = read(path)
    pd.testing.assert_frame_equal(again, frame, check_exact=True)
    assert len(boards) == large_store.DATASETS
    assert repr(shared) == repr(boards)
    assert not none
    assert ended == [0, 0]  # of the frame and of the boards


def test_where_a_run_goes_on_one_process_reads(
    path: Path, copies: Callable[[bool], list[int]]
) -> None:
    ended = copies(True)
    with open_writer(path):
        frame, _ = read(path)
    assert len(frame) == 2 * large_store.POINTS * TRIALS
    assert len(ended) == 2
    assert all(ended)
