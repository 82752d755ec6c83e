"""Real data sets in memory, for tests of learners on them."""

import os
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bench_core import Examples, Queries, price_list

DATA = Path(
    os.environ.get("BENCH_TEST_DATA", Path(__file__).resolve().parents[2].parent / "shared/data")
)


def needs(folder):
    path = DATA / folder
    if not path.is_dir():
        pytest.skip(f"no {folder} in {DATA}: set BENCH_TEST_DATA to the folder with the test data")
    return path


@cache
def documents():
    """The learning-to-rank sample, its features priced like Yahoo's by a fixed draw."""
    from sklearn.datasets import load_svmlight_file

    folder = needs("ltr-lambdarank")
    parts = []
    for name in ("rank.train", "rank.test"):
        X, y = load_svmlight_file(str(folder / name), n_features=301, zero_based=True)
        sizes = np.loadtxt(folder / f"{name}.query", dtype=np.int64)
        dense = X.toarray().astype(np.float32)
        parts.append(Examples(dense, y.astype(np.float64), Queries.from_sizes(sizes)))
    rng = np.random.default_rng(0)
    shares = [0.24, 0.06, 0.37, 0.24, 0.03, 0.06]
    cost = rng.choice([1.0, 5.0, 20.0, 50.0, 100.0, 150.0], 301, p=shares)
    return parts[0], parts[1], price_list(cost, split=0.25)


def precision(scores, test, k=5, relevant=3):
    ends = test.queries.boundaries
    hits = [
        (test.y[i:j][np.argsort(-scores[i:j], kind="stable")[:k]] >= relevant).sum() / k
        for i, j in pairwise(ends)
        if (test.y[i:j] >= relevant).any()
    ]
    return float(np.mean(hits))


def letters(folder):
    """Letter recognition as first against second half of the alphabet, train and test."""
    lines = (folder / "letter/letter-recognition.data").read_text().split()
    rows = [line.split(",") for line in lines]
    y = np.array([float(row[0] >= "N") for row in rows])
    X = np.array([row[1:] for row in rows], dtype=np.float32)
    return Examples(X[:12000], y[:12000]), Examples(X[16000:], y[16000:])
