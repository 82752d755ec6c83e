"""Reading holds at most twenty times a file's size in memory, or the limit that a reader states."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from bench_trees.importers import ModelError, read_model
from bench_trees.importers.files import parse_ubj

from bench_core._io.text import FLOOR, MOST_SETTINGS, RATIO, read_bytes, read_settings
from bench_core.costs.cost_file import CostFile, cost_model
from bench_core.costs.model import SensorPrices
from bench_core.datasets.readers import svmlight
from bench_core.datasets.readers.tables import read_table
from bench_core.datasets.user_datasets import read_entries
from bench_core.errors import BenchError, InputError
from bench_core.planning.suites import read_suite

pytestmark = pytest.mark.slow

TIMES = 20
SETTINGS = 128  # times a file of settings, of which the length is limited
UBJ = 40
COLUMN = 2 << 10
NAMES = [f"n{i}" for i in range(4000)]


def exact(path: Path) -> Any:
    """The reader of short files, line by line."""
    return svmlight.read_svmlight(path)


def compiled(path: Path) -> Any:
    small, svmlight.SMALL = svmlight.SMALL, -1
    try:
        return svmlight.read_svmlight(path, threads=1)
    finally:
        svmlight.SMALL = small


def numbers(path: Path) -> Any:
    table = read_table(path)
    return [table.numbers(name) for name in table.names if not table.column(name).is_text]


def costs(path: Path) -> Any:
    models = {SensorPrices.name: SensorPrices}
    return cost_model(CostFile(path, path.read_text()), NAMES, None, models)


def model(path: Path) -> Any:
    return read_model(path.read_bytes())


def ubj(path: Path) -> Any:
    return parse_ubj(path.read_bytes())


def lines(pattern: bytes) -> bytes:
    return b"".join(pattern % name.encode() for name in NAMES)


Case = tuple[Callable[[Path], Any], str, bytes, int]
ROWS, HIGHEST = 300, 5000
DENSE = ROWS * HIGHEST * 4  # the limit of a table is its dense matrix
CASES: dict[str, Case] = {
    "svm": (exact, "x.svm", b"1 qid:1 1:0.5 2:1 3:-2.25 4:1e-3\n" * 6000, 0),
    "svm, compiled": (compiled, "x.svm", b"1 qid:1 1:0.5 2:1 3:-2.25 4:1e-3\n" * 6000, 0),
    "svm, few cells": (exact, "x.svm", b"1 %d:1\n" % HIGHEST * ROWS, DENSE),
    "svm, labels alone": (compiled, "x.svm", b"1 1:1\n" + b"0\n" * 50_000, 0),
    "csv": (numbers, "x.csv", b"a,b,c\n" + b"1,0.25,-3\n" * 20_000, 0),
    "csv, short cells": (numbers, "x.csv", b"a,b\n" + b"1,\n" * 60_000, 0),
    "csv, texts": (numbers, "x.csv", b"a,b\n" + b"xy,1\n" * 40_000, 0),
    "csv, columns": (
        numbers,
        "x.csv",
        ",".join(NAMES).encode() + b"\n1" + b",1" * 3999,
        4000 * COLUMN,
    ),
    "packed": (read_bytes, "x.gz", gzip.compress(b"1 1:2\n" * 30_000), RATIO * 2000 + FLOOR),
    "bomb": (read_bytes, "x.gz", gzip.compress(bytes(40 << 20)), 2 * (RATIO * (41 << 10) + FLOOR)),
    "costs": (costs, "c.csv", b"name,cost\n" + lines(b"%b,1\n"), SETTINGS * 31_000),
    "costs, json": (costs, "c.json", b"{" + b'"a":1,' * 40_000 + b'"b":2}', SETTINGS * 240_000),
    "costs, lists": (costs, "c.json", b"[" + b"[]," * 60_000 + b"1]", SETTINGS * 180_000),
    "model, lists": (model, "m.json", b"[" + b"[]," * 60_000 + b"1]", 0),
    "model, objects": (model, "m.json", b"[" + b"{}," * 60_000 + b"1]", 0),
    "ubj, lists": (ubj, "m.ubj", b"[" + b"[]" * 60_000 + b"]", UBJ * 120_000),
    "ubj, nothings": (ubj, "m.ubj", b"[$Z#l\x7f\xff\xff\xff", 0),
    "suite": (lambda path: read_suite(path, {}), "s.toml", lines(b"%b = []\n"), SETTINGS * 34_000),
    "data sets": (read_entries, "d.toml", lines(b"[%b]\n"), SETTINGS * 30_000),
}


@pytest.mark.parametrize("name", CASES)
def test_reading_holds_no_more_than_twenty_times_the_file(name: str, tmp_path: Path) -> None:
    read, file, content, limit = CASES[name]
    path = tmp_path / file
    path.write_bytes(b"1 1:1\n" if path.suffix == ".svm" else b"a\n1\n")
    with suppress(BenchError, ModelError):
        read(path)  # what is imported and compiled
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with suppress(BenchError, ModelError):
            read(path)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held <= max(TIMES * len(content), limit + 2 * len(content)) + (1 << 18)


def test_a_file_of_settings_that_is_too_long_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_bytes(b"#" * (MOST_SETTINGS + 1))
    with pytest.raises(InputError, match=r"s\.toml: longer than 4 MiB"):
        read_settings(path)
