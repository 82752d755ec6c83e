"""What the client of a cluster does with tasks that end in every way, without a cluster."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
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


class Cluster(list[Task]):
    """A client of a cluster, and what says which tasks have ended: the latest first. ``ends`` are
    how the first tasks end; all others end well."""

    status = "running"

    def __init__(self, home: Path, ends: list[Any]) -> None:
        self.home, self.ends, self.count, self.handing = home, ends, 0, None

    def nthreads(self) -> dict[str, int]:
        return {"here": 1}

    def submit(self, do: Any, name: str, text: str, given: bytes, *rest: Any, **more: Any) -> Task:
        self.count += 1
        self.handing._began((0, (name, f"worker {self.count}")))  # type: ignore[attr-defined]
        end = self.ends.pop(0) if self.ends else None
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
    with open_writer(home / "near.db") as writer:
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
    with handing(home, RuntimeError("killed")) as (made, cluster):
        drive(made, cluster)
    assert Store(home / "near.db").info().counts == {"ok": 4}
    assert [each.error for each in lost(home)] == ["its worker was lost (worker 1)"]


@pytest.mark.slow
def test_a_worker_lost_too_often_is_the_end_of_its_trial_alone(home: Path) -> None:
    dead = RuntimeError("killed")
    with handing(home, dead, dead, dead) as (made, cluster):
        drive(made, cluster)
        assert made.over()
    counts = Store(home / "near.db").info().counts
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
