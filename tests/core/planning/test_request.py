"""The options of a run: what is refused, and how many workers and threads they mean."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_core import UsageError
from bench_core.api import plan
from bench_core.planning.request import RunRequest, cores_for


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"seeds": (3, 2**32)}, "--seeds: 4294967296 is not a whole number from 0 to 4294967295"),
        ({"seeds": (-1,)}, "--seeds: -1 is not a whole number"),
        ({"folds": (-1,)}, "--folds: -1 is not a whole number"),
        ({"index_base": 2}, "--index-base: 2 is not a whole number from 0 to 1"),
        ({"index_base": -1}, "--index-base: -1 is not a whole number from 0 to 1"),
        ({"workers": -1}, "--workers: -1 is not a whole number >= 1"),
        ({"timeout": -0.5}, "--timeout: -0.5 is not a duration, such as 90s"),
        ({"memory": float("nan")}, "--memory: nan is not an amount of memory"),
    ],
)
def test_what_is_out_of_its_range_is_refused(options: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError) as caught:
        RunRequest(**options)
    assert str(caught.value).startswith(line)


@pytest.mark.parametrize(
    ("options", "jobs", "workers", "threads"),
    [
        ({}, 100, 8, 1),
        ({}, 3, 3, 2),
        ({}, 1, 1, 8),
        ({}, 0, 1, 8),  # everything is finished
        ({"threads": 3}, 100, 2, 3),
        ({"threads": 9}, 100, 1, 9),
        ({"workers": 5}, 100, 5, 1),
        ({"workers": 5}, 1, 5, 1),
        ({"workers": 20}, 100, 20, 1),
        ({"workers": 2, "threads": 7}, 100, 2, 7),
        ({"executor": "inline"}, 100, 1, 8),
        ({"executor": "inline", "threads": 2, "workers": 4}, 100, 1, 2),
    ],
)
def test_eight_cores_are_shared_by_workers_and_their_threads(
    options: dict[str, Any], jobs: int, workers: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = {0: set(range(8))}  # those of the process itself, which has the number 0
    monkeypatch.setattr(os, "sched_getaffinity", allowed.__getitem__, raising=False)
    assert cores_for(RunRequest(**options), jobs) == (workers, threads)


def test_features_of_a_ranking_file_count_from_1_unless_said_otherwise(home: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.integers(3)} qid:{q} 1:{rng.normal():.3f} 2:{rng.normal():.3f}"
        for q in range(40)
        for _ in range(4)
    ]
    (home / "train.svm").write_text("\n".join(rows) + "\n")
    assert plan(data="train.svm", learners="gbrt").datasets[0].features == 2
    assert plan(data="train.svm", learners="gbrt", index_base=0).datasets[0].features == 3
