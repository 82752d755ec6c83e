"""``bench plan``, ``work`` and ``merge``: preview a run, and run it in pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.outputs import check_outputs
from bench_core.cli.run import asked_for, failures, following, run_options, summary
from bench_core.errors import UsageError, one_line
from bench_core.planning.request import shell_word
from bench_core.terminal.tables import Table, complain, deliver
from bench_core.terminal.wording import count, duration

if TYPE_CHECKING:
    from bench_core.planning.plan import Plan
    from bench_core.planning.request import RunRequest


@click.command("plan")
@run_options
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Write at most N job files into the folder -o; 'bench work' runs each on any machine. "
    "--workers and --threads then apply to each job (default 1).",
)
@click.option(
    *("-o", "--output"),
    type=options.FILE,
    metavar="FILE",
    help="Write to this file instead of the terminal; with --jobs, the folder for job files.",
)
@options.common_options
def plan_command(jobs: int | None, output: Path | None, **arguments: Any) -> int:
    """Show the work of a run and its estimated time.

    Examples:
      bench plan --suite yahoo --learners miser,cegb
      bench plan --suite letters --profile standard --seeds 0-4
      bench plan --suite yahoo --configs 20 --jobs 64 -o jobs/     for other machines: bench work

    Takes the options of 'bench run'. Data are prepared, nothing is trained. The time is estimated
    from the store's durations for the same learners and data; without them, jobs are counted.
    """
    from bench_core.execution.orchestration import planned, registry_of

    request = asked_for(**arguments)
    if jobs and output is None:
        raise UsageError("--jobs writes files: name their folder with -o, as in -o jobs/")
    if not jobs and output is not None:
        check_outputs("output")
    with following() as show:
        plan = planned(request, registry_of(request), show)
    # a suite may name the executor
    request = replace(request, executor=plan.executor)
    if jobs and output:
        print("\n".join([*write(plan, request, output, jobs), *spent(plan)]))
    else:
        deliver(table(plan), output)
    return 0


def write(plan: Plan, request: RunRequest, folder: Path, count: int) -> list[str]:
    """Write job files; return lines on their content and how to run them."""
    from bench_core.planning.job_files import write_jobs

    jobs = write_jobs(plan, request, folder, count)
    # cores of one job, for the scheduler
    cores = (request.workers or 1) * (request.threads or 1)
    n, place = len(jobs), shell_word(str(folder))
    known = plan.estimate.recorded == plan.estimate.jobs
    longest = f", the longest about {duration(jobs[0])}" if known else ""
    in_array = shell_word(f"bench work {place}/$SLURM_ARRAY_TASK_ID")
    return [
        f"{n} job files in {one_line(str(folder))}{longest}",
        f"one machine:  seq {n} | xargs -P 2 -I{{}} bench work {place}/{{}}",
        f"SLURM:        sbatch --array=1-{n} --cpus-per-task={cores} --wrap {in_array}",
        f"then:         bench merge {place}/*.db{options.store_words(request.store)}",
    ]


def table(plan: Plan) -> Table:
    """Return one row for each data set and learner: trials to do and finished."""
    from bench_core.planning.plan import trials_left

    finished = Counter((t.dataset, t.learner) for t in plan.trials if t.key in plan.finished)
    to_do = Counter((t.dataset, t.learner) for t in trials_left(plan))
    places = dict.fromkeys((t.dataset, t.learner) for t in plan.trials)
    rows = [(*place, str(to_do[place]), str(finished[place])) for place in places]
    fits = sum(fit.key not in plan.finished_fits for fit in plan.fits)
    reasons = Counter(reason for _, reason in plan.skipped)
    footer = [
        f"{count(fits, 'fit')} and {count(to_do.total(), 'trial')} to do",
        *spent(plan),
        *(f"skipped ({n}): {reason}" for reason, n in reasons.items()),
    ]
    titles = ("data set", "learner", "trials to do", "finished")
    return Table(titles, rows, "learner", right=titles[2:], footer=footer)


def spent(plan: Plan) -> list[str]:
    """Return lines on a plan's time, estimated from recorded durations."""
    estimate = plan.estimate
    if not estimate.jobs:
        return []
    # a job's time is known if its learner ran on these data before
    if not estimate.recorded:
        return [
            f"time: not known before the first run of these learners on these data ({estimate.jobs}"
            " jobs); on a terminal 'bench run' shows the time left from its first jobs on"
        ]
    hours, unknown = estimate.work * plan.threads / 3600, estimate.jobs - estimate.recorded
    lines = [
        f"time: {'at least' if unknown else 'about'} {duration(estimate.wall)} with "
        f"{count(plan.workers, 'worker')} ({hours:.2g} core hours), from the medians "
        "of recorded durations"
    ]
    if unknown:
        lines.append(f"not counted: {unknown} of {estimate.jobs} jobs without recorded durations")
    return lines


@click.command("work")
@click.argument("job", type=options.FILE)
@options.request_option("workers", help="Jobs at the same time; default: as planned.")
@options.request_option("threads", help="Threads of each job; default: as planned.")
@options.data_dir_option
@options.no_progress_option
@options.common_options
def work_command(
    job: Path, workers: int, threads: int, data_dir: str, plugins: Sequence[str]
) -> int:
    """Run one job file of 'bench plan --jobs' on this machine.

    JOB is a file, with or without .json; a shard with its fits and trials is written next to it.
    Prepared data are used from the plan's place if they exist, else prepared from their files.

    Examples:
      bench work jobs/7
      seq 64 | xargs -P 4 -I{} bench work jobs/{}
      sbatch --array=1-64 --wrap 'bench work jobs/$SLURM_ARRAY_TASK_ID'

    Results go to the shard jobs/7.db with its models and checksums; 'bench merge jobs/*.db' merges
    shards into a store. Repeat the command to restart killed work; finished work is kept.
    """
    from bench_core.execution.work import work
    from bench_core.planning.job_files import job_path, read_job, shard_path

    path = job_path(job)
    piece, shard = read_job(path), shard_path(job)
    options.find_plugins_here()  # for modules of the plan
    piece = replace(piece, workers=workers or piece.workers, threads=threads or piece.threads)
    with following("; repeat the command to continue") as show:
        result = work(piece, shard, show, data_dir, plugins)
    for line in failures(result):
        complain(line)
    options.note(summary(result))
    return result.exit_status


@click.command("merge")
@click.argument("stores", nargs=-1, type=options.FILE, metavar="STORE...")
@options.store_option
@options.quiet_option
@options.debug_option
def merge_command(stores: tuple[Path, ...], store: Path) -> None:
    """Merge shards or other stores into one store.

    Runs, trials, logs and fitted models of each STORE go into --store.

    Examples:
      bench merge jobs/*.db                     the shards of 'bench work'
      bench merge alice.db bob.db --store both.db

    The order does not matter, and merging twice changes nothing. A store is refused as a whole if
    it has other results under the same key; the error names the row.
    """
    from bench_core.results.merge import merge
    from bench_core.results.store import Store

    if not stores:
        raise UsageError("nothing to merge: name shards or stores, as in bench merge jobs/*.db")
    brought = merge(store, stores)
    new = f"{count(brought.trials, 'finished trial')} and {count(brought.fits, 'fit')}"
    options.note(f"merged {count(len(stores), 'store')} into {store}: {new} added")
    kept = Store(store)
    for name in brought.runs:
        info = kept.info(name)
        options.note(f"run {name}: {sum(info.counts.values())} of {info.planned} trials")
