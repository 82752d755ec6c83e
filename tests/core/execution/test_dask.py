"""A plan on the workers of a Dask cluster: real processes, really killed."""

import os
import random
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from helpers.kit import refused
from helpers.run_toys import TOYS, export
from helpers.toys import fits

import bench_core
from bench_core.execution import dask
from bench_core.results.store import Store

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # sockets of killed processes


@pytest.fixture
def cluster(home):
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(processes=True, **options) as made:
        yield made


def on(cluster, store, **more):
    where = f"dask={cluster.scheduler_address}"
    request = replace(TOYS, executor=where, **more)
    return bench_core.run(request=request, store=store, on_event=lambda event: None)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("dask=nowhere.at.all:cluster", "No module named|nowhere"),
        pytest.param("dask=tcp://127.0.0.1:9", "no scheduler there", marks=pytest.mark.slow),
    ],
)
def test_a_cluster_that_is_none_is_one_line(home, where, said):
    refused(said, bench_core.run, request=replace(TOYS, executor=where), progress=False)


@pytest.mark.slow
def test_a_cluster_gives_the_rows_of_one_process(home, cluster):
    bench_core.run(request=TOYS, store="whole.db", progress=False)
    trained = len(fits(home))
    result = on(cluster, "far.db")
    assert result.counts == {"ok": 6}
    assert len(fits(home)) == 2 * trained
    assert export("far.db").equals(export("whole.db"))
    assert Store("far.db").info().state == "finished"
    assert on(cluster, "far.db").reused == 6


@pytest.mark.slow
def test_failures_and_limits_are_rows_there_too(home, cluster):
    more = {"learners": ("toy-broken", "toy-prefix"), "timeout": 20.0}
    kinds = 'toy-broken.how=["raise", "crash", "hang"]'
    result = on(cluster, "far.db", settings=(kinds, "toy-prefix.tradeoff=1.0"), **more)
    assert result.counts == {"ok": 1, "failed": 1, "crashed": 1, "timeout": 1}


@pytest.mark.slow
def test_workers_of_other_code_are_refused_before_any_trial(home, cluster, monkeypatch):
    monkeypatch.setattr("bench_core.planning.job_files.__version__", "9")
    refused("planned by budget-bench 9|here is", on, cluster, "far.db")
    assert not fits(home)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_one_line_and_the_same_call_does_the_rest(home, cluster):
    def gone(event):
        if event.kind == "finish":
            cluster.close()

    where = replace(TOYS, executor=f"dask={cluster.scheduler_address}")
    words = "the scheduler is gone|same command"
    refused(words, bench_core.run, request=where, store="far.db", on_event=gone)
    assert bench_core.run(request=TOYS, store="far.db", progress=False).counts == {"ok": 6}


def faults(home, cluster, number, seed):
    """Kill random workers while runs go on; no finished trial is lost or doubled."""
    draw = random.Random(seed)
    bench_core.run(request=TOYS, store="whole.db", progress=False)
    whole, killed, run = export("whole.db"), 0, 0
    while killed < number:
        run += 1
        over = threading.Event()

        def harm(over=over):
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
def test_workers_may_be_killed_at_any_moment(home, cluster):
    assert faults(home, cluster, 5, seed=1) == 5


@pytest.mark.slow
def test_a_run_goes_to_a_cluster_that_a_module_of_the_current_folder_makes(home):
    options = "n_workers=1, threads_per_worker=1, dashboard_address=None"
    lines = ("from distributed import LocalCluster", "def cluster():")
    made = f"    return LocalCluster({options})"
    (home / "my_own_cluster.py").write_text("\n".join([*lines, made]))
    more = {"settings": ("toy-prefix.tradeoff=1.0",), "learners": ("toy-prefix",)}
    request = replace(TOYS, executor="dask=my_own_cluster:cluster", **more)
    result = bench_core.run(request=request, on_event=lambda event: None)
    assert result.counts == {"ok": 1}


MODULES = ("my_cluster", "my_package", "beside_it")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder that is not on Python's path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in MODULES]:
        del sys.modules[name]


def test_a_module_of_the_current_folder_holds_a_cluster_or_a_function_that_makes_one(here):
    (here / "beside_it.py").write_text("cores = 2")
    (here / "my_cluster.py").write_text(
        "import beside_it, sys\nsys.path.append('libs')\n"
        "cluster = f'{beside_it.cores} cores'\ndef make(): return cluster"
    )
    before = [*sys.path]
    assert dask.named("my_cluster:cluster") == "2 cores"
    assert dask.named("my_cluster:make") == "2 cores"
    assert sys.path == [*before, "libs"]  # what the module adds is kept


def test_what_lies_in_the_current_folder_hides_no_library(here, monkeypatch):
    (here / "colorsys.py").write_text("raise SystemExit('hidden')")
    (here / "my_cluster.py").write_text("import colorsys\ncluster = colorsys.ONE_THIRD")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert dask.named("my_cluster:cluster") == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import no_such_library", "(ModuleNotFoundError: No module"),
        ("def cluster(: pass", "(SyntaxError: "),
        ("clusters = 3", "has no attribute 'cluster'"),
        ("def cluster(): raise OSError('no partition')", "(OSError: no partition)"),
        (None, "(ModuleNotFoundError: No module named 'my_cluster')"),
    ],
)
def test_what_cannot_be_imported_is_one_true_line(here, text, line):
    if text is not None:
        (here / "my_cluster.py").write_text(text)
    words = f"executor='dask=my_cluster:cluster': |no cluster|{line}"
    refused(words, dask.named, "my_cluster:cluster")
