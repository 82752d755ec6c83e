"""Processor seconds of fits and trials of all learners, from which foresight judges by size.

    python tests/speed/job_seconds.py run --data digits --data-dir FOLDER --seconds seconds.jsonl
    python tests/speed/job_seconds.py run --suite letters --data-dir FOLDER --seconds seconds.jsonl
    python tests/speed/job_seconds.py table --seconds seconds.jsonl
    python tests/speed/job_seconds.py apart --seconds seconds.jsonl

``run`` does all learners at their default settings on one data set, or a suite in profile quick,
inline on one thread, and adds the processor seconds of each job to a file (to be done once before,
so that all kernels are compiled). ``table`` prints the values of
bench_core/planning/job_seconds.py: by learner the geometric means of the microseconds of a fit and
of a trial of unit size, over data sets and the suites' data sets, each by its median. ``apart``
prints what a table without a suite says of it, over what it took.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

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


Row = dict[str, Any]


def read(seconds: Path) -> list[Row]:
    return [json.loads(line) for line in seconds.read_text(encoding="utf-8").splitlines()]


def units(row: Row) -> float:
    kind, size = Kind("", *row["of"]), Size(*row["size"])
    return job_units(kind, size)[row["kind"] == "trial"]


def each(rows: list[Row]) -> dict[tuple[str, str], float]:
    """By learner and kind the seconds of unit size: geometric mean over data of the medians."""
    known: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        known[row["of"][0], row["kind"], row["data"]].append(row["seconds"] / units(row))
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (learner, kind, _), values in known.items():
        found[learner, kind].append(median(values))
    return {of: geometric_mean(values) for of, values in found.items()}


def table(rows: list[Row]) -> None:
    found = {of: 1e6 * value for of, value in each(rows).items()}
    print(f"PROBE = {probe_seconds():.2g}")
    pairs = {
        learner: [found[learner, kind] for kind in ("fit", "trial")]
        for learner in sorted({learner for learner, _ in found})
    }
    usual = (median(pair[i] for pair in pairs.values()) for i in (0, 1))
    print(f"STRANGER = ({', '.join(f'{each:.2g}' for each in usual)})")
    for learner, pair in pairs.items():
        print(f'    "{learner}": ({", ".join(f"{each:.2g}" for each in pair)}),')


def apart(rows: list[Row]) -> None:
    """Of each suite the seconds by a table without it over those that it took."""
    suite_of = [row["data"].partition(" ")[0] for row in rows]
    for suite in sorted({*suite_of} - {""}):
        own = [row for row, name in zip(rows, suite_of, strict=True) if name == suite]
        known = each([row for row, name in zip(rows, suite_of, strict=True) if name != suite])
        usual = {k: median(v for (_, of), v in known.items() if of == k) for k in ("fit", "trial")}
        told = sum(units(r) * known.get((r["of"][0], r["kind"]), usual[r["kind"]]) for r in own)
        taken = sum(row["seconds"] for row in own)
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
