"""Run a plan on the workers of a Dask cluster: a task does one job file, and its shard returns.

Dask finds a free machine and nothing else. The work is that of ``bench work``: processes that can
be killed, limits, failures as rows. A shard is merged into the store as soon as its task has ended.
Its machine keeps it until the run has ended: a task that begins there again, or that a client asks
for who came back, does only what is missing. Only public interfaces of the engine are used.
"""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from bench_core import __version__
from bench_core._io.digests import digest
from bench_core._io.files import locked
from bench_core.datasets.cache import cache_folder
from bench_core.errors import BenchError, InputError, UsageError, one_line
from bench_core.execution.events import Event, OnEvent, news, silent
from bench_core.execution.runner import Interrupted, RunResult, result_of
from bench_core.execution.work import work
from bench_core.planning.job_files import (
    Piece,
    begin_shard,
    cut,
    job_text,
    learners_code,
    parse_job,
)
from bench_core.planning.keys import SCORING
from bench_core.planning.plan import Plan, about_run, trials_skipped
from bench_core.planning.request import RunRequest
from bench_core.plugins import load_registry
from bench_core.results.merge import merge
from bench_core.results.records import FitSpec, Job, Outcome, Status, with_tuples
from bench_core.results.shards import seal_path
from bench_core.results.store import Store
from bench_core.results.store_files import states_folder
from bench_core.results.writer import open_writer

AHEAD = 2
"""Tasks for each thread of the cluster that are handed over: what waits stays with us."""


def carry_out_dask(plan: Plan, request: RunRequest, store: Path, emit: OnEvent) -> RunResult:
    """Do what is left of a plan on a cluster, as ``runner.carry_out``.

    Raises InputError in one line, before any trial, where workers have other code than we.
    """
    started = time.perf_counter()
    pieces = cut(plan, replace(request, workers=1), len(plan.trials) + 1)
    with _cluster(request, plan.workers) as client:
        _check_workers(client, pieces, request)
        with open_writer(store) as writer:
            writer.costs(plan.costs)
            writer.begin(plan.run, about_run(plan, request), [t.key for t in plan.trials])
            for trial, reason in trials_skipped(plan):
                writer.trial(trial, Outcome(Job("score", trial), Status.SKIPPED, reason))
        total = sum(len(piece.job.trials) for piece in pieces)
        done, planned = len(plan.finished), len(plan.trials)
        emit(Event("plan", plan.run, done=done, total=planned, jobs_total=total))
        ended = 0
        state = "interrupted"
        try:
            for piece, failure in _results(client, pieces, store, request):
                if failure:
                    _lost(store, piece, failure)
                ended += len(piece.job.trials)
                _tell(emit, store, piece, ended, total)
            client.run(_forget, plan.run, on_error="ignore")
            state = "finished"
        except KeyboardInterrupt:
            raise Interrupted(result_of(plan, store, started, interrupted=True)) from None
        finally:
            with open_writer(store) as writer:
                writer.end(plan.run, state)
    return result_of(plan, store, started)


def _results(
    client: Any, pieces: list[Piece], store: Path, request: RunRequest
) -> Iterator[tuple[Piece, str]]:
    """Each piece when its shard is merged, or with what became of its worker."""
    from distributed import as_completed

    waiting = iter(pieces)
    running: dict[str, tuple[Piece, int]] = {}
    done = as_completed()

    def begin(piece: Piece, left: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            begin_shard(piece, Path(folder) / "1.db", store)
            given = pack(Path(folder) / "1.db")
        text = job_text(piece.job)
        name = f"{piece.job.run}/{digest(text)}"
        task = client.submit(_do, name, text, given, request.data_dir, pure=False)
        running[task.key] = piece, left
        done.add(task)

    for piece, _ in zip(waiting, range(AHEAD * _threads(client)), strict=False):
        begin(piece, request.retries)
    for task in done:
        piece, left = running.pop(task.key)
        failure = ""
        if task.status == "finished":
            _take(task.result(), store)
        elif isinstance(error := task.exception(), BenchError):
            raise error
        else:
            failure = f"its worker was lost: {error or task.status}"
        task.release()  # a result that is held would be computed again with its worker's death
        if failure and left:
            _lost(store, piece, failure)
            begin(piece, left - 1)
            continue
        yield piece, failure
        if (following := next(waiting, None)) is not None:
            begin(following, request.retries)


def _take(shard: bytes, store: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        unpack(shard, Path(folder))
        merge(store, [Path(folder) / "1.db"])


def _do(name: str, text: str, given: bytes, data_dir: str) -> bytes:
    """On a worker: do a job, go on with its shard if it was begun here, and return that."""
    folder = cache_folder() / "shards" / name
    shard = folder / "1.db"
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "task.lock"):  # a worker that Dask gave up may still be at it here
        if not shard.exists():
            unpack(given, folder)
        work(parse_job(text), shard, silent, data_dir)
        return pack(shard)


def pack(shard: Path) -> bytes:
    """A shard, its models and its seal as one archive; of one that is not there an empty one."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path in (shard, seal_path(shard), states_folder(shard)):
            if path.exists():
                archive.add(path, path.name)
    return raw.getvalue()


def unpack(shard: bytes, folder: Path) -> None:
    """The inverse of ``pack``."""
    with tarfile.open(fileobj=io.BytesIO(shard)) as archive:
        archive.extractall(folder, filter="data")


def _forget(run: str) -> None:
    """On a worker: remove the shards of a run, which the client has."""
    shutil.rmtree(cache_folder() / "shards" / run, ignore_errors=True)


def _lost(store: Path, piece: Piece, why: str) -> None:
    """Write that the trials of a piece were tried."""
    with open_writer(store) as writer:
        for trial in piece.job.trials:
            outcome = Outcome(Job("score", trial), Status.CRASHED, one_line(why, 500))
            writer.attempt(piece.job.run, outcome)
            writer.trial(trial, outcome)


def _tell(emit: OnEvent, store: Path, piece: Piece, ended: int, total: int) -> None:
    told = {each.title: each for each in Store(store).ended(piece.job.run)}
    for number, trial in enumerate(piece.job.trials, start=1 + ended - len(piece.job.trials)):
        how = told[trial.title]
        about = {"status": how.status, "message": how.error, "jobs_done": number}
        emit(news("finish", Job("score", trial), jobs_total=total, **about))


@contextmanager
def _cluster(request: RunRequest, workers: int) -> Iterator[Any]:
    """A client of the cluster that ``--executor`` names, or of one on this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        fault = f"--executor dask: {error}: pip install 'budget-bench[dask]'"
        raise UsageError(fault) from error
    where = request.executor.partition("=")[2]
    if not where:
        how = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(processes=True, **how) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(where if "://" in where else _named(where), timeout="20s")
    except (OSError, ValueError, ImportError, AttributeError, TypeError) as error:
        raise InputError(f"--executor dask={where}: no scheduler there ({error})") from error
    with client:
        yield client


def _named(where: str) -> Any:
    """A cluster by import path; a function is called."""
    module, _, name = where.partition(":")
    found = getattr(import_module(module), name)
    return found() if callable(found) else found


def _threads(client: Any) -> int:
    return max(1, sum(map(int, client.nthreads().values())))


def _identity(classes: Mapping[str, Any], plugins: tuple[str, ...]) -> tuple[str, int, Any]:
    """Of this process: version, scoring, and digests of the learners' sources."""
    load_registry(plugins)
    try:
        return __version__, SCORING, learners_code(FitSpec(**spec) for spec in classes.values())
    except BenchError as error:
        return __version__, SCORING, str(error)


def _check_workers(client: Any, pieces: list[Piece], request: RunRequest) -> None:
    """Raise InputError where a worker would do otherwise than we."""
    if not pieces:
        return
    client.wait_for_workers(1, timeout=120)
    kinds = {f.learner["class"]: asdict(f) for piece in pieces for f in piece.job.fits}
    asked = {name: with_tuples(spec) for name, spec in kinds.items()}
    ours = _identity(asked, request.plugins)
    theirs = client.run(_identity, asked, request.plugins, on_error="return")
    for worker, found in theirs.items():
        if isinstance(found, OSError):  # it left; who comes later is checked by its job
            continue
        if isinstance(found, Exception) or tuple(found) != ours:
            raise InputError(
                f"--executor {request.executor}: worker {worker} {_otherwise(ours, found)}: "
                "install the same there"
            )


def _otherwise(ours: tuple[str, int, Any], theirs: Any) -> str:
    if isinstance(theirs, Exception):
        return f"cannot begin ({one_line(str(theirs), 200)})"
    if theirs[:2] != ours[:2]:
        return f"has budget-bench {theirs[0]} (scoring {theirs[1]}), here is {ours[0]} ({ours[1]})"
    if isinstance(theirs[2], str):
        return f"lacks a plugin ({theirs[2]})"
    other = sorted(name for name, code in ours[2].items() if theirs[2].get(name) != code)
    return f"has another source of {', '.join(other)}"
