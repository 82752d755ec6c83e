"""Real data sets read plainly, for tests that show a learner at work on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench_core import Examples, Prices, price_list


def letters(folder: Path) -> tuple[Examples, Examples]:
    """Letter recognition as first against second half of the alphabet, train and test."""
    lines = (folder / "letter/letter-recognition.data").read_text().split()
    rows = [line.split(",") for line in lines]
    y = np.array([float(row[0] >= "N") for row in rows])
    X = np.array([row[1:] for row in rows], dtype=np.float32)
    return Examples(X[:12000], y[:12000]), Examples(X[16000:], y[16000:])


def thyroid(folder: Path) -> tuple[Examples, Examples, Prices]:
    """Thyroid disease with published test costs; the last feature is derived from two others."""
    parts = [np.loadtxt(folder / f"ann-thyroid/ann-{name}.data") for name in ("train", "test")]
    lines = (folder / "ann-thyroid/ann-thyroid.cost").read_text().split()
    cost = np.array([float(line.split(":")[1]) for line in lines] + [0.0])
    train, test = (Examples(p[:, :21].astype(np.float32), p[:, 21] - 1) for p in parts)
    return train, test, price_list(cost, derived={20: [18, 19]})
