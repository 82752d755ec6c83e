"""Foresight of `bench plan` beside what the run then takes, by the clock.

    python tests/speed/foresight.py quickstart cstc-synthetic thyroid --data-dir FOLDER

For each suite in a fresh store: seed 0 with nothing recorded, then seed 1 with the durations of
seed 0. Prints rows for docs/scale.md. Kernels are compiled before, as plan counts those apart.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}
TIME = re.compile(r"time: about (.+), 9 times in 10 at most (.+)")
PART = re.compile(r"([\d.]+) (s|min|h)")


def bench(verb: str, suite: str, seed: int, store: Path, more: list[str]) -> tuple[float, str]:
    """Seconds of the clock of one command, and what it printed."""
    how = ["--suite", suite, "--seeds", str(seed), "--store", str(store), "--no-progress", *more]
    start = time.monotonic()
    command = [sys.executable, "-m", "bench_core", verb, *how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.monotonic() - start, done.stdout + done.stderr


def seconds(text: str) -> float:
    """Of a time such as 1 min 14 s."""
    return sum(float(number) * UNITS[unit] for number, unit in PART.findall(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+")
    parser.add_argument("--data-dir", default=os.environ.get("BENCH_DATA", ""))
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--workers", default="2")
    given = parser.parse_args()
    more = ["--profile", given.profile, "-w", given.workers, "-t", "1"]
    more += ["--data-dir", given.data_dir] if given.data_dir else []
    print("| suite | recorded before | foreseen, p50 | p90 | taken | p90 over taken | load |")
    print("|---|---|---|---|---|---|---|")
    for suite in given.suites:
        with tempfile.TemporaryDirectory() as folder:
            store = Path(folder) / "bench.db"
            for seed, recorded in enumerate(("nothing", "seed 0")):
                _, plan = bench("plan", suite, seed, store, more)
                found = TIME.search(plan)
                assert found is not None, plan
                half, ninth = map(seconds, found.groups())
                load = os.getloadavg()[0]
                taken, _ = bench("run", suite, seed, store, more)
                figures = f"{half:.3g} s | {ninth:.3g} s | {taken:.3g} s | {ninth / taken:.2f}"
                print(f"| `{suite}` | {recorded} | {figures} | {load:.1f} |", flush=True)


if __name__ == "__main__":
    main()
