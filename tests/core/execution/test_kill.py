"""Real processes, really killed; ``tests/durability/kills.py`` kills at random moments."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import click
import pytest
from helpers import run_toys
from helpers.run_toys import SETTINGS, export
from helpers.toys import fits

import bench_core
from bench_core.api import Interrupted
from bench_core.cli.run import following, run_command
from bench_core.planning.plan import Event
from bench_core.results.store import Store

SCRIPT = Path(run_toys.__file__)
FITS = 6  # four of toy-prefix, of which one carries the two of toy-stacked

COMMAND = (
    *(sys.executable, "-m", "bench_core", "run", "--data", "toy-rank", "--plugin", "helpers.toys"),
    *("--learners", "toy-prefix,toy-stacked", "--store", "c.db", "--no-progress"),
)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc"
)


def start(store, *words):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), store, *words],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def workers_of(parent):
    found = []
    for process in Path("/proc").glob("[0-9]*"):  # a longer pattern stumbles over one that ends
        with contextlib.suppress(OSError):
            text = (process / "cmdline").read_bytes().decode(errors="replace")
            state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
            if "bench_core.execution.executors" in text and f'"parent": {parent},' in text:
                found += [int(process.name)] if state != "Z" else []
    return found


def gone_after(parent, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not workers_of(parent):
            return True
        time.sleep(0.05)
    return not workers_of(parent)


def whole():
    """The rows of an undisturbed run."""
    run_toys.run("whole.db", executor="inline", on_event=lambda event: None)
    return export("whole.db")


def ends_as(undisturbed, store):
    with start(store) as process:
        process.communicate(timeout=300)
    assert process.returncode == 0
    assert export(store).equals(undisturbed)
    assert Store(store).info().state == "finished"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a child with its parent")
def test_workers_that_hold_the_interpreters_lock_go_with_their_parent(home):
    process = start("busy.db", "toy-busy")
    with process:
        for line in process.stdout:
            if line.startswith("start"):
                break
        time.sleep(0.5)
        assert workers_of(process.pid)
        process.kill()
    assert gone_after(process.pid, 30)


@needs_proc
def test_a_killed_run_shows_what_it_finished_and_ends_as_an_undisturbed_one(home):
    process = start("part.db")
    with process:
        scored = 0
        for line in process.stdout:
            scored += line.startswith("finish toy-prefix tradeoff=")
            if scored >= 5:  # five ends of fits and scores: at least one trial is whole
                process.kill()
                break
    assert gone_after(process.pid, 30)
    info = Store("part.db").info()
    assert info.state == "interrupted"
    assert info.planned == 6
    assert 1 <= sum(info.counts.values()) < 6
    assert set(Store("part.db").frame()["status"]) == {"ok"}
    ends_as(whole(), "part.db")


BROKEN = {"learners": ["toy-broken", "toy-prefix"], "settings": ["toy-prefix.tradeoff=1.0"]}


def run(**options):
    given = {"data": "toy-rank", "executor": "inline", "settings": SETTINGS, **options}
    return bench_core.run(
        plugins="helpers.toys", **{"learners": ["toy-prefix", "toy-stacked"], **given}
    )


def test_an_interrupted_run_goes_on_where_it_was(home):
    ended = []

    def interrupt(event):
        if event.kind == "finish":
            ended.append(event)
            if len(ended) == 5:
                raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        run(on_event=interrupt)
    kept = caught.value.result
    assert kept.exit_status == 130
    assert kept.counts == {"ok": sum(e.activity == "score" for e in ended)}
    assert Store().info().state == "interrupted"
    before = len(fits(home))
    result = run()
    assert result.run == kept.run
    assert result.counts == {"ok": 6}
    assert result.reused == kept.counts["ok"]
    assert before < FITS
    assert len(fits(home)) == FITS
    assert max(Counter(fits(home)).values()) == 1


def test_failures_are_tried_again_and_successes_are_not(home):
    for _ in range(2):
        run(**BROKEN)
    assert Counter(fits(home)) == {"toy-broken raise": 2, "toy-prefix 1": 1}


def test_a_model_whose_file_is_gone_is_fitted_again(home):
    run()
    for state in (home / "results" / "bench.fits").rglob("*.npz"):
        state.unlink()
    result = run(metrics=["ndcg@5", "precision@5", "ndcg@10"])
    assert result.counts == {"ok": 6}
    assert len(fits(home)) == 2 * FITS


@needs_proc
@pytest.mark.parametrize(
    ("send", "number"),
    [(os.kill, signal.SIGTERM), (os.killpg, signal.SIGINT)],
)
def test_interruptions_end_the_command_with_130_and_leave_no_process(home, send, number):
    process = subprocess.Popen(
        [*COMMAND, *(word for text in SETTINGS for word in ("--set", text))],
        env=os.environ | {"PYTHONPATH": str(SCRIPT.parents[1])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        until = time.monotonic() + 60
        while not fits(home) and time.monotonic() < until:
            time.sleep(0.05)
        send(process.pid, number)
        said = process.communicate(timeout=120)[1]
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert "Traceback" not in said
    assert gone_after(process.pid, 30)
    assert Store("c.db").info().state == "interrupted"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_is_lost_in_a_callback_ends_the_command_at_the_next_event(number):
    @ctypes.CFUNCTYPE(None)
    def callback():  # an exception cannot leave it
        os.kill(os.getpid(), number)
        time.sleep(0.1)

    handler = signal.getsignal(number)
    with click.Context(run_command), following() as show:
        callback()
        with pytest.raises(KeyboardInterrupt):
            show(Event("note", "the next job"))
    assert signal.getsignal(number) == handler


def test_what_fails_is_tried_as_often_as_asked_and_every_attempt_is_kept(home):
    events = []
    result = run(**BROKEN, retries=2, on_event=events.append)
    assert Counter(fits(home)) == {"toy-broken raise": 3, "toy-prefix 1": 1}
    assert result.counts == {"ok": 1, "failed": 1}
    tried = [a for a in Store().attempts() if a.title.startswith("toy-broken")]
    assert [(a.kind, a.status, a.attempt) for a in tried] == [
        ("fit", "failed", 1), ("fit", "failed", 2), ("fit", "failed", 3), ("score", "failed", 1)
    ]  # fmt: skip
    assert all("Linux" in a.machine or a.machine for a in tried)
    assert events[-1].jobs_done == events[-1].jobs_total == 4
