"""Every learner on every data set at hand, each query and point replayed."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.every_learner_cases import LEARNERS, quick
from helpers.sampled_plugin import SAMPLED
from sklearn.datasets import load_svmlight_file

import bench_core
from bench_core import Examples, Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.publishers.fetch import is_there

TREES = 12
CAPS = (0.02, 0.1, 0.4)  # parts of the price of everything


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path


def every_trial(
    home: Path, task: Task, train: Examples, everything: float, **options: object
) -> pd.DataFrame:
    """The export of a fully audited run of all learners that take the task, also under caps, which
    no row exceeds: the largest cost of each split is exported."""
    names = sorted(name for name, cls in LEARNERS.items() if task in cls.tasks)
    learners = [quick(name, task, train, home, TREES) for name in names]
    caps = [part * (everything or 1.0) for part in CAPS]
    result = bench_core.run(
        caps=caps,
        learners=learners,
        audit="full",
        profile="quick",
        executor="inline",
        store="own.db",
        **options,
    )
    frame = result.frame()
    assert result.failures == ()
    assert set(frame["learner"]) == set(names)
    capped = frame.dropna(subset="cap")
    assert set(capped["learner"]) == set(names)
    assert (capped["cost_max"] <= capped["cap"]).all()
    assert set(capped["cap"]) == set(caps)
    return frame


def all_verified(frame: pd.DataFrame) -> None:
    wrong = frame[(frame["status"] != "ok") | (frame["audit"] != "verified")]
    assert wrong[["learner", "status", "audit", "error"]].drop_duplicates().empty, wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_every_audit_on_samples_is_verified(name: str, home: Path, real_data: Path) -> None:
    source = DataFolder(real_data)
    if not is_there(SAMPLED[name].full(), source):
        pytest.skip(f"{SAMPLED[name].files[0]} is not under {real_data}")
    splits = SAMPLED[name]().prepare(source, "quick", 0, 0).complete(SAMPLED[name].task)
    options = {"data": name, "plugins": "helpers.sampled_plugin", "data_dir": real_data}
    all_verified(every_trial(home, splits.task, splits.train, splits.prices.everything, **options))


@pytest.mark.slow
def test_every_audit_on_queries_is_verified(home: Path, real_data: Path) -> None:
    for file in (real_data / "ltr-lambdarank").glob("rank.*"):
        shutil.copy(file, home)
    X, y = load_svmlight_file(str(home / "rank.train"))
    train = Examples(X.toarray().astype(np.float32), y)
    options = {"data": "rank.train", "test": "rank.test"}
    all_verified(every_trial(home, Task.RANKING, train, float(X.shape[1]), **options))
