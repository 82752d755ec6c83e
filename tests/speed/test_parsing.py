"""Reading SVMlight files beside scikit-learn, one run, alternating.

    pytest -m speed tests/speed/test_parsing.py -s

Three kinds of file: 4 digits a value, 9 digits (all that a float32 needs), and 16 digits as
scikit-learn's own writer gives them (the generator's values are binary fractions of a few digits,
so these are divided by 3 as float64). Ours ends with a dense matrix; scikit-learn's time is given
to its sparse matrix, and to a dense one. Also: reopening a prepared set, and a packed file. Writes
results/speed/parsing.json with every round, medians and ratios; never fails on a time.
BENCH_SPEED_ROWS changes the number of rows (default 20000).
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_datasets.yahoo.sim import PATTERNS, generate
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from bench_core.data import Examples
from bench_core.datasets.cache import open_prepared, prepare
from bench_core.datasets.readers.svmlight import read_svmlight
from bench_core.datasets.user_files import FileData

pytestmark = pytest.mark.speed

ROWS = int(os.environ.get("BENCH_SPEED_ROWS", "20000"))
THREADS = 2
ROUNDS = 7
OUTPUT = Path(__file__).parents[2] / "results" / "speed" / "parsing.json"


@dataclass(frozen=True)
class File:
    path: Path
    megabytes: float
    values: np.ndarray
    tolerance: float  # by which the file's digits may differ from the data


@pytest.fixture(scope="module")
def rows() -> Examples:
    return generate(PATTERNS["a"], 0, 0, ROWS)


@pytest.fixture(scope="module", params=["4 digits", "9 digits", "16 digits"])
def file(
    request: pytest.FixtureRequest, rows: Examples, tmp_path_factory: pytest.TempPathFactory
) -> File:
    path = tmp_path_factory.mktemp("files") / "rows.svm"
    assert rows.queries is not None
    query = rows.queries.index() + 1
    digits = int(request.param.split()[0])
    values = rows.X.astype(np.float64) / 3 if digits == 16 else rows.X
    if digits == 16:
        dump_svmlight_file(values, rows.y, str(path), zero_based=False, query_id=query)
    else:
        with path.open("w") as out:
            for x, y, q in zip(rows.X, rows.y, query, strict=True):
                cells = (f"{j + 1}:{x[j]:.{digits}g}" for j in np.flatnonzero(x))
                out.write(f"{y:.0f} qid:{q} {' '.join(cells)}\n")
    tolerance = {4: 1e-3, 9: 0, 16: 1e-7}[digits]
    return File(path, path.stat().st_size / 1e6, values, tolerance)


@pytest.fixture(scope="module")
def figures() -> Any:
    found: dict[str, Any] = {
        "rows": ROWS,
        "threads": THREADS,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    yield found
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(found, indent=2) + "\n")


def alternate(**functions: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of every round of each function, run in turns after one warm-up."""
    for function in functions.values():
        function()
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(ROUNDS):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            taken[name].append(time.perf_counter() - start)
    return taken


def keep(figures: dict[str, Any], title: str, taken: dict[str, list[float]], **facts: Any) -> None:
    """Add a row of figures; ratios are ours over each peer's, by medians."""
    middle = {name: median(seconds) for name, seconds in taken.items()}
    ratios = {name: middle["ours"] / m for name, m in middle.items() if name != "ours"}
    figures[title] = facts | {"seconds": taken, "median": middle, "ratio": ratios}
    print(f"\n{title}: " + ", ".join(f"{k} {v:.4f}s" for k, v in middle.items()), ratios)


def test_reading_a_file(
    file: File, figures: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    def theirs() -> Any:
        return load_svmlight_file(str(file.path), query_id=True, dtype=np.float32)

    ours = read_svmlight(file.path, threads=THREADS)
    X, y, _ = theirs()
    np.testing.assert_array_equal(ours.X, X.toarray())
    np.testing.assert_array_equal(ours.y, y)
    np.testing.assert_allclose(ours.X, file.values, rtol=file.tolerance)
    taken = alternate(
        ours=lambda: read_svmlight(file.path, threads=THREADS),
        one_thread=lambda: read_svmlight(file.path, threads=1),
        scikit_learn=theirs,
        scikit_learn_dense=lambda: theirs()[0].toarray(),
    )
    title = f"reading, {request.node.callspec.params['file']}"
    keep(figures, title, taken, megabytes=file.megabytes)


def test_reopening_a_prepared_set(rows: Examples, figures: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    assert rows.queries is not None
    query = rows.queries.index() + 1
    dump_svmlight_file(rows.X, rows.y, str(path), zero_based=False, query_id=query)
    kept = prepare(FileData(str(path)), cache_dir=tmp_path)
    taken = alternate(
        ours=lambda: open_prepared(kept.path),
        scikit_learn=lambda: load_svmlight_file(str(path), query_id=True, dtype=np.float32),
    )
    keep(figures, "reopening", taken, megabytes=path.stat().st_size / 1e6)


def test_reading_a_packed_file(rows: Examples, figures: dict[str, Any], tmp_path: Path) -> None:
    plain = tmp_path / "rows.svm"
    assert rows.queries is not None
    query = rows.queries.index() + 1
    dump_svmlight_file(rows.X, rows.y, str(plain), zero_based=False, query_id=query)
    packed = tmp_path / "rows.svm.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes(), 6))
    taken = alternate(
        ours=lambda: read_svmlight(packed, threads=THREADS),
        unpacking_alone=lambda: gzip.decompress(packed.read_bytes()),
        scikit_learn=lambda: load_svmlight_file(str(packed), query_id=True, dtype=np.float32),
    )
    keep(figures, "reading, packed", taken, megabytes=plain.stat().st_size / 1e6)
