"""Run a plan on the workers of a Dask cluster: a task does one trial, and its shard returns.

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
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench_core import __version__
from bench_core._io.digests import digest
from bench_core._io.files import locked
from bench_core._io.machine import Place, this_place
from bench_core.datasets.cache import cache_folder
from bench_core.errors import BenchError, InputError, one_line
from bench_core.execution.clusters import NoSchedulerError, client_of, threads_of
from bench_core.execution.events import Event, OnEvent, news, silent
from bench_core.execution.runner import Interrupted, Kept, RunResult, result_of
from bench_core.execution.work import work
from bench_core.planning.job_files import Piece, begin_shard, job_text, learners_code, parse_job
from bench_core.planning.keys import SCORING
from bench_core.planning.plan import Plan, about_run, trials_skipped
from bench_core.planning.request import RunRequest
from bench_core.planning.steps import Steps
from bench_core.results.merge import take
from bench_core.results.records import Ended, Job, Outcome, Status
from bench_core.results.store import Store
from bench_core.results.store_files import models_in
from bench_core.results.writer import Writer, open_writer

AHEAD = 2
"""Tasks for each thread of the cluster that are handed over: what waits stays with us."""
PATIENCE = 600.0
"""Seconds that a scheduler may be away, which was there once."""
_PAUSE = 1.0


def carry_out_dask(plan: Plan, request: RunRequest, store: Path, emit: OnEvent) -> RunResult:
    """Do what is left of a plan on a cluster, as ``runner.carry_out``.

    Raises InputError in one line, before any trial, where workers have other code than we, and
    where the scheduler stays away.
    """
    started = time.perf_counter()
    steps = Steps(plan, replace(request, workers=1))
    with open_writer(store) as writer:
        writer.costs(plan.costs)
        writer.begin(plan.run, about_run(plan, request), [t.key for t in plan.trials])
        for trial, reason in trials_skipped(plan):
            writer.trial(trial, Outcome(Job("score", trial), Status.SKIPPED, reason))
        done, planned = len(plan.finished), len(plan.trials)
        emit(Event("plan", plan.run, done=done, total=planned, jobs_total=steps.total))
        state = "interrupted"
        try:
            Handing(plan, request, writer, emit, steps).run()
            state = "finished"
        except KeyboardInterrupt:
            raise Interrupted(result_of(plan, store, started, interrupted=True)) from None
        finally:
            writer.end(plan.run, state)
    return result_of(plan, store, started)


LOST = "its worker was lost"


class _SchedulerGoneError(Exception):
    """The scheduler cannot be asked any more."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A worker that began a piece, and since when by our clock."""

    worker: str
    place: Place
    since: float


@dataclass(eq=False)
class Handing:
    """Hands pieces to a cluster and takes their shards. ``due`` are to be handed over again, each
    with the tries that it has left; ``begun`` says which workers began which piece, ``handed`` when
    it was handed over."""

    plan: Plan
    request: RunRequest
    writer: Writer
    emit: OnEvent
    steps: Steps
    due: list[tuple[Piece, int]] = field(default_factory=list)
    begun: dict[str, list[Begun]] = field(default_factory=dict)
    handed: dict[str, float] = field(default_factory=dict)
    ended: int = 0

    def run(self) -> None:
        """Until nothing is left; a scheduler that goes away may come back."""
        last, checked = time.monotonic(), False
        while not self.over():
            try:
                with client_of(self.request, self.plan.workers) as client:
                    from distributed import as_completed

                    if not checked:
                        _check_workers(client, self.plan, self.request)
                        checked = True
                    client.subscribe_topic(self.plan.run, self._began)
                    self.drive(client, as_completed)
                    client.run(_forget, self.plan.run, on_error="ignore")
                return
            except _SchedulerGoneError:
                last = time.monotonic()
                line = "the scheduler is away; what it had is handed over again when it is back"
                self.emit(Event("note", line, warning=True))
            except NoSchedulerError:
                if not checked or time.monotonic() > last + PATIENCE:
                    raise
            time.sleep(_PAUSE)

    def over(self) -> bool:
        """Whether all trials have ended."""
        return self.ended == self.steps.total

    def drive(self, client: Any, as_completed: Callable[[], Any]) -> None:
        """Hand pieces to a cluster until nothing is left."""
        running: dict[str, tuple[Any, Piece, int]] = {}
        done = as_completed()
        try:
            while self._fill(client, running, done):
                task = next(done)
                _, piece, left = running.pop(task.key)
                self._take(client, task, piece, left)
                task.release()  # what is held would be done again where its worker dies
        finally:
            self.due += [(piece, left) for _, piece, left in running.values()]
            self.begun.clear()

    def _fill(self, client: Any, running: dict[str, tuple[Any, Piece, int]], done: Any) -> int:
        """Hand over as much as the cluster needs; how many pieces it has."""
        with _asking():
            most = AHEAD * threads_of(client)
        while len(running) < most and (following := self._next()):
            try:
                with _asking():
                    task = self._submit(client, following[0])
            except _SchedulerGoneError:
                self.due.append(following)
                raise
            running[task.key] = task, *following
            done.add(task)
        return len(running)

    def _next(self) -> tuple[Piece, int] | None:
        if self.due:
            return self.due.pop()
        piece = self.steps.next()
        return (piece, self.request.retries) if piece else None

    def _submit(self, client: Any, piece: Piece) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            begin_shard(piece, Path(folder) / "1.db", self.writer.path)
            given = pack(Path(folder) / "1.db")
        text = job_text(piece.job)
        self.handed[_name(piece)] = time.monotonic()
        return client.submit(_do, _name(piece), text, given, self.request.data_dir, pure=False)

    def _began(self, event: Any) -> None:
        name, worker, place = event[1]
        begun = Begun(worker, Place(*place), time.monotonic())
        self.begun.setdefault(name, []).append(begun)

    def _take(self, client: Any, task: Any, piece: Piece, left: int) -> None:
        """Its results, or what became of it."""
        if task.status == "cancelled" or client.status != "running":  # it forgot its tasks
            self.due.append((piece, left))
            raise _SchedulerGoneError
        try:
            with _asking():
                error = task.exception()
                shard = b"" if error else task.result()
        except _SchedulerGoneError:
            self.due.append((piece, left))
            raise
        begun = self.begun.pop(_name(piece), [])
        handed = self.handed.pop(_name(piece))
        if not error:
            self._missed(piece, begun[:-1], begun[-1].since if begun else 0.0)
            return self._merge(piece, shard)
        if isinstance(error, BenchError):
            raise error
        begun = begun or [Begun(*_last_worker(error), handed)]
        failed = f"its task failed: {type(error).__name__}: {error}"
        why = LOST if hasattr(error, "last_worker") else one_line(failed, 200)
        self._missed(piece, begun, time.monotonic(), why, final=not left)
        if left:
            self.due.append((piece, left - 1))
            return None
        return self._close(piece, set(), {}, why)

    def _merge(self, piece: Piece, shard: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            unpack(shard, Path(folder))
            found = Path(folder) / "1.db"
            take(self.writer, found)
            store = Store(found)
            told = {each.title: each for each in store.ended(piece.job.run)}
            self._close(piece, store.finished()[1], told)

    def _missed(
        self,
        piece: Piece,
        lost: Sequence[Begun],
        until: float,
        last: str = LOST,
        final: bool = False,
    ) -> None:
        """Write that a piece was begun on workers that were lost, each until the next began it, the
        last ``until`` then and for the reason ``last``; if that was the last try, so its trials
        ended."""
        ends = [*(after.since for after in lost[1:]), until]
        reasons = [*[LOST] * (len(lost) - 1), last]
        for one, end, reason in zip(lost, ends, reasons, strict=False):
            why = f"{reason} ({one.worker})"
            for trial in piece.job.trials:
                spent = end - one.since
                outcome = Outcome(Job("score", trial), Status.CRASHED, why, seconds=spent)
                with self.writer.transaction():
                    self.writer.attempt(piece.job.run, outcome, one.place)
                    if final:
                        self.writer.trial(trial, outcome, one.place)

    def _close(
        self, piece: Piece, fitted: Set[str], told: Mapping[str, Ended], why: str = LOST
    ) -> None:
        self.steps.ended(piece, fitted)
        for trial in piece.job.trials:
            self.ended += 1
            how = told.get(trial.title)
            about = {"status": how.status if how else str(Status.CRASHED)}
            about["message"] = how.error if how else why
            counts: dict[str, Any] = {"jobs_done": self.ended, "jobs_total": self.steps.total}
            self.emit(news("finish", Job("score", trial), **about, **counts))


@contextmanager
def _asking() -> Iterator[None]:
    """Raise _SchedulerGoneError for what connections and their ends raise."""
    try:
        yield
    except (OSError, RuntimeError, TimeoutError, CancelledError) as error:
        raise _SchedulerGoneError from error


def _last_worker(error: BaseException) -> tuple[str, Place]:
    """Of a task that nobody began the worker that had it, if Dask says so, and its host."""
    worker = str(getattr(getattr(error, "last_worker", None), "address", "")) or "no worker"
    host = urlsplit(worker).hostname or "unknown host"
    return worker, Place(host, "unknown machine")


def _name(piece: Piece) -> str:
    """The folder of a piece on its worker: that of its trials, whatever is given to it."""
    return f"{piece.job.run}/{digest([trial.key for trial in piece.job.trials])}"


_KEPT: dict[str, list[Kept]] = {}
"""What a worker keeps for the next task of a run; one task at a time has it."""


def _do(name: str, text: str, given: bytes, data_dir: str) -> bytes:
    """On a worker: do a piece, go on with its shard if it was begun here, and return what of that
    was not given."""
    from distributed import get_worker

    run, folder = name.partition("/")[0], cache_folder() / "shards" / name
    get_worker().log_event(run, (name, get_worker().address, tuple(this_place())))
    for other in [each for each in _KEPT if each != run]:
        _end_kept(other)
    try:
        kept = _KEPT[run].pop()
    except LookupError:  # another thread has it
        kept = Kept()
    folder.mkdir(parents=True, exist_ok=True)
    shard = folder.resolve() / "1.db"
    try:
        with locked(folder / "task.lock"):  # a worker that Dask gave up may still be at it here
            if not shard.exists():
                unpack(given, folder)
            work(parse_job(text), shard, silent, data_dir, kept=kept)
            return pack(shard, given)
    finally:
        _KEPT.setdefault(run, []).append(kept)


def pack(shard: Path, given: bytes = b"") -> bytes:
    """A shard and its models, but those that were ``given``, as one archive; of one that is not
    there an empty one."""
    raw = io.BytesIO()
    known = set(_opened(given).getnames()) if given else set()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for path in [shard, *models_in(shard)] if shard.exists() else ():
            name = path.relative_to(shard.parent).as_posix()
            if path == shard or name not in known:
                archive.add(path, name)
    return raw.getvalue()


def unpack(shard: bytes, folder: Path) -> None:
    """The inverse of ``pack``."""
    with _opened(shard) as archive:
        archive.extractall(folder, filter="data")


def _opened(packed: bytes) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(packed), mode="r:")


def _forget(run: str) -> None:
    """On a worker: end what was kept for a run, and remove its shards, which the client has."""
    _end_kept(run)
    shutil.rmtree(cache_folder() / "shards" / run, ignore_errors=True)


def _end_kept(run: str) -> None:
    for kept in _KEPT.pop(run, []):
        kept.close()


def _identity(modules: Mapping[str, tuple[str, ...]]) -> tuple[str, int, Any]:
    """Of this process: version, scoring, and digests of the learners' sources."""
    try:
        return __version__, SCORING, learners_code(modules)
    except BenchError as error:
        return __version__, SCORING, str(error)


def _check_workers(client: Any, plan: Plan, request: RunRequest) -> None:
    """Raise InputError where a worker would do otherwise than we."""
    client.wait_for_workers(1, timeout=120)
    asked = dict(plan.modules)
    ours = _identity(asked)
    theirs = client.run(_identity, asked, on_error="return")
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
