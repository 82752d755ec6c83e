"""Job files: a plan cut into pieces that can be done anywhere, in any order, each on its own.

A fit is trained once: all that stands on one base, however far, is in one job. Such groups are
handed out by their expected seconds, the longest first, each to the job that has the least so far.
A job file holds all that ``bench work`` needs next to the package and the data.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench_core import __version__
from bench_core._io.digests import modules_key
from bench_core._io.files import atomic_file
from bench_core.datasets.pricing import to_json
from bench_core.errors import InputError, UsageError
from bench_core.planning.keys import SCORING
from bench_core.planning.plan import Plan, about_run, fits_left, trials_left, trials_skipped
from bench_core.planning.request import RunRequest
from bench_core.results.merge import copy_fits
from bench_core.results.records import FitSpec, TrialSpec, with_tuples
from bench_core.results.store_files import store_path

FORMAT = 3


@dataclass(frozen=True, slots=True)
class DataPlace:
    """The place of a prepared fold when the plan was made, and what prepares it again."""

    path: str
    dataset: str
    fold: int
    seed: int
    size: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """One piece of a plan.

    ``listed`` are the keys of all trials of the run, ``trials`` those to be done here, ``fits`` in
    an order in which each follows those it stands on, of which the shard begins with those that are
    ``ready``. ``code`` are digests of the learners' sources by class, and ``modules`` those that
    each begins with. ``skipped``: trial specifications that cannot be done, each with the reason.
    """

    bench: str
    scoring: int
    run: str
    about: Mapping[str, Any]
    listed: tuple[str, ...]
    data: tuple[DataPlace, ...]
    fits: tuple[FitSpec, ...]
    trials: tuple[TrialSpec, ...]
    costs: Mapping[str, Any]  # from to_json, by their keys
    code: Mapping[str, str]
    modules: Mapping[str, tuple[str, ...]]
    workers: int
    threads: int
    timeout: float
    memory: int
    seconds: float
    ready: tuple[str, ...] = ()
    skipped: tuple[tuple[TrialSpec, str], ...] = ()

    @property
    def request(self) -> RunRequest:
        """The request of the run, with the limits of this job."""
        asked = self.about["request"]
        executor = "inline" if asked.get("executor") == "inline" else "local"
        limits = {"timeout": self.timeout, "memory": self.memory}
        return RunRequest.of(asked, executor=executor, **limits)


def write_jobs(plan: Plan, request: RunRequest, folder: Path, count: int) -> list[float]:
    """Write at most ``count`` files ``1.json``, ``2.json``, ... of what is left of a plan; the
    expected seconds of each.

    Fits that the store has already are copied into the shards of the jobs that stand on them.
    Raises UsageError where there is nothing to do or another process could not import a learner.
    """
    if next(folder.glob("*.json"), None):
        raise UsageError(f"-o {folder}: there are job files already; name another folder")
    jobs = cut(plan, request, count)
    if not jobs:
        raise UsageError("nothing to do: the store has all trials of this plan; see bench report")
    for number, job in enumerate(jobs, start=1):
        with atomic_file(folder / f"{number}.json") as new:
            new.write_text(job_text(job), encoding="utf-8")
        begin_shard(job, shard_path(folder / str(number)), store_path(request.store))
    return [job.seconds for job in jobs]


def cut(plan: Plan, request: RunRequest, count: int) -> list[JobFile]:
    """The rest of a plan in at most ``count`` jobs, the longest first."""
    cutter = Cutter(plan, request, [trial.key for trial in plan.trials])
    jobs = [
        cutter.job(
            [fit for group in held for fit in group.fits],
            [trial for group in held for trial in group.trials],
            plan.finished_fits,
        )
        for held in _dealt(groups_of(plan), count)
    ]
    if jobs and (skipped := tuple(trials_skipped(plan))):
        jobs[0] = replace(jobs[0], skipped=skipped)
    return jobs


class Cutter:
    """Makes job files of a plan; ``listed`` are the keys of the trials that each says its run
    has."""

    def __init__(self, plan: Plan, request: RunRequest, listed: Iterable[str] = ()) -> None:
        self._plan = plan
        self._fits = {fit.key: fit for fit in plan.fits}
        self._seconds = expected_seconds(plan)
        self._places = _places(plan)
        self._code = learners_code(plan.modules)
        self._same: dict[str, Any] = {
            "bench": __version__,
            "scoring": SCORING,
            "run": plan.run,
            "about": about_run(plan, request),
            "listed": tuple(listed),
            "workers": request.workers or 1,
            "threads": request.threads or 1,
            "timeout": request.timeout,
            "memory": request.memory,
        }

    def job(
        self, fits: Sequence[FitSpec], trials: Sequence[TrialSpec], finished: Set[str]
    ) -> JobFile:
        """A job of these fits and trials, which stand on them and on ``finished`` ones."""
        ready = self._ready(fits, trials, finished)
        wanted = {fit.key for fit in fits} | ready
        specs: list[FitSpec | TrialSpec] = [*fits, *trials]
        kept = tuple(fit for fit in self._plan.fits if fit.key in wanted)
        classes = {name for fit in kept for name in _classes(fit.learner)}
        return JobFile(
            **self._same,
            code={name: self._code[name] for name in classes},
            modules={name: self._plan.modules[name] for name in classes},
            fits=kept,
            trials=tuple(trials),
            ready=tuple(sorted(ready)),
            data=tuple(self._places[data] for data in dict.fromkeys(s.data for s in specs)),
            costs={s.costs: to_json(self._plan.costs[s.costs]) for s in specs if s.costs},
            seconds=sum(self._seconds[spec.key] for spec in specs),
        )

    def _ready(
        self, fits: Iterable[FitSpec], trials: Iterable[TrialSpec], finished: Set[str]
    ) -> set[str]:
        """The finished fits that a job stands on, with those whose arrays they may share."""
        due = [t.fit for t in trials] + [need for fit in fits for need in fit.needs.values()]
        ready: set[str] = set()
        while due:
            key = due.pop()
            if key in finished and key not in ready:
                ready.add(key)
                due += self._fits[key].needs.values()
        return ready


def begin_shard(job: JobFile, shard: Path, store: Path) -> None:
    """Put the finished fits that a job stands on into its shard."""
    if job.ready:
        copy_fits(shard, store, job.ready)


@dataclass(slots=True)
class Group:
    """Trials and the fits under them that share one base."""

    fits: list[FitSpec]
    trials: list[TrialSpec]
    seconds: float = 0.0


def expected_seconds(plan: Plan) -> dict[str, float]:
    """Seconds of each job by its key: a job that nothing like it was timed before counts as the
    mean of those known, or as a second."""
    known = plan.expected
    usual = sum(known.values()) / len(known) if known else 1.0
    jobs: list[FitSpec | TrialSpec] = [*plan.fits, *plan.trials]
    return {job.key: known.get(job.key, usual) for job in jobs}


def groups_of(plan: Plan) -> list[Group]:
    """The rest of a plan, cut where nothing is shared; in each group the longest trial first."""
    root: dict[str, str] = {}
    expected = expected_seconds(plan)

    def find(key: str) -> str:
        while (above := root.setdefault(key, key)) != key:
            root[key] = root[above]
            key = root[key]
        return key

    left = fits_left(plan)
    for fit in left:
        for need in fit.needs.values():
            root[find(fit.key)] = find(need)
    groups: dict[str, Group] = {}
    for fit in left:
        group = groups.setdefault(find(fit.key), Group([], []))
        group.fits.append(fit)
        group.seconds += expected[fit.key]
    for trial in trials_left(plan):
        group = groups.setdefault(find(trial.fit), Group([], []))
        group.trials.append(trial)
        group.seconds += expected[trial.key]
    return list(groups.values())


def _dealt(groups: list[Group], count: int) -> list[list[Group]]:
    """The groups of each job, the longest job first: the longest group to the job that has least
    to do so far."""
    jobs: list[tuple[float, int, list[Group]]] = [
        (0.0, number, []) for number in range(min(count, len(groups)))
    ]
    for group in sorted(groups, key=lambda group: -group.seconds):
        taken, number, held = jobs[0]
        held.append(group)
        heapq.heapreplace(jobs, (taken + group.seconds, number, held))
    return [held for _, _, held in sorted(jobs, key=lambda job: (-job[0], job[1]))]


def _classes(learner: Mapping[str, Any]) -> Iterator[str]:
    """The class of an encoded learner, and those of the learners inside it."""
    yield learner["class"]
    for value in learner["fields"].values():
        if isinstance(value, Mapping) and "class" in value:
            yield from _classes(value)


def _places(plan: Plan) -> dict[str, DataPlace]:
    """The prepared data of a plan by their folders."""
    sizes = {(use.name, use.fold, use.seed): use.size for use in plan.datasets}
    return {
        t.data: DataPlace(
            t.data, t.dataset, t.fold, t.seed, sizes[t.dataset, t.fold, t.seed], t.fingerprint
        )
        for t in plan.trials
    }


def learners_code(modules: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Digests of the sources of learners by class; none is imported.

    Raises UsageError where another process could not import one.
    """
    found = {}
    for name, behind in modules.items():
        try:
            if "<locals>" in name or name.startswith("__main__:"):
                raise ImportError("it is in no module")
            found[name] = modules_key(behind)
        except ImportError as error:
            why = f"learner {name} cannot be imported here ({error})"
            raise UsageError(f"{why}: install it, or name its module with -p") from error
    return found


def job_path(name: Path) -> Path:
    """The file of a job given as ``jobs/7`` or ``jobs/7.json``."""
    return name if name.suffix == ".json" else name.with_name(f"{name.name}.json")


def shard_path(name: Path) -> Path:
    """The shard of a job given likewise, next to it."""
    return job_path(name).with_suffix(".db")


def job_text(job: JobFile) -> str:
    """A job as the text of its file."""
    return json.dumps({"format": FORMAT, **asdict(job)})


def read_job(path: Path) -> JobFile:
    """The job in a file. Raises InputError where it is none, or of another version."""
    try:
        return parse_job(path.read_text(encoding="utf-8"))
    except OSError as error:
        made_by = "'bench plan --jobs N -o FOLDER' writes job files"
        raise InputError(f"{path}: no job file ({error.strerror}); {made_by}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: not a job file ({error}); plan the jobs again") from error


def parse_job(text: str) -> JobFile:
    """The inverse of ``job_text``; whatever is wrong is raised."""
    document = json.loads(text)
    if document.pop("format") != FORMAT:
        raise ValueError("written by another version")
    made: dict[str, Any] = {
        "modules": with_tuples(document["modules"]),
        "fits": tuple(FitSpec(**with_tuples(spec)) for spec in document["fits"]),
        "trials": tuple(TrialSpec(**with_tuples(spec)) for spec in document["trials"]),
        "data": tuple(DataPlace(**place) for place in document["data"]),
        "skipped": tuple(
            (TrialSpec(**with_tuples(spec)), reason) for spec, reason in document["skipped"]
        ),
    }
    return JobFile(**with_tuples(document) | made)


def check_job(job: JobFile) -> None:
    """Refuse a job that this installation would do otherwise than the one that planned it."""
    if (job.bench, job.scoring) != (__version__, SCORING):
        raise InputError(
            f"the job was planned by budget-bench {job.bench} (scoring {job.scoring}), here is "
            f"{__version__} (scoring {SCORING}): install the same version, or plan again"
        )
    here = learners_code(job.modules)
    if other := sorted(name for name, code in job.code.items() if here.get(name) != code):
        raise InputError(
            f"the source of {', '.join(other)} is not that of the plan: install the same, or plan "
            "the jobs again"
        )
