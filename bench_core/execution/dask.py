"""Run jobs on a Dask cluster: a task is a job file with one fit or one trial.

Dask finds a free machine, and repeats tasks of a lost worker elsewhere. Tasks run as in
``bench work``: killable processes, limits, failures as rows. The shard returned by a task is
merged into the store immediately.
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
from bench_core.execution.runner import Reused
from bench_core.execution.work import work
from bench_core.planning.job_files import Cutter, begin_shard, job_text, parse_job
from bench_core.planning.plan import Event, Plan
from bench_core.planning.request import RunRequest
from bench_core.results.merge import take
from bench_core.results.records import Job, Outcome, Status
from bench_core.results.writer import Writer

AHEAD = 2
"""Submitted tasks per thread of the cluster; further jobs wait in this process."""


@contextmanager
def on_cluster(plan: Plan, request: RunRequest, writer: Writer) -> Iterator[DaskExecutor]:
    """Yield the executor of a request's cluster, or of a local one, for the jobs of its plan."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        fault = f"{option('executor', 'dask')}: {error}: pip install 'budget-bench[dask]'"
        raise UsageError(fault) from error
    where = request.executor.partition("=")[2]
    with ExitStack() as stack:
        cluster = where if "://" in where else named(where) if where else None
        if cluster is None:
            how = {"n_workers": plan.workers, "threads_per_worker": 1, "dashboard_address": None}
            cluster = stack.enter_context(LocalCluster(**how))
        try:
            client = stack.enter_context(Client(cluster, timeout="20s"))
        except (OSError, ValueError, ImportError, AttributeError, TypeError) as error:
            place = option("executor", f"dask={where}")
            raise InputError(f"{place}: no scheduler there ({error})") from error
        yield DaskExecutor(client, plan, request, writer)
        client.run(_stop_workers, on_error="ignore")


def named(where: str) -> Any:
    """Return the cluster at an import path ``MODULE:NAME``; a function is called. The module may be
    in the current folder, but does not shadow others.

    Raises InputError if it cannot be imported or created.
    """
    module, _, name = where.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.append(here)
    try:
        found = getattr(import_module(module), name)
        return found() if callable(found) else found
    except Exception as error:
        why = one_line(f"{type(error).__name__}: {error}", 300)
        raise InputError(f"{option('executor', f'dask={where}')}: no cluster ({why})") from error
    finally:
        if added and here in sys.path:  # the module may have changed the list, too
            sys.path.remove(here)


class DaskExecutor:
    """Submits jobs to a cluster and merges their shards into the store."""

    def __init__(self, client: Any, plan: Plan, request: RunRequest, writer: Writer) -> None:
        from distributed import as_completed

        self.slots = AHEAD * max(1, sum(map(int, client.nthreads().values())))
        self._client, self._writer, self._data_dir = client, writer, request.data_dir
        # retries are handled here: a worker's retries would multiply them
        self._cutter = Cutter(plan, replace(request, workers=1, retries=0))
        self._finished = set(plan.finished_fits)  # keys of fits in the store
        self._running: dict[Any, tuple[Job, float]] = {}  # with start times
        self._done = as_completed()

    def submit(self, job: Job) -> None:
        """Submit a job with the models it needs."""
        piece = self._cutter.job([job.spec], self._finished)
        with tempfile.TemporaryDirectory() as folder:
            begin_shard(piece, Path(folder) / "1.db", self._writer.path)
            given = pack(Path(folder))
        task = self._client.submit(_do, job_text(piece), given, self._data_dir, pure=False)
        self._running[task.key] = job, time.monotonic()
        self._done.add(task)

    def outcome(self) -> Outcome:
        """Wait for a task to end. Raises InputError if its worker has other code or data than the
        plan, or if the scheduler is lost."""
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
            why = f"its task failed: {type(error).__name__}: {error}"
            if worker := getattr(error, "last_worker", None):  # KilledWorker
                why = f"its worker was lost ({getattr(worker, 'address', worker)})"
            spent = time.monotonic() - since
            return Outcome(job, Status.CRASHED, one_line(why, 200), seconds=spent)
        finally:
            task.release()  # held results would be recomputed if the worker dies
        with tempfile.TemporaryDirectory() as folder:
            unpack(shard, Path(folder))
            take(self._writer, Path(folder) / "1.db")
        if said.status == Status.OK and job.kind == "fit":
            self._finished.add(job.spec.key)
        texts = said.message, said.trace, None, said.seconds, said.output
        return Outcome(job, Status(said.status), *texts, stored=True)

    def close(self) -> None:
        """Cancel the remaining tasks."""
        self._client.cancel([*self._running])


_REUSED: list[Reused] = []
"""Worker processes and plugins of a worker, reused by its next task. Tasks use it one at a time."""


def _do(text: str, archive: bytes, data_dir: str) -> tuple[bytes, Event]:
    """On a worker: run a job whose shard starts with the files in ``archive``. Return the rest of
    the shard and the job's last event."""
    reused, events = _REUSED.pop() if _REUSED else Reused(), list[Event]()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            unpack(archive, folder)
            models = [*folder.rglob("*.npz")]
            work(parse_job(text), folder / "1.db", events.append, data_dir, earlier=reused)
            for model in models:  # already in the store
                model.unlink()
            last = next(event for event in reversed(events) if event.kind == "finish")
            return pack(folder), last
    finally:
        _REUSED.append(reused)


def _stop_workers() -> None:
    """On a worker: stop the worker processes."""
    while _REUSED:
        _REUSED.pop().close()


def pack(folder: Path) -> bytes:
    """Pack the files of a folder into one archive."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        archive.add(folder, ".")
    return raw.getvalue()


def unpack(packed: bytes, folder: Path) -> None:
    """Inverse of ``pack``."""
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as archive:
        archive.extractall(folder, filter="data")
