"""``bench work``: one job file of ``bench plan --jobs``, done on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from bench_core.cli import options
from bench_core.cli.run import failures, following, summary


@click.command(
    "work",
    short_help="Do one job file of 'bench plan --jobs', here.",
    epilog="""\b
Examples:
  bench work jobs/7
  seq 64 | xargs -P 4 -I{} bench work jobs/{}
  sbatch --array=1-64 --wrap 'bench work jobs/$SLURM_ARRAY_TASK_ID'

\b
Results go to the shard jobs/7.db with its models and a list of sums; 'bench merge jobs/*.db' brings
shards into a store. What was killed is started again; what is done is not done twice.""",
)
@click.argument("job", type=click.Path(path_type=Path))
@options.request_option("workers", help="Jobs at the same time; default: as planned.")
@options.request_option("threads", help="Threads of each job; default: as planned.")
@options.data_dir_option
@options.no_progress_option
@options.common_options
def command(job: Path, workers: int, threads: int, data_dir: str, plugins: Sequence[str]) -> int:
    """Do the fits and trials of JOB (a file, with or without .json), and leave a shard next to it.

    Data are taken where the plan had them; where they are not, they are prepared from their files.
    """
    from bench_core.execution.work import work
    from bench_core.planning.job_files import job_path, read_job, shard_path

    path, shard = job_path(job), shard_path(job)
    piece = read_job(path)
    options.find_plugins_here()  # for modules of the plan
    piece = replace(piece, workers=workers or piece.workers, threads=threads or piece.threads)
    with following("; the same command does the rest") as show:
        result = work(piece, shard, show, data_dir, plugins)
    for line in failures(result):
        options.complain(line)
    options.note(summary(result))
    return result.exit_status
