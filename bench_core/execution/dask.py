"""Run jobs on the workers of a Dask cluster: a task is a job file with one fit or one trial.

Dask finds a free machine, and tries elsewhere what was on a worker that is gone. The work is that
of ``bench work``: processes that can be killed, limits, failures as rows. The shard that a task
returns is merged into the store as soon as the task has ended.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
import time
from asyncio import CancelledError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bench_core.errors import BenchError, InputError, UsageError, one_line, option
from bench_core.execution.events import Event
from bench_core.execution.runner import Kept
from bench_core.execution.work import work
from bench_core.planning.job_files import Cutter, begin_shard, job_text, parse_job
from bench_core.planning.plan import Plan
from bench_core.planning.request import RunRequest
from bench_core.results.merge import take
from bench_core.results.records import Job, Outcome, Status
from bench_core.results.writer import Writer

AHEAD = 2
"""Tasks for each thread of the cluster that are handed over: what waits stays with us."""


@contextmanager
def on_cluster(plan: Plan, request: RunRequest, writer: Writer) -> Iterator[DaskExecutor]:
    """The cluster that a request names, or one on this machine, for the jobs of its plan."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        fault = f"{option('executor', 'dask')}: {error}: pip install 'budget-bench[dask]'"
        raise UsageError(fault) from error
    where = request.executor.partition("=")[2]
    with ExitStack() as stack:
        found = where if "://" in where else named(where) if where else None
        if found is None:
            how = {"n_workers": plan.workers, "threads_per_worker": 1, "dashboard_address": None}
            found = stack.enter_context(LocalCluster(**how))
        try:
            client = stack.enter_context(Client(found, timeout="20s"))
        except (OSError, ValueError, ImportError, AttributeError, TypeError) as error:
            place = option("executor", f"dask={where}")
            raise InputError(f"{place}: no scheduler there ({error})") from error
        yield DaskExecutor(client, plan, request, writer)
        client.run(_end_kept, on_error="ignore")


def named(where: str) -> Any:
    """The cluster at an import path ``MODULE:NAME``; a function is called. The module may lie in
    the current folder, where it hides no other.

    Raises InputError where it cannot be imported or made.
    """
    module, _, name = where.partition(":")
    sys.path.append(str(Path.cwd()))
    try:
        found = getattr(import_module(module), name)
        return found() if callable(found) else found
    except Exception as error:
        why = one_line(f"{type(error).__name__}: {error}", 300)
        raise InputError(f"{option('executor', f'dask={where}')}: no cluster ({why})") from error
    finally:
        sys.path.pop()


class DaskExecutor:
    """Hands jobs to a cluster and takes their shards into the store."""

    def __init__(self, client: Any, plan: Plan, request: RunRequest, writer: Writer) -> None:
        from distributed import as_completed

        self.slots = AHEAD * max(1, sum(map(int, client.nthreads().values())))
        self._client, self._writer, self._data_dir = client, writer, request.data_dir
        # retries are ours: a worker would add as many again
        self._cutter = Cutter(plan, replace(request, workers=1, retries=0))
        self._finished = set(plan.finished_fits)  # keys of fits in the store
        self._running: dict[Any, tuple[Job, float]] = {}  # and since when
        self._done = as_completed()

    def submit(self, job: Job) -> None:
        """Hand over a job with the models that it stands on."""
        piece = self._cutter.job([job.spec], self._finished)
        with tempfile.TemporaryDirectory() as folder:
            begin_shard(piece, Path(folder) / "1.db", self._writer.path)
            given = pack(Path(folder))
        task = self._client.submit(_do, job_text(piece), given, self._data_dir, pure=False)
        self._running[task.key] = job, time.monotonic()
        self._done.add(task)

    def outcome(self) -> Outcome:
        """Wait for a task to end. Raises InputError where its worker has other code or data than
        the plan, and where the scheduler is gone."""
        task = next(self._done)
        job, since = self._running.pop(task.key)
        try:
            shard, said = task.result()
        except BenchError:
            raise
        except (Exception, CancelledError) as error:
            if task.status == "cancelled" or self._client.status != "running":
                line = "the scheduler is gone; the same command does the rest"
                raise InputError(line) from error
            return _lost(job, error, since)
        finally:
            task.release()  # what is held would be done again where its worker dies
        with tempfile.TemporaryDirectory() as folder:
            unpack(shard, Path(folder))
            take(self._writer, Path(folder) / "1.db")
        if said.status == Status.OK and job.kind == "fit":
            self._finished.add(job.spec.key)
        texts = said.message, said.trace, None, said.seconds, said.output
        return Outcome(job, Status(said.status), *texts, stored=True)

    def close(self) -> None:
        """Let go of what is still to be done."""
        self._client.cancel([*self._running])


def _lost(job: Job, error: BaseException, since: float) -> Outcome:
    """A task that ended without a shard."""
    why = f"its task failed: {type(error).__name__}: {error}"
    if worker := getattr(error, "last_worker", None):  # KilledWorker
        why = f"its worker was lost ({getattr(worker, 'address', worker)})"
    return Outcome(job, Status.CRASHED, one_line(why, 200), seconds=time.monotonic() - since)


_KEPT: list[Kept] = []
"""What a worker keeps for the next task: its worker processes and plugins. One task has it at a
time."""


def _do(text: str, given: bytes, data_dir: str) -> tuple[bytes, Event]:
    """On a worker: do a job whose shard begins with what was ``given``; the rest of the shard, and
    how the job ended."""
    kept, said = _KEPT.pop() if _KEPT else Kept(), list[Event]()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            unpack(given, folder)
            models = [*folder.rglob("*.npz")]
            work(parse_job(text), folder / "1.db", said.append, data_dir, kept=kept)
            for model in models:  # the store has them
                model.unlink()
            last = next(event for event in reversed(said) if event.kind == "finish")
            return pack(folder), last
    finally:
        _KEPT.append(kept)


def _end_kept() -> None:
    """On a worker: end what was kept."""
    while _KEPT:
        _KEPT.pop().close()


def pack(folder: Path) -> bytes:
    """The files of a folder as one archive."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        archive.add(folder, ".")
    return raw.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """The inverse of ``pack``."""
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as archive:
        archive.extractall(folder, filter="data")
