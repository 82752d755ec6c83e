"""A plan on the workers of a Dask cluster: real processes, really killed."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from helpers.run_toys import SETTINGS
from helpers.toys import fits

import bench_core
from bench_core import InputError, UsageError
from bench_core.execution import dask
from bench_core.planning.request import RunRequest
from bench_core.results.store import Store

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # sockets of killed processes

TIMED = ["fit_seconds", "predict_seconds", "peak_rss_mb", "machine", "created_at"]
CORES = ["threads", "workers"]
TOYS = RunRequest(
    data=("toy-rank",),
    learners=("toy-prefix", "toy-stacked"),
    settings=SETTINGS,
    plugins=("helpers.toys",),
)


def export(store: str) -> pd.DataFrame:
    return Store(store).frame().drop(columns=TIMED + CORES)


@pytest.fixture
def cluster(home: Path) -> Iterator[Any]:
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as made:
        yield made


def on(cluster: Any, store: str, **more: Any) -> Any:
    where = f"dask={cluster.scheduler_address}"
    request = replace(TOYS, executor=where, **more)
    return bench_core.run(request=request, store=store, on_event=lambda event: None)


def test_a_shard_survives_packing(tmp_path: Path) -> None:
    dask.unpack(dask.pack(tmp_path / "none.db"), tmp_path)
    assert not [*tmp_path.iterdir()]
    (tmp_path / "1.db").write_bytes(b"rows")
    (tmp_path / "1.fits" / "ab").mkdir(parents=True)
    (tmp_path / "1.fits" / "ab" / "abc.npz").write_bytes(b"model")
    given = dask.pack(tmp_path / "1.db")
    (tmp_path / "1.fits" / "cd").mkdir()
    (tmp_path / "1.fits" / "cd" / "cde.npz").write_bytes(b"new")
    dask.unpack(dask.pack(tmp_path / "1.db", given), tmp_path / "back")
    assert [path.name for path in (tmp_path / "back").rglob("*.npz")] == ["cde.npz"]
    dask.unpack(dask.pack(tmp_path / "1.db"), tmp_path / "again")
    assert (tmp_path / "again" / "1.db").read_bytes() == b"rows"
    assert (tmp_path / "again" / "1.fits" / "ab" / "abc.npz").read_bytes() == b"model"


@pytest.mark.parametrize(
    ("where", "error", "said"),
    [
        ("dask=nowhere.at.all:cluster", InputError, "No module named .nowhere."),
        ("dask=tcp://127.0.0.1:9", InputError, "no scheduler there"),
        ("desk", UsageError, "is not local, inline, dask"),
    ],
)
def test_a_cluster_that_is_none_is_one_line(
    home: Path, where: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        bench_core.run(request=replace(TOYS, executor=where), progress=False)


@pytest.mark.slow
def test_a_cluster_gives_the_rows_of_one_process(home: Path, cluster: Any) -> None:
    bench_core.run(request=TOYS, store="whole.db", progress=False)
    trained = len(fits(home))
    result = on(cluster, "far.db")
    assert result.counts == {"ok": 6}
    assert len(fits(home)) == 2 * trained
    assert export("far.db").equals(export("whole.db"))
    assert Store("far.db").info().state == "finished"
    assert on(cluster, "far.db").reused == 6


@pytest.mark.slow
def test_failures_and_limits_are_rows_there_too(home: Path, cluster: Any) -> None:
    more = {"learners": ("toy-broken", "toy-prefix"), "timeout": 20.0}
    kinds = 'toy-broken.how=["raise", "crash", "hang"]'
    result = on(cluster, "far.db", settings=(kinds, "toy-prefix.tradeoff=1.0"), **more)
    assert result.counts == {"ok": 1, "failed": 1, "crashed": 1, "timeout": 1}


@pytest.mark.slow
def test_workers_of_other_code_are_refused_before_any_trial(
    home: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_core.planning.job_files.__version__", "9")
    with pytest.raises(InputError, match=r"planned by budget-bench 9 .* here is"):
        on(cluster, "far.db")
    assert not fits(home)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_one_line_and_the_same_call_does_the_rest(
    home: Path, cluster: Any
) -> None:
    def gone(event: Any) -> None:
        if event.kind == "finish":
            cluster.close()

    where = replace(TOYS, executor=f"dask={cluster.scheduler_address}")
    with pytest.raises(InputError, match="the scheduler is gone; the same command does the rest"):
        bench_core.run(request=where, store="far.db", on_event=gone)
    assert bench_core.run(request=TOYS, store="far.db", progress=False).counts == {"ok": 6}


def faults(home: Path, cluster: Any, number: int, seed: int) -> int:
    """Kill random workers while runs go on; no finished trial is lost or doubled."""
    draw = random.Random(seed)
    bench_core.run(request=TOYS, store="whole.db", progress=False)
    whole, killed, run = export("whole.db"), 0, 0
    while killed < number:
        run += 1
        over = threading.Event()

        def harm(over: threading.Event = over) -> None:
            """Kill a worker at a random moment after each fit that began."""
            nonlocal killed
            seen = len(fits(home))
            while not over.wait(draw.uniform(0, 0.5)) and killed < number:
                if len(fits(home)) > seen:
                    seen = len(fits(home))
                    alive = [w for w in cluster.workers.values() if w.status.name == "running"]
                    with suppress(ProcessLookupError, TypeError, IndexError):  # it is starting
                        os.kill(draw.choice(alive).pid, signal.SIGKILL)
                        killed += 1

        thread = threading.Thread(target=harm)
        thread.start()
        try:
            result = on(cluster, f"far{run}.db", retries=20)
        finally:
            over.set()
            thread.join()
        assert result.counts == {"ok": 6}
        assert export(f"far{run}.db").equals(whole)
        for attempt in Store(f"far{run}.db").attempts():
            assert attempt.machine.startswith(f"{socket.gethostname()}: ")
            assert attempt.seconds > 0
    return killed


@pytest.mark.slow
def test_workers_may_be_killed_at_any_moment(home: Path, cluster: Any) -> None:
    assert faults(home, cluster, 5, seed=1) == 5


@pytest.mark.slow
def test_a_run_goes_to_a_cluster_that_a_module_of_the_current_folder_makes(home: Path) -> None:
    options = "n_workers=1, threads_per_worker=1, dashboard_address=None"
    lines = ("from distributed import LocalCluster", "def cluster():")
    made = f"    return LocalCluster({options})"
    (home / "my_own_cluster.py").write_text("\n".join([*lines, made]))
    more = {"settings": ("toy-prefix.tradeoff=1.0",), "learners": ("toy-prefix",)}
    request = replace(TOYS, executor="dask=my_own_cluster:cluster", **more)
    result = bench_core.run(request=request, on_event=lambda event: None)
    assert result.counts == {"ok": 1}
