"""Raw columns of every kind for a folder of features, and rows of them."""

from dataclasses import replace

import numpy as np

from bench_core.encoding import ColumnEncoding

CITIES = ColumnEncoding("c", ("x", "y", "z"), one_hot=True, missing=("NA",))
CODES = ColumnEncoding("k", ("p", "q"))


def encoded(folder):
    """The folder with raw columns: texts with a feature each, codes, an offset, numbers."""
    plain = [ColumnEncoding(f"n{j}") for j in range(len(folder.names) - 5)]
    own = (CITIES, CODES, ColumnEncoding("t", offset=10.0), *plain)
    return replace(folder, encodings=own, names=tuple(n for e in own for n in e.features))


def raw_and_features(d, n, seed):
    """Raw rows, and their features by hand, as documented."""
    rng = np.random.default_rng(seed)
    raw, X = [], np.zeros((n, d), np.float32)
    for row in X:
        c, k = rng.choice(["x", "y", "z", "NA", "new"]), rng.choice(["p", "q", "new"])
        row[3:] = rng.normal(0, 2, d - 3)
        row[:3] = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "new": (0, 0, 0)}.get(
            c, [np.nan] * 3
        )
        row[3] = {"p": 0, "q": 1}.get(k, np.nan)
        row[4] = round(float(row[4]), 1)
        cells = {"c": f" {c}", "k": None if k == "new" else k, "t": 10 + float(row[4])}
        raw.append(cells | {f"n{j}": float(v) for j, v in enumerate(row[5:])})
    X[:, 4] = np.array([10.0 + x for x in X[:, 4].tolist()]) - 10.0
    return raw, X
