"""Particle physics at UCI: MiniBooNE, and HEPMASS at a mass of 1000 and at other masses.

MiniBooNE: 130064 events, 50 features, half of them for testing, 70/30 of the rest for training and
validation (CEGB, ADAPT). 468 events hold -999 in every feature: missing. HEPMASS: 7000000 and
3500000 events a file. The papers give 3.5 / 1.4 / 5.6 million. The reading that fits: half and a
fifth of the publisher's training file; its rest and the publisher's test file are the test set [D].
The rows are unknown: ours are drawn by the seed. Every feature costs 1.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench_core import (
    Examples,
    InputError,
    Prices,
    Source,
    Splits,
    Task,
    check_memory,
    provide_datasets,
)
from bench_core.arrays import Float32Array, FloatArray
from bench_core.datasets.publishers import Download, from_uci
from bench_core.datasets.readers import read_beginning
from bench_core.datasets.readers.tables import read_matrix
from bench_core.datasets.splitting import drawn, in_proportion, take

QUICK = (12000, 4000, 8000)
SENTINEL = -999.0  # marks a missing value
MINIBOONE_FILE, MINIBOONE_FEATURES = "MiniBooNE_PID.txt", 50
MINIBOONE_ROWS = (45523, 19510, 65031)
HEPMASS_ROWS = (7_000_000, 3_500_000)  # of the two files
CHUNK = 500_000  # rows


class MiniBooNE:
    """Electron neutrinos against muon neutrinos."""

    name: ClassVar[str] = "miniboone"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "UCI MiniBooNE particle identification"
    files: ClassVar[tuple[str, ...]] = (MINIBOONE_FILE,)
    downloads: ClassVar[tuple[Download, ...]] = from_uci(
        199, "miniboone+particle+identification.zip", MINIBOONE_FILE
    )
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/199"

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw the three splits by ``seed``; ``quick`` takes fewer rows."""
        X, y = _miniboone(source.find(MINIBOONE_FILE))
        few = size == "quick" and len(y) > sum(QUICK)
        sizes = QUICK if few else in_proportion(len(y), MINIBOONE_ROWS)
        notes = (f"quick: {sum(QUICK)} rows drawn by the seed",) if few else ()
        return _splits(take(X, y, drawn(len(y), sizes, seed)), notes)


def _miniboone(path: Path) -> tuple[Float32Array, FloatArray]:
    """Rows (n, 50) with the sentinel as missing, and labels; signal events come first."""
    counts = read_beginning(path, 100).partition(b"\n")[0].split()
    if len(counts) != 2 or not all(c.isdigit() for c in counts):
        raise InputError(f"{path}, line 1: expected two counts; get the file again")
    signal, background = map(int, counts)
    table = read_matrix(path, MINIBOONE_FEATURES, rows=signal + background, skip=1, separator="")
    X = table.matrix(table.names)
    X = np.where(X == SENTINEL, np.float32(np.nan), X)
    return X, np.repeat([1.0, 0.0], [signal, background])


def _hepmass_zip(files: tuple[str, ...]) -> tuple[Download, ...]:
    """The publisher's single archive, with the files of all masses."""
    return from_uci(347, "hepmass.zip", *files, bytes=7893269133)


class Hepmass1000:
    """New particles of mass 1000 against background."""

    name: ClassVar[str] = "hepmass-1000"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "UCI HEPMASS, mass 1000"
    files: ClassVar[tuple[str, ...]] = ("1000_train.csv.gz", "1000_test.csv.gz")
    downloads: ClassVar[tuple[Download, ...]] = _hepmass_zip(files)
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/347"
    features: ClassVar[int] = 27

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Half and a fifth of the training file, drawn by ``seed``; the rest and the test file."""
        features = self.features
        limits = HEPMASS_ROWS if size == "paper" else (10 * sum(QUICK[:2]), 5 * QUICK[2])
        (X, y), (X_test, y_test) = (
            _hepmass(source.find(name), features, limit)
            for name, limit in zip(self.files, limits, strict=True)
        )
        half, fifth = len(y) // 2, len(y) // 5
        sizes = half, fifth, len(y) - half - fifth
        train, valid, rest = take(X, y, drawn(len(y), sizes, seed))
        rest = Examples(np.concatenate([rest.X, X_test]), np.concatenate([rest.y, y_test]))
        parts = [train, valid, rest]
        if size == "paper":
            return _splits(parts)
        most = [n if size == "quick" else 5 * n for n in QUICK]
        parts = [Examples(p.X[:n], p.y[:n]) for p, n in zip(parts, most, strict=True)]
        rows = sum(map(len, parts))
        return _splits(parts, (f"{size}: {rows} rows from the beginning of the files",))


class HepmassNot1000(Hepmass1000):
    """New particles of other masses against background; the mass is a feature."""

    name: ClassVar[str] = "hepmass-not1000"
    title: ClassVar[str] = "UCI HEPMASS, masses other than 1000"
    files: ClassVar[tuple[str, ...]] = ("not1000_train.csv.gz", "not1000_test.csv.gz")
    downloads: ClassVar[tuple[Download, ...]] = _hepmass_zip(files)
    features: ClassVar[int] = 28


def _hepmass(path: Path, features: int, limit: int) -> tuple[Float32Array, FloatArray]:
    """At most ``limit`` rows, read in pieces so that memory holds little more than the result."""
    import pandas as pd

    width = read_beginning(path, 4000).split(b"\n")[0].count(b",") + 1
    if width != features + 1:
        raise InputError(
            f"{path}, line 1: {width} columns where the publisher's file has {features + 1}; "
            "get the file again"
        )
    pieces = []
    try:
        with pd.read_csv(
            path, header=None, skiprows=1, nrows=limit, chunksize=CHUNK, dtype=np.float32
        ) as reader:
            pieces = [piece.to_numpy(np.float32) for piece in reader]
    except (ValueError, EOFError, OSError, pd.errors.ParserError) as error:
        check_memory(error, path)
        raise InputError(f"{path}: {' '.join(str(error).split())}; get the file again") from error
    y = np.concatenate([p[:, 0] for p in pieces]).astype(np.float64)
    other = ~np.isin(y, (0.0, 1.0))
    if other.any():
        row = int(other.argmax())
        raise InputError(
            f"{path}, line {row + 2}: label {y[row]:g} is not 0 or 1; get the file again"
        )
    return np.concatenate([p[:, 1:] for p in pieces]), y


def _splits(parts: Sequence[Examples], notes: tuple[str, ...] = ()) -> Splits:
    train, valid, test = parts
    d = train.X.shape[1]
    prices, names = Prices.additive(np.ones(d)), tuple(f"f{j}" for j in range(d))
    return Splits(train, valid, test, prices, feature_names=names, notes=notes)


bench_datasets = provide_datasets(MiniBooNE, Hepmass1000, HepmassNot1000)
