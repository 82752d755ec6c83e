"""Processor seconds of fits and trials of all learners, from which foresight judges by size.

    python tests/speed/job_seconds.py run --data digits --data-dir FOLDER --seconds seconds.jsonl
    python tests/speed/job_seconds.py run --suite letters --data-dir FOLDER --seconds seconds.jsonl
    python tests/speed/job_seconds.py table --seconds seconds.jsonl
    python tests/speed/job_seconds.py apart --seconds seconds.jsonl

``run`` does all learners at their default settings on one data set, or a suite in profile quick,
inline on one thread, and adds the processor seconds of each job to a file (to be done once before,
so that all kernels are compiled). ``table`` prints bench_core/planning/job_seconds.csv, with the
median of jobs of about the same size, and the probe of the machine. ``apart`` prints what a table
without a suite says of it, over what it took.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench_core import api
from bench_core.execution.events import Event
from bench_core.planning.foresight import START_SECONDS
from bench_core.planning.job_seconds import (
    Kind,
    Size,
    job_units,
    kind_of,
    probe_seconds,
    size_of,
    unit_means,
    unit_seconds,
)


def run(data: str, suite: str, data_dir: str, into: Path) -> None:
    began: dict[str, float] = {}
    taken: dict[str, float] = {}

    def hear(event: Event) -> None:
        if event.kind == "start":
            began[event.key] = time.process_time()
        elif event.kind == "finish" and event.status == "ok":
            taken[event.key.partition(":")[2]] = time.process_time() - began[event.key]

    with tempfile.TemporaryDirectory() as folder:
        about: dict[str, Any] = {"data": data, "learners": "all", "configs": 1}
        if suite:
            about = {"suite": suite, "profile": "quick", "seeds": 0}
        about |= {"data_dir": data_dir, "threads": 1}
        about |= {"store": f"{folder}/x.db", "executor": "inline", "progress": False}
        plan = api.plan(**about)
        api.run(**about, on_event=hear)
    sizes = {use.name: size_of(use.features, use.classes, use.rows) for use in plan.datasets}
    with into.open("a", encoding="utf-8") as lines:
        for kind, specs in (("fit", plan.fits), ("trial", plan.trials)):
            for spec in specs:
                if spec.key in taken:
                    row = {"data": f"{suite} {spec.dataset}", "kind": kind}
                    about = {"of": kind_of(spec)[1:], "size": sizes[spec.dataset]}
                    row |= about | {"seconds": max(taken[spec.key], 1e-3)}
                    print(json.dumps(row), file=lines)


Job = tuple[str, ...]  # fit or trial, learner, data set
Measured = dict[Job, dict[float, float]]


class Row(NamedTuple):
    """A job that was measured."""

    suite: str
    job: Job
    units: float
    seconds: float


def read(seconds: Path) -> list[Row]:
    rows = []
    for line in seconds.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        suite, _, data = row["data"].rpartition(" ")
        kind, size = Kind(data, *row["of"]), Size(*row["size"])
        units = job_units(kind, size)[row["kind"] == "trial"]
        rows.append(Row(suite, (row["kind"], kind.learner, data), units, row["seconds"]))
    return rows


def medians(rows: list[Row]) -> dict[Job, dict[float, float]]:
    """Seconds by units, rounded, of the learners' jobs on each data set."""
    found: dict[tuple[Job, float], list[float]] = defaultdict(list)
    for row in rows:
        found[row.job, float(f"{row.units:.1e}")].append(row.seconds)
    jobs: dict[Job, dict[float, float]] = defaultdict(dict)
    for (job, units), seconds in sorted(found.items()):
        jobs[job][units] = median(seconds)
    return jobs


def table(rows: list[Row]) -> None:
    lines = csv.writer(sys.stdout, lineterminator="\n")
    lines.writerow(["job", "learner", "data set", "units", "seconds"])
    for job, seconds in medians(rows).items():
        for units, each in seconds.items():
            lines.writerow([*job, f"{units:.2g}", f"{each:.2g}"])
    print(f"PROBE = {probe_seconds():.2g}", file=sys.stderr)


def apart(rows: list[Row]) -> None:
    """Of each suite the seconds by a table without it over those that it took."""
    for suite in sorted({row.suite for row in rows} - {""}):
        own = [row for row in rows if row.suite == suite]
        rest = medians([row for row in rows if row.suite != suite])
        rates = {job: {u: s / u for u, s in jobs.items()} for job, jobs in rest.items()}
        rates |= unit_means(rates)
        told = sum(row.units * unit_seconds(rates, row.job, row.units) for row in own)
        taken = sum(row.seconds for row in own)
        wall = (told / 2 + START_SECONDS) / (taken / 2 + START_SECONDS)
        print(f"{suite}: {told:.3g} s told, {taken:.3g} s taken; with two workers {wall:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "table", "apart"))
    parser.add_argument("--data", default="digits")
    parser.add_argument("--suite", default="")
    parser.add_argument("--data-dir", default="")
    parser.add_argument("--seconds", type=Path, default=Path("seconds.jsonl"))
    given = parser.parse_args()
    if given.what == "run":
        run(given.data, given.suite, given.data_dir, given.seconds)
    else:
        {"table": table, "apart": apart}[given.what](read(given.seconds))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    main()
