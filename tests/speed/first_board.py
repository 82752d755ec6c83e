"""Time and memory of first boards: ``python tests/speed/first_board.py``.

The commands that a new user begins with, each in a new process and an empty folder: on the
quickstart, on generated tables of the user's, and on Yahoo's simulation with the installation.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from resident import watched

ROOT = Path(__file__).parents[2]
TABLES = {"t6000.csv": (6000, 18), "t50000.csv": (50_000, 30), "t1m.parquet": (1_000_000, 40)}
INSTALLED = "python -m venv .venv; .venv/bin/pip install -q ROOT; .venv/bin/"
COMMANDS = (
    "bench run  # nothing compiled",
    "bench run  # again",
    "bench run --data t6000.csv --label ill --costs c18.csv",
    "bench run --data t50000.csv --label ill --costs c30.csv",
    "bench run --data t1m.parquet --label ill --costs c40.csv",
    INSTALLED + "bench run --suite yahoo --learners miser,cronus,cegb",
)


def table(rows: int, columns: int) -> pd.DataFrame:
    """Rows of normal features, the first seven of which decide the label."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * np.abs(X[:, 3]) + 0.5 * X[:, 4]
    score += 0.5 * X[:, 5] * X[:, 6] + 0.7 * rng.normal(size=rows)
    frame = pd.DataFrame(X, columns=[f"m{k:02d}" for k in range(columns)])
    return frame.assign(ill=np.where(score > 0.6, "yes", "no"))


def write(folder: Path) -> None:
    """Write the tables and their prices."""
    for name, (rows, columns) in TABLES.items():
        frame = table(rows, columns)
        if name.endswith(".csv"):
            frame.to_csv(folder / name, index=False)
        else:
            frame.to_parquet(folder / name)
        prices = np.round(np.random.default_rng(1).uniform(0.2, 9, columns), 2)
        costs = pd.DataFrame({"feature": frame.columns[:-1], "price in EUR": prices})
        costs.to_csv(folder / f"c{columns}.csv", index=False)


def main(folder: Path) -> None:
    """Run the commands one after the other, each with the kernels of those before it."""
    write(folder)
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": here, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    for line in COMMANDS:
        (folder / "bench.db").unlink(missing_ok=True)
        own = env | {"BENCH_STORE": str(folder / "bench.db"), "BENCH_CACHE": str(folder / "cache")}
        if line.startswith(INSTALLED):
            del own["NUMBA_CACHE_DIR"]
        _, peaks = watched(["sh", "-ec", line.replace("ROOT", str(ROOT))], own, folder)
        print(f"{peaks.seconds:5.0f} s {peaks.private / 1e6:6.0f} MB  {line}", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        main(Path(home))
