"""What the client of a cluster does with tasks that end in every way, without a cluster."""

from __future__ import annotations

import sqlite3
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.toys import fits

from bench_core import InputError, api
from bench_core.execution import dask
from bench_core.execution.events import silent
from bench_core.execution.work import work
from bench_core.planning.job_files import parse_job
from bench_core.planning.plan import about_run
from bench_core.planning.request import RunRequest
from bench_core.planning.steps import Steps
from bench_core.results.records import Attempt
from bench_core.results.store import Store
from bench_core.results.writer import open_writer

TOYS = RunRequest(
    data=("toy-rank",),
    learners=("toy-prefix", "toy-stacked"),
    settings=("toy-prefix.tradeoff=[0.0, 0.5]", "toy-stacked.shrink=[0.5, 0.25]"),
    plugins=("helpers.toys",),
    executor="inline",
    retries=1,
)


@dataclass(eq=False)
class Task:
    key: int
    status: str
    made: Any

    def exception(self) -> BaseException | None:
        return self.made if isinstance(self.made, BaseException) else None

    def result(self) -> Any:
        return self.made

    def release(self) -> None:
        pass


class LostError(RuntimeError):
    """As Dask raises it where it knows no more than the worker that had the task."""

    last_worker = SimpleNamespace(address="tcp://10.0.0.7:4321")


class SilentError(LostError):
    """Of one that no worker said it had begun."""


MOVED = "begun on a second worker too"


class Cluster(list[Task]):
    """A client of a cluster, and what says which tasks have ended: the latest first. ``ends`` are
    how the first tasks end; all others end well. A worker is lost 5 seconds after it began."""

    status = "running"

    def __init__(self, home: Path, ends: list[Any]) -> None:
        self.home, self.ends, self.count, self.handing = home, ends, 0, None
        self.workers, self.now = 0, 100.0

    def nthreads(self) -> dict[str, int]:
        return {"here": 1}

    def submit(self, do: Any, name: str, text: str, given: bytes, *rest: Any, **more: Any) -> Task:
        self.count += 1
        end = self.ends.pop(0) if self.ends else None
        unsaid = isinstance(end, SilentError)
        for _ in range(0 if unsaid else 2 if end is MOVED else 1):
            self.workers += 1
            place = (f"host{self.workers}", "two cores, Linux")
            begun = (name, f"worker {self.workers}", place)
            self.handing._began((0, begun))  # type: ignore[attr-defined]
            self.now += 5.0 if end else 0.0
        self.now += 7.0 if unsaid else 0.0
        if isinstance(end, BaseException):
            return Task(self.count, "cancelled" if "gone" in str(end) else "error", end)
        folder = self.home / "far" / name
        folder.mkdir(parents=True, exist_ok=True)
        dask.unpack(given, folder)
        work(parse_job(text), folder / "1.db", silent)
        return Task(self.count, "finished", dask.pack(folder / "1.db", given))

    def add(self, task: Task) -> None:
        self.append(task)

    def __next__(self) -> Task:
        return self.pop()


@contextmanager
def handing(home: Path, *ends: Any) -> Iterator[tuple[dask.Handing, Cluster]]:
    plan = api.plan(request=TOYS)
    cluster = Cluster(home, [*ends])
    clock = SimpleNamespace(monotonic=lambda: cluster.now)
    with open_writer(home / "near.db") as writer, pytest.MonkeyPatch.context() as patch:
        patch.setattr(dask, "time", clock)
        writer.begin(plan.run, about_run(plan, TOYS), [trial.key for trial in plan.trials])
        made = dask.Handing(plan, TOYS, writer, silent, Steps(plan, TOYS))
        cluster.handing = made  # type: ignore[assignment]
        yield made, cluster


def drive(made: dask.Handing, cluster: Cluster) -> None:
    made.drive(cluster, lambda: cluster)


def lost(home: Path) -> list[Attempt]:
    return [each for each in Store(home / "near.db").attempts() if each.status != "ok"]


def test_every_trial_returns_once_and_a_shared_fit_is_trained_once(home: Path) -> None:
    with handing(home) as (made, cluster):
        drive(made, cluster)
        assert made.over()
    assert Store(home / "near.db").info().counts == {"ok": 4}
    assert len(fits(home)) == 4
    assert cluster.count == 4
    assert not lost(home)


def test_a_lost_worker_is_an_attempt_and_its_trial_is_tried_again(home: Path) -> None:
    with handing(home, LostError("killed")) as (made, cluster):
        drive(made, cluster)
    assert Store(home / "near.db").info().counts == {"ok": 4}
    (attempt,) = lost(home)
    assert attempt.error == "its worker was lost (worker 1)"
    assert (attempt.seconds, attempt.machine) == (5.0, "host1: two cores, Linux")


def test_a_task_that_failed_on_a_live_worker_says_why(home: Path) -> None:
    with handing(home, OSError(28, "No space\nleft")) as (made, cluster):
        drive(made, cluster)
    assert Store(home / "near.db").info().counts == {"ok": 4}
    (attempt,) = lost(home)
    assert attempt.error == "its task failed: OSError: [Errno 28] No space left (worker 1)"


def test_a_worker_that_dask_replaced_by_itself_is_an_attempt_until_the_next_began(
    home: Path,
) -> None:
    with handing(home, MOVED) as (made, cluster):
        drive(made, cluster)
    (attempt,) = lost(home)
    assert attempt.error == "its worker was lost (worker 1)"
    assert (attempt.seconds, attempt.machine) == (5.0, "host1: two cores, Linux")


def test_of_a_worker_that_never_said_it_began_the_address_and_the_wait_are_kept(
    home: Path,
) -> None:
    with handing(home, SilentError("killed")) as (made, cluster):
        drive(made, cluster)
    (attempt,) = lost(home)
    assert attempt.error == "its worker was lost (tcp://10.0.0.7:4321)"
    assert (attempt.seconds, attempt.machine) == (7.0, "10.0.0.7: unknown machine")


def test_attempts_of_equal_nodes_are_told_apart_and_exports_name_no_host(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = count()
    monkeypatch.setattr("socket.gethostname", lambda: f"node-{next(numbers)}")
    with handing(home) as (made, cluster):
        drive(made, cluster)
    store = Store(home / "near.db")
    attempts = [each for each in store.attempts() if each.kind == "score"]
    assert len({each.machine.partition(": ")[0] for each in attempts}) == len(attempts) == 4
    assert len({each.machine.partition(": ")[2] for each in attempts}) == 1
    assert not store.frame()["machine"].str.contains("node-").any()


@pytest.mark.slow
def test_a_worker_lost_too_often_is_the_end_of_its_trial_alone(home: Path) -> None:
    dead = LostError("killed")
    with handing(home, dead, dead, dead) as (made, cluster):
        drive(made, cluster)
        assert made.over()
    counts = Store(home / "near.db").info().counts
    with closing(sqlite3.connect(home / "near.db")) as db:
        rows = db.execute("SELECT DISTINCT machine FROM trial WHERE status = 'crashed'").fetchall()
    assert rows == [("two cores, Linux",)]
    assert counts["ok"] >= 2
    assert sum(counts.values()) == 4
    assert 1 <= counts["crashed"] <= 2


def test_what_a_scheduler_had_that_went_away_is_handed_over_again(home: Path) -> None:
    gone = CancelledError("gone")
    with handing(home, None, gone, gone) as (made, cluster):
        while not made.over():
            try:
                drive(made, cluster)
            except dask._SchedulerGoneError:
                cluster.clear()
    assert Store(home / "near.db").info().counts == {"ok": 4}
    assert not lost(home)


def test_a_refusal_of_a_worker_ends_the_run_at_once(home: Path) -> None:
    with handing(home, InputError("the source is not that of the plan")) as (made, cluster):
        with pytest.raises(InputError, match="not that of the plan"):
            drive(made, cluster)
        assert not made.over()
