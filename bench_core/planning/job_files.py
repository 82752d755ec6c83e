"""Job files: a plan divided into independent parts, which run anywhere and in any order.

Each fit is trained once, so all fits with a common base belong to one job. Such groups are assigned
by expected time, longest first, to the job with the least total. A job file contains everything
that ``bench work`` needs besides the package and the data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench_core import __version__
from bench_core._io.digests import code_key, digest
from bench_core._io.files import atomic_file
from bench_core.class_names import find_class, importable
from bench_core.costs.shipped import from_json, to_json
from bench_core.errors import InputError, UsageError
from bench_core.planning.keys import SCORING
from bench_core.planning.plan import (
    Plan,
    about_run,
    fits_left,
    jobs_left,
    trials_skipped,
)
from bench_core.planning.request import RunRequest
from bench_core.results.merge import copy_fits
from bench_core.results.records import DatasetUse, FitSpec, TrialSpec, record_of, with_tuples
from bench_core.results.store_files import store_path

FORMAT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """One part of a plan."""

    bench: str  # the version that planned it, as ``scoring``
    scoring: int
    run: str
    about: Mapping[str, Any]  # the record of the run (``about_run``)
    listed: tuple[str, ...]  # keys of all trials of the run
    data: Mapping[str, DatasetUse]  # by the plan's folder
    fits: tuple[FitSpec, ...]  # each follows the fits it needs
    trials: tuple[TrialSpec, ...]
    costs: Mapping[str, Any]  # from to_json, by their keys
    code: Mapping[str, str]  # digests of learners' sources by class
    workers: int
    threads: int
    seconds: float  # expected total
    ready: tuple[str, ...] = ()  # fits already in its shard
    skipped: tuple[tuple[str, str], ...] = ()  # keys of trials that cannot be done, with the reason

    @property
    def request(self) -> RunRequest:
        """Request of the run, for one machine."""
        asked = self.about["request"]
        inline = asked.get("executor") == "inline"
        return RunRequest.of(asked, executor="inline" if inline else "local")

    @property
    def plan(self) -> Plan:
        """Plan of this part."""
        record = record_of(self.about)
        return Plan(
            **{name: value for name, value in record.items() if name != "request"},
            run=self.run,
            fits=self.fits,
            trials=self.trials,
            costs={key: from_json(costs) for key, costs in self.costs.items()},
            skipped=self.skipped,
        )


def write_jobs(plan: Plan, request: RunRequest, folder: Path, count: int) -> list[float]:
    """Write the remaining work of a plan to at most ``count`` files ``1.json``, ``2.json``, ...;
    return the expected seconds of each, the longest first.

    Stored fits that a job needs are copied into its shard. Raises UsageError if there is no work,
    or if another process could not import a learner.
    """
    if next(folder.glob("*.json"), None):
        raise UsageError(f"-o {folder}: there are job files already; name another folder")
    cutter = Cutter(plan, request, [trial.key for trial in plan.trials])
    jobs = [cutter.job(piece, plan.finished_fits) for piece in cutter.pieces(count)]
    if not jobs:
        raise UsageError("nothing to do: the store has all trials of this plan; see bench report")
    if skipped := trials_skipped(plan):
        trials = (*jobs[0].trials, *(trial for trial, _ in skipped))
        jobs[0] = replace(jobs[0], trials=trials, skipped=plan.skipped)
    for number, job in enumerate(jobs, start=1):
        with atomic_file(folder / f"{number}.json") as new:
            new.write_text(job_text(job), encoding="utf-8")
        begin_shard(job, shard_path(folder / str(number)), store_path(request.store))
    return [job.seconds for job in jobs]


class Cutter:
    """Creates job files of a plan; ``listed`` are the keys of the run's trials to write to each."""

    def __init__(self, plan: Plan, request: RunRequest, listed: Iterable[str] = ()) -> None:
        known = plan.expected.values()
        self._usual = sum(known) / len(known) if known else 1.0  # default estimate
        self._plan = plan
        uses = {(use.name, use.fold, use.seed): use for use in plan.datasets}
        self._data = {t.data: uses[t.dataset, t.fold, t.seed] for t in plan.trials}
        self._code = learners_code(name for fit in plan.fits for name in _classes(fit.learner))
        self._same: dict[str, Any] = {
            "bench": __version__,
            "scoring": SCORING,
            "run": plan.run,
            "about": about_run(plan, request),
            "listed": tuple(listed),
            "workers": request.workers or 1,
            "threads": request.threads or 1,
        }

    def _seconds(self, jobs: Iterable[FitSpec | TrialSpec]) -> float:
        return sum(self._plan.expected.get(job.key, self._usual) for job in jobs)

    def pieces(self, count: int) -> list[list[FitSpec | TrialSpec]]:
        """Divide the work into at most ``count`` parts without common fits, longest first."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        number = {fit.key: k for k, fit in enumerate(self._plan.fits)}
        fits, jobs = fits_left(self._plan), jobs_left(self._plan)
        edges = [(number[fit.key], number[need]) for fit in fits for need in fit.needs.values()]
        shape, ends = (len(number), len(number)), np.array(edges, int).reshape(-1, 2).T
        _, group_of = connected_components(coo_array((np.ones(len(edges)), ends), shape))
        groups: dict[int, list[FitSpec | TrialSpec]] = {}
        for job in jobs:
            place = number[job.key if isinstance(job, FitSpec) else job.fit]
            groups.setdefault(group_of[place], []).append(job)
        parts: list[list[FitSpec | TrialSpec]] = [[] for _ in range(min(count, len(groups)))]
        spent = [0.0] * len(parts)
        for group in sorted(groups.values(), key=self._seconds, reverse=True):
            emptiest = spent.index(min(spent))
            parts[emptiest] += group
            spent[emptiest] += self._seconds(group)
        return sorted(parts, key=self._seconds, reverse=True)

    def job(self, specs: Sequence[FitSpec | TrialSpec], finished: Set[str]) -> JobFile:
        """Create a job of these fits and trials, which may need each other and ``finished``."""
        fits = [spec for spec in specs if isinstance(spec, FitSpec)]
        trials = [spec for spec in specs if isinstance(spec, TrialSpec)]
        own = {fit.key for fit in fits}
        below = {t.fit for t in trials} | {key for fit in fits for key in fit.needs.values()}
        ready = below & finished
        kept = tuple(fit for fit in self._plan.fits if fit.key in own | ready)
        return JobFile(
            **self._same,
            code={name: self._code[name] for fit in kept for name in _classes(fit.learner)},
            fits=kept,
            trials=tuple(trials),
            ready=tuple(sorted(ready)),
            data={spec.data: self._data[spec.data] for spec in specs},
            costs={s.costs: to_json(self._plan.costs[s.costs]) for s in specs if s.costs},
            seconds=self._seconds(specs),
        )


def begin_shard(job: JobFile, shard: Path, store: Path) -> None:
    """Copy the finished fits that a job needs into its shard."""
    if job.ready:
        copy_fits(shard, store, job.ready)


def _classes(learner: Mapping[str, Any]) -> Iterator[str]:
    """Yield the class of an encoded learner, and the classes of its inner learners."""
    yield learner["class"]
    for value in learner["fields"].values():
        if isinstance(value, Mapping) and "class" in value:
            yield from _classes(value)


def learners_code(classes: Iterable[str]) -> dict[str, str]:
    """Return digests of learners' sources by class. Raises UsageError for a learner that another
    process cannot import."""
    digests = {}
    for name in dict.fromkeys(classes):
        try:
            if not importable(cls := find_class(name)):
                raise ImportError("it is not in a module")
            digests[name] = code_key(cls)
        except (ImportError, InputError) as error:
            why = f"learner {name} cannot be imported here ({error})"
            raise UsageError(f"{why}: install it, or name its module with -p") from error
    return digests


def job_path(name: Path) -> Path:
    """Return the file of a job given as ``jobs/7`` or ``jobs/7.json``."""
    return name if name.suffix == ".json" or name.exists() else name.with_name(f"{name.name}.json")


def shard_path(name: Path) -> Path:
    """Return the shard of a job, next to its file."""
    return job_path(name).with_suffix(".db")


def job_text(job: JobFile) -> str:
    """Return the text of a job file."""
    content = asdict(job)
    return json.dumps({"format": FORMAT, **content, "sum": digest(content)})


def read_job(path: Path) -> JobFile:
    """Read a job file. Raises InputError if it is invalid or of another version."""
    try:
        return parse_job(path.read_text(encoding="utf-8"))
    except OSError as error:
        made_by = "'bench plan --jobs N -o FOLDER' writes job files"
        raise InputError(f"{path}: not a job file ({error.strerror}); {made_by}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a job file ({error}); plan the jobs again") from error


def parse_job(text: str) -> JobFile:
    """Inverse of ``job_text``; any exception means an invalid file."""
    document = with_tuples(json.loads(text))
    if document.pop("format") != FORMAT:
        raise ValueError("written by another version")
    if document.pop("sum", None) != digest(document):
        raise ValueError("changed after it was written")
    document |= {
        "fits": tuple(FitSpec(**with_tuples(spec)) for spec in document["fits"]),
        "trials": tuple(TrialSpec(**with_tuples(spec)) for spec in document["trials"]),
        "data": {at: DatasetUse.of(use) for at, use in document["data"].items()},
        "skipped": tuple(map(tuple, document["skipped"])),
    }
    return JobFile(**document)


def check_job(job: JobFile) -> None:
    """Raise InputError if this installation differs from the one that planned the job."""
    if (job.bench, job.scoring) != (__version__, SCORING):
        raise InputError(
            f"the job was planned by budget-bench {job.bench} (scoring {job.scoring}), here is "
            f"{__version__} (scoring {SCORING}): install the same version, or plan again"
        )
    here = learners_code(job.code)
    if other := sorted(name for name, code in job.code.items() if here[name] != code):
        raise InputError(
            f"the source of {', '.join(other)} differs from the plan's: install the same, or plan "
            "the jobs again"
        )
