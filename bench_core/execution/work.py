"""Run one job file: its fits and trials go to a shard, a separate results store.

Only the package, the job file and the data are needed. Results in the shard are reused, so a killed
job continues when it is started again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_core.datasets.cache import Prepared, open_prepared, prepare
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.user_datasets import open_registry
from bench_core.errors import BenchError, InputError, option
from bench_core.execution.runner import Reused, RunResult, carry_out
from bench_core.planning.job_files import JobFile, check_job
from bench_core.planning.plan import Event, OnEvent, resumed
from bench_core.planning.resolve_datasets import choose_datasets
from bench_core.planning.resolve_learners import parse_setting
from bench_core.planning.suites import NO_SUITE, find_suite
from bench_core.plugins import Registry
from bench_core.results.records import DatasetUse, Job
from bench_core.results.store_files import states_folder
from bench_core.results.writer import open_writer


def work(
    job: JobFile,
    shard: Path,
    emit: OnEvent,
    data_dir: str = "",
    plugins: Sequence[str] = (),
    earlier: Reused | None = None,
) -> RunResult:
    """Do the missing work of a job. Raises ``Interrupted`` on Ctrl-C, InputError if data, code or
    version differ from the plan's. ``earlier``: what earlier jobs of the run left to be reused."""
    modules = dict.fromkeys([*job.request.plugins, *plugins])
    registry = (earlier and earlier.registry) or open_registry(modules, data_dir)
    if earlier is not None:
        earlier.registry = registry
    check_job(job)
    places = {path: _data(path, job, registry, emit, data_dir) for path in job.data}
    states = str(states_folder(shard).absolute())

    def here(each: Job) -> Job:
        return replace(each, spec=replace(each.spec, data=places[each.spec.data], states=states))

    request = replace(job.request, store=str(shard), data_dir=data_dir, fresh=False)
    plan = replace(resumed(job.plan, request), workers=job.workers, threads=job.threads)
    of_run: dict[str, Any] = {"about": job.about, "listed": job.listed, "here": here}
    with open_writer(shard) as writer:
        return carry_out(plan, request, registry, writer, emit, **of_run, reused=earlier)


def _data(path: str, job: JobFile, registry: Registry, emit: OnEvent, data_dir: str) -> str:
    """Folder of prepared data, at the plan's path or prepared here.

    Raises InputError if the data differ from the plan's, or cannot be prepared.
    """
    use = job.data[path]
    with suppress(InputError):
        if open_prepared(path).fingerprint == use.fingerprint:
            return path
    try:
        prepared = _prepared(use, job, registry, emit, data_dir)
    except BenchError as error:
        why = f"{use.name} is missing at {path} and cannot be prepared here"
        raise InputError(f"{why}: {error}") from error
    if prepared.splits.fingerprint != use.fingerprint:
        raise InputError(
            f"{use.name}, prepared here, has the fingerprint {prepared.splits.fingerprint[:12]}, "
            f"the plan has {use.fingerprint[:12]}: use the same files, or plan again"
        )
    return str(prepared.path)


def _prepared(
    use: DatasetUse, job: JobFile, registry: Registry, emit: OnEvent, data_dir: str
) -> Prepared:
    request = replace(job.request, data_dir=data_dir)
    settings = tuple(map(parse_setting, request.settings))
    suite = find_suite(request.suite, registry) if request.suite else NO_SUITE
    source = DataFolder(data_dir or None)
    ignore = lambda line, warning: None  # noqa: E731
    chosen, _ = choose_datasets(request, suite, registry, source, settings, ignore)
    label = use.same_as or use.name  # another accounting of the same data
    dataset = next((c.dataset for c in chosen if c.label == label), None)
    if dataset is None:
        raise InputError(f"its files are not here: name their folder with {option('data_dir')}")

    def say(line: str) -> None:
        emit(Event("prepare", line, title=label, dataset=label))

    return prepare(dataset, use.size, use.fold, use.seed, source, say=say)
