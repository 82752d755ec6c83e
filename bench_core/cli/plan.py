"""``bench plan``: what a run would do, without doing it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.run import following, request, run_options
from bench_core.errors import UsageError, one_line
from bench_core.planning.invocation import shell_word
from bench_core.planning.option import number, whole
from bench_core.terminal.tables import Table, check_output, deliver
from bench_core.terminal.wording import cost, count, duration

if TYPE_CHECKING:
    from bench_core.planning.plan import Plan
    from bench_core.planning.request import RunRequest


@click.command(
    "plan",
    short_help="Show what a run would do and how long it may take.",
    epilog="""\b
Examples:
  bench plan --suite yahoo --learners miser,cegb
  bench plan --suite letters --profile standard --seeds 0-4
  bench plan --suite yahoo --configs 20 --jobs 64 -o jobs/     for other machines: bench work

\b
Takes the options of 'bench run'. Data is prepared, nothing is trained. The time comes from the
durations in the store of the same learners on the same data; without them jobs are counted.""",
)
@run_options
@click.option(
    "--jobs",
    type=options.Written(whole(1)),
    default=0,
    metavar="N",
    help="Write at most N job files into the folder -o, each to be done by 'bench work' on any "
    "machine; --workers and --threads then hold for each job (default 1).",
)
@click.option(
    "--core-hour",
    type=options.Written(number(0)),
    metavar="PRICE",
    help="What an hour of one core costs: the price of the plan is shown too.",
)
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to this file instead of the terminal; with --jobs the folder of the job files.",
)
@options.common_options
def command(jobs: int, core_hour: float | None, output: Path | None, **given: Any) -> int:
    """Show what 'bench run' with the same options would do, and how long it may take."""
    from bench_core.api.orchestration import planned, registry_of

    asked = request(**given)
    if jobs and output is None:
        raise UsageError("--jobs writes files: name their folder with -o, as in -o jobs/")
    if not jobs and output is not None:
        check_output(output)
    with following() as show:
        made = planned(asked, registry_of(asked), show)
    asked = replace(asked, executor=made.executor)
    if jobs and output:
        print("\n".join([*write(made, asked, output, jobs), *spent(made, core_hour)]))
    else:
        deliver(table(made, core_hour), output)
    return 0


def write(plan: Plan, request: RunRequest, folder: Path, count: int) -> list[str]:
    """Write job files; lines that say what they hold and how they are done."""
    from bench_core.planning.job_files import write_jobs

    jobs = write_jobs(plan, request, folder, count)
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


def table(plan: Plan, core_hour: float | None = None) -> Table:
    """One row for each data set and learner: trials to do and finished."""
    skipped = {key for key, _ in plan.skipped}
    to_do: Counter[tuple[str, str]] = Counter()
    finished: Counter[tuple[str, str]] = Counter()
    for trial in plan.trials:
        place = (trial.dataset, trial.learner)
        done = trial.key in plan.finished
        finished[place] += done
        to_do[place] += not done and trial.key not in skipped
    rows = [(*place, str(n), str(finished[place])) for place, n in to_do.items()]
    titles = ("data set", "learner", "trials to do", "finished")
    return Table(titles, rows, "learner", right=titles[2:], footer=_footer(plan, core_hour))


def _footer(plan: Plan, core_hour: float | None) -> list[str]:
    trials = sum(t.key not in plan.finished for t in plan.trials) - len(plan.skipped)
    fits = sum(f.key not in plan.finished_fits for f in plan.fits)
    reasons = Counter(reason for _, reason in plan.skipped)
    skipped = [f"skipped ({n}): {reason}" for reason, n in reasons.items()]
    return [
        f"{count(fits, 'fit')} and {count(trials, 'trial')} to do",
        *spent(plan, core_hour),
        *skipped,
    ]


def spent(plan: Plan, core_hour: float | None) -> list[str]:
    """The time and the price of a plan as far as recorded durations tell."""
    known = plan.estimate
    if not known.jobs:
        return []
    if not known.recorded:
        return [f"time: unknown, as none of the {known.jobs} jobs' learners ran on these data yet"]
    hours = known.work * plan.threads / 3600
    lines = [
        f"time: about {duration(known.wall)} with {count(plan.workers, 'worker')} "
        f"({hours:.2g} core hours), from the medians of recorded durations"
    ]
    if core_hour is not None:
        lines.append(f"price: {cost(hours * core_hour)}")
    if known.recorded < known.jobs:
        unknown = known.jobs - known.recorded
        lines.append(f"not counted: {unknown} of {known.jobs} jobs, of learners never timed here")
    return lines
