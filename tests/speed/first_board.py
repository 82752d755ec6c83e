"""Write the tables on which a first board is timed: ``python tests/speed/first_board.py FOLDER``.

Then, in FOLDER: ``time bench run --data t1m.parquet --label ill --costs c40.csv``.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

TABLES = {"t6000.csv": (6000, 18), "t50000.csv": (50_000, 30), "t1m.parquet": (1_000_000, 40)}


def table(rows: int, columns: int) -> pd.DataFrame:
    """Rows of normal features, the first seven of which decide the label."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * np.abs(X[:, 3]) + 0.5 * X[:, 4]
    score += 0.5 * X[:, 5] * X[:, 6] + 0.7 * rng.normal(size=rows)
    frame = pd.DataFrame(X, columns=[f"m{k:02d}" for k in range(columns)])
    return frame.assign(ill=np.where(score > 0.6, "yes", "no"))


if __name__ == "__main__":
    folder = Path(*sys.argv[1:])
    for name, (rows, columns) in TABLES.items():
        frame = table(rows, columns)
        if name.endswith(".csv"):
            frame.to_csv(folder / name, index=False)
        else:
            frame.to_parquet(folder / name)
        prices = np.round(np.random.default_rng(1).uniform(0.2, 9, columns), 2)
        costs = pd.DataFrame({"feature": frame.columns[:-1], "price in EUR": prices})
        costs.to_csv(folder / f"c{columns}.csv", index=False)
