"""What a learner remembers of one fit is of no use to it on other splits of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench_core
from bench_core.results.store import Store


def test_no_fit_remembers_rows_that_another_fold_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels are tosses of a coin, so that who gets more right than that knows them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    toss = np.random.default_rng(3).integers(0, 2, 600)
    rows = "".join(f"{i},{y}\n" for i, y in enumerate(toss))
    Path("rows.csv").write_text(f"a,y\n{rows}")
    result: Any = bench_core.run(
        data="rows.csv",
        task="binary",
        cv=3,
        folds=[0, 1, 2],
        plugins="canaries.remembering",
        learners={"remembers": {"again": [0, 1]}},
        metrics="accuracy",
        workers=1,
        isolate=False,
    )
    frame = result.frame()
    assert set(frame["audit"]) == {"sampled"}
    assert frame[frame["split"] == "test"]["accuracy"].max() < 0.65
    said = [a.output.split()[1] for a in Store().attempts() if "PROCESS" in a.output]
    assert (len(said), len({*said})) == (6, 3)  # one process for both settings on a fold
