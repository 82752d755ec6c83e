"""What compiling costs on a machine that has never run the benchmark.

    pytest -m speed tests/speed/test_cold_start.py

``bench run`` with every learner and ranking metric on a ranking file, large enough for the compiled
reader, with an empty ``NUMBA_CACHE_DIR``; the same again; and every learner on a file of two
classes. Reported are wall and processor seconds of the first two runs, and processor seconds of
each kernel that was compiled. Fails where a later run compiles anything, or a kernel is compiled
for a second kind of arguments; never on a time.
"""

import json
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from paired import SCALE, alternate, report, value

pytestmark = pytest.mark.speed

COMPILING = 25.0  # the bar, in processor seconds
LEARNERS = "all" if SCALE == 1 else "gbrt,cegb"
ROWS = {"train": 240, "test": 120}
METRICS = "ndcg@5,precision@5,ap@5,leading_run_precision@5,err@5,mrr@10"
COMMENT = " # " + "-" * 40_000  # makes few rows a file that the compiled reader takes

RUN = """
import json, sys, time
from numba.core import event

class Compiled(event.Listener):
    kernels, depth, start = [], 0, 0.0

    def on_start(self, e):
        if not self.depth:
            self.start = time.process_time()
        self.depth += 1

    def on_end(self, e):
        self.depth -= 1
        if not self.depth:
            kernel = e.data["dispatcher"].py_func
            name = f"{kernel.__module__}.{kernel.__qualname__}"
            self.kernels.append((name, time.process_time() - self.start))

listener = Compiled()
event.register("numba:compile", listener)
from bench_core.cli import main
try:
    main(sys.argv[2:])
except SystemExit:
    pass  # 1 where a learner does not suit so small a file
with open(sys.argv[1], "w") as out:
    json.dump({"cpu": time.process_time(), "kernels": listener.kernels}, out)
"""


def write(path, rows, grades):
    """Six features; ``grades`` are the borders between labels, queries where there are several."""
    rng = np.random.default_rng(rows)
    X = rng.normal(size=(rows, 6))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], grades)
    query = (lambda i: f"qid:{i // 12} ") if len(grades) > 1 else lambda _: ""
    with path.open("w") as file:
        for i in range(rows):
            cells = " ".join(f"{j + 1}:{x:.4f}" for j, x in enumerate(X[i]))
            file.write(f"{y[i]} {query(i)}{cells}{COMMENT}\n")


def run(folder, name, *options):
    """Every learner in one process, or a few where less was asked for."""
    files = ["--data", f"{name}.train", "--test", f"{name}.test", "--learners", LEARNERS]
    how = ["--executor", "inline", "--store", f"{name}.db", "--fresh", "--quiet"]
    subprocess.run(
        [sys.executable, "-c", RUN, "out.json", "run", *files, *how, *options],
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return json.loads((folder / "out.json").read_text())


@pytest.mark.benchmark(group="cold start")
def test_kernels_are_compiled_once_and_for_one_kind_of_arguments(tmp_path, benchmark):
    for split, rows in ROWS.items():
        write(tmp_path / f"ranking.{split}", rows, [-1, 0, 1, 2])
        write(tmp_path / f"classes.{split}", rows, [1])
    runs = []

    def ranking():
        runs.append(run(tmp_path, "ranking", "--metric", METRICS))

    sides = {"first run": ranking, "second run": ranking}
    samples = alternate(benchmark, sides, 1, warm=False)
    first, again = runs
    other = run(tmp_path, "classes")
    kernels = first["kernels"] + other["kernels"]  # of policies for classes
    compiling = sum(seconds for _, seconds in kernels)
    report(
        benchmark,
        samples,
        work="every learner on a small file, inline",
        peers=["second run"],
        facts={
            "kernels": len(kernels),
            "processor s, compiling": compiling,
            "processor s, first run": first["cpu"],
            "processor s, second run": again["cpu"],
        },
        values={"compiling all kernels": value(compiling, "processor s", COMPILING)},
        kernels=dict(sorted(kernels, key=lambda kernel: -kernel[1])),
    )
    assert [name for name, times in Counter(n for n, _ in kernels).items() if times > 1] == []
    assert again["kernels"] == []
