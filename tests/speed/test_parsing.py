"""Reading SVMlight files beside scikit-learn, one run, alternating.

    pytest -m speed tests/speed/test_parsing.py

Three kinds of file: 4 digits a value, 9 digits (all that a float32 needs), and 16 digits as
scikit-learn's own writer gives them (the generator's values are binary fractions of a few digits,
so these are divided by 3 as float64). Ours ends with a dense matrix; scikit-learn's time is given
to its sparse matrix, and to a dense one. Also: reopening a prepared set. Never fails on a time.
BENCH_SPEED_ROWS changes the number of rows (default 20000).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from bench_datasets.yahoo.sim import PATTERNS, generate
from paired import alternate, compare, report, setting
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from bench_core.datasets.cache import open_prepared, prepare
from bench_core.datasets.readers.svmlight import read_svmlight
from bench_core.datasets.user_files import FileData

pytestmark = pytest.mark.speed

ROWS = setting("ROWS", 20_000)
ROUNDS = 7
PEER = "scikit-learn"
SHAPE = f"{ROWS} x 519"


@dataclass(frozen=True)
class File:
    path: Path
    megabytes: float
    values: np.ndarray
    tolerance: float  # by which the file's digits may differ from the data


@pytest.fixture(scope="module")
def rows():
    return generate(PATTERNS["a"], 0, 0, ROWS)


@pytest.fixture(scope="module", params=["4 digits", "9 digits", "16 digits"])
def file(request, rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "rows.svm"
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


@pytest.mark.benchmark(group="parsing")
def test_reading_a_file(file, benchmark, request):
    def theirs():
        return load_svmlight_file(str(file.path), query_id=True, dtype=np.float32)

    ours = read_svmlight(file.path)
    X, y, _ = theirs()
    np.testing.assert_array_equal(ours.X, X.toarray())
    np.testing.assert_array_equal(ours.y, y)
    np.testing.assert_allclose(ours.X, file.values, rtol=file.tolerance)
    dense = f"{PEER}, dense"
    sides = {
        "ours": lambda: read_svmlight(file.path),
        PEER: theirs,
        dense: lambda: theirs()[0].toarray(),
    }
    report(
        benchmark,
        alternate(benchmark, sides, ROUNDS),
        work=f"SVMlight file to matrix, {request.node.callspec.params['file']}, {SHAPE}",
        peers=[PEER, dense],
        bars={("ours", PEER): 0.12},
        megabytes=file.megabytes,
    )


@pytest.mark.benchmark(group="parsing")
def test_reopening_a_prepared_set(rows, benchmark, tmp_path):
    path = tmp_path / "rows.svm"
    query = rows.queries.index() + 1
    dump_svmlight_file(rows.X, rows.y, str(path), zero_based=False, query_id=query)
    kept = prepare(FileData(str(path)), cache_dir=tmp_path)
    sides = {
        "ours": lambda: open_prepared(kept.path),
        PEER: lambda: load_svmlight_file(str(path), query_id=True, dtype=np.float32),
    }
    compare(
        benchmark,
        sides,
        work=f"reopening a prepared set, {SHAPE}",
        peers=[PEER],
        bars={("ours", PEER): 0.005},
        rounds=ROUNDS,
        megabytes=path.stat().st_size / 1e6,
    )
