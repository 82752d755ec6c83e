"""What is fuzzed: each target takes any bytes, and passes if they are refused in one line or read
as an independent parser reads them.

A target returns whether the input was accepted. It raises AssertionError for a misreading, and
lets through every exception that is no error for users.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import struct
import tempfile
import tomllib
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from bench_trees.importers import ModelError, read_model
from bench_trees.importers.files import parse_ubj
from helpers.model_walks import walked

from bench_core._io.digests import canonical
from bench_core._io.text import read_bytes
from bench_core.costs.cost_file import CostFile, cost_model
from bench_core.costs.model import SensorPrices
from bench_core.datasets.readers import svmlight
from bench_core.datasets.readers.tables import read_table
from bench_core.datasets.user_datasets import read_entries
from bench_core.errors import BenchError, InputError
from bench_core.parameters import as_json, expand
from bench_core.planning.settings import parse_setting, with_setting
from bench_core.planning.suites import read_suite
from bench_core.plugins import load_registry

MEMORY = Path("/dev/shm")  # where a file costs no more than its bytes
FOLDER = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
FOLDER = FOLDER / "budget-bench-fuzz" / str(os.getpid())
FOLDER.mkdir(parents=True, exist_ok=True)
NOT_THERE = ["", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"]
NOT_THERE += ["1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _file(name: str, data: bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(data)
    return path


def same(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


class InTurn:
    """A pool without threads: they take longer to start than an input to be read."""

    def __init__(self, threads: int) -> None:
        self.map = map

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *raised: object) -> None: ...

    def submit(self, work: Callable[..., Any], *given: Any) -> Any:
        found = work(*given)
        return SimpleNamespace(result=lambda: found)


svmlight.ThreadPoolExecutor = InTurn  # type: ignore[misc,assignment,attr-defined]


def svm(data: bytes) -> bool:
    """The exact and the compiled reader, and scikit-learn's."""
    from sklearn.datasets import load_svmlight_file

    path = _file("x.svm", data)
    base = 0 if data[:2].endswith(b"0") else 1
    ways = []
    for small in (1 << 22, -1):
        svmlight.SMALL = small
        try:
            ways.append(svmlight.read_svmlight(path, index_base=base, threads=2))
        except InputError:
            ways.append(None)
        finally:
            svmlight.SMALL = 1 << 22
    slow, fast = ways
    assert (slow is None) == (fast is None), "one of the two ways refuses it"
    if slow is None or fast is None:
        return False
    assert same(slow.X, fast.X)
    assert same(slow.y, fast.y)
    assert same(np.signbit(slow.X), np.signbit(fast.X))
    if slow.X.size > 1 << 22:
        return True
    X, y, qid = load_svmlight_file(
        str(path), n_features=slow.X.shape[1], zero_based=base == 0, query_id=True
    )
    with np.errstate(over="ignore"):
        assert same(slow.X, X.toarray().astype(np.float32)), "not what scikit-learn reads"
    assert same(slow.y, y)
    if slow.queries is not None:
        assert same(np.flatnonzero(np.diff(qid)) + 1, slow.queries.boundaries[1:-1])
    return True


def _records(text: str, mark: str) -> Iterator[list[str]]:
    """The cells of each row, but of blank lines, which are no rows below the header."""
    used: list[str] = []

    def noted() -> Iterator[str]:
        for line in io.StringIO(text, newline="\n"):
            used.append(line)
            yield line

    for row in csv.reader(noted(), delimiter=mark):
        raw = "".join(used)
        used.clear()
        if raw.strip(" \t\n") or mark in raw:
            yield row


def table(data: bytes) -> bool:
    """``csv`` and ``float``, rounded to float32."""
    path = _file("x.csv", data)
    try:
        found = read_table(path)
    except InputError:
        return False
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"^([ \t]*\n|\ufeff)*\ufeff", "", text)
    header = next(line for line in text.split("\n") if line.strip())
    mark = max(",;\t", key=header.count)
    lines = list(_records(re.sub(r"^(?:[ \t]*\n)*", "", text), mark))
    for j, name in enumerate(found.names):
        assert name == lines[0][j].strip()
        if found.column(name).is_text:
            continue
        try:
            values = found.numbers(name, np.float32)
        except InputError:
            continue
        cells = [cells[j] if j < len(cells) else "" for cells in lines[1:]]
        assert len(cells) == len(values), "not as many rows"
        for cell, value in zip(cells, values, strict=True):
            if cell in NOT_THERE:
                assert np.isnan(value), f"{cell!r} is not missing"
            elif NUMBER.fullmatch(cell.strip(" \t")):
                with np.errstate(over="ignore"):
                    assert value == np.float32(float(cell)), f"{cell!r} is read as {value}"
    return True


def parquet(data: bytes) -> bool:
    """``pandas``, column by column, whatever notes of pandas the file has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = _file("x.parquet", data)
    try:
        found = read_table(path)
    except InputError as error:
        if "\n" in str(error):
            raise
        return False
    theirs = pq.ParquetFile(path).read()
    assert len(found) == theirs.num_rows, "not as many rows"
    for name in found.names:
        column = theirs[name]
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            values = found.frame[name].to_numpy(np.float64, na_value=np.nan)
            other = column.to_pandas().to_numpy(np.float64, na_value=np.nan)
            assert same(values, other), f"{name!r} is not what pyarrow reads"
        elif pa.types.is_string(column.type):
            assert found.column(name).cells().tolist() == [
                text or "" for text in column.to_pylist()
            ]
    return True


def packed(data: bytes) -> bool:
    """``gzip``, as far as it goes."""
    import gzip

    try:
        found = read_bytes(_file("x.gz", data))
    except InputError:
        return False
    assert found == gzip.decompress(data)
    return True


NAMES = ("TSH", "T 4", "c")


def costs(data: bytes) -> bool:
    """Prices are those of ``json``, or of lines split at the mark."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    suffix = {"{": "json", "[": "json"}.get(text.lstrip()[:1], "csv")
    file = CostFile(Path(f"costs.{suffix}"), text)
    try:
        prices = cost_model(file, NAMES, None, {SensorPrices.name: SensorPrices})
    except InputError:
        return False
    assert isinstance(prices, SensorPrices)
    price = prices.feature_price()
    assert (price >= 0).all()
    assert np.isfinite(price).all()
    document = json.loads(text) if suffix == "json" else None
    if isinstance(document, dict) and set(document) == set(NAMES):
        assert same(price, [float(document[name]) for name in NAMES])
    if isinstance(document, list) and len(document) == len(NAMES):
        assert same(price, [float(value) for value in document])
    if document is None:
        plain = [line for line in text.splitlines() if line.strip() and line.strip()[0] != "#"]
        pairs = dict(line.strip().split(",") for line in plain if line.count(",") == 1)
        if set(pairs) == set(NAMES):
            assert same(price, [float(pairs[name]) for name in NAMES])
    return True


def suite(data: bytes) -> bool:
    """``tomllib``'s values."""
    try:
        found = read_suite(_file("x.toml", data), {})
    except BenchError:
        return False
    document = tomllib.loads(data.decode("utf-8-sig"))
    assert found.title == (document.get("title") or "x")
    assert list(found.metrics) == document["metrics"]
    assert _plain(dict(found.learners)) == _plain(document["learners"])
    seeds = document.get("profiles", {}).get("quick", {}).get("seeds", document.get("seeds", [0]))
    assert list(found.profiles["quick"].seeds) == list(dict.fromkeys(seeds))
    return True


def datasets(data: bytes) -> bool:
    """``tomllib``'s values."""
    try:
        found = read_entries(_file("datasets.toml", data))
    except BenchError:
        return False
    document = tomllib.loads(data.decode("utf-8-sig"))
    assert [entry.name for entry in found] == [*document]
    assert [entry.folds for entry in found] == [t.get("folds", 1) for t in document.values()]
    return True


REGISTRY = cache(load_registry)
LEARNERS = ("gbrt.trees", "cscc.base", "cscc.base.trees", "gbrt.learning_rate", "cronus.f0")


def setting(data: bytes) -> bool:
    """``tomllib``'s value, or the word."""
    text = data.decode("utf-8", "surrogateescape")
    name = LEARNERS[len(text) % len(LEARNERS)]
    try:
        found = parse_setting(f"{name}={text}")
    except BenchError:
        return False
    registry = REGISTRY()
    try:
        table = with_setting({}, found.path, found.value)
        for made in expand(registry.learner(found.owner), table, registry)[:20]:
            canonical(as_json(made)).encode()
    except BenchError:
        return False
    value: Any = text.strip()
    try:
        read = tomllib.loads(f"value = {value}")
        value = read["value"] if len(read) == 1 else value
    except tomllib.TOMLDecodeError:
        pass
    assert found.value == value or found.value != found.value
    return True


def model(data: bytes) -> bool:
    """A walk through the document itself, node by node."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = read_model(data)
    except ModelError:
        return False
    ensemble = found.ensemble
    rng = np.random.default_rng(len(data))
    X = rng.normal(size=(8, ensemble.features)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    from helpers.peer_models import raw_scores

    with np.errstate(all="ignore"):
        ours = raw_scores(found, X)
        theirs = walked(data, found.source, X)
    if theirs is not None:
        close = np.isclose(ours, theirs, rtol=1e-9, atol=1e-9 * np.abs(ours).max(), equal_nan=True)
        assert close.all(), f"{ours} against {theirs}"
    return True


def ubj(data: bytes) -> bool:
    """A recursive decoder of the same draft."""
    try:
        found = parse_ubj(data)
    except ModelError:
        return False
    value, _ = _decoded(data, 0, "")
    assert _plain(found) == _plain(value)
    return True


_SIZES = {"i": ">b", "U": ">B", "I": ">h", "l": ">i", "L": ">q", "d": ">f", "D": ">d"}


def _decoded(data: bytes, at: int, kind: str) -> tuple[Any, int]:
    while not kind or kind == "N":
        kind, at = chr(data[at]), at + 1
    if kind in "TFZ":
        return {"T": True, "F": False, "Z": None}[kind], at
    if kind in _SIZES:
        size = struct.calcsize(_SIZES[kind])
        return struct.unpack_from(_SIZES[kind], data, at)[0], at + size
    if kind == "C":
        return chr(data[at]), at + 1
    if kind in "SH":
        n, at = _decoded(data, at, "")
        return data[at : at + n].decode(), at + n
    typed, count = "", -1
    if data[at : at + 1] == b"$":
        typed, at = chr(data[at + 1]), at + 2
        while typed == "N":
            typed, at = chr(data[at]), at + 1
    if data[at : at + 1] == b"#":
        count, at = _decoded(data, at + 1, "")
    items: list[Any] = []
    end = b"]" if kind == "[" else b"}"
    while len(items) != count:
        while count < 0 and data[at : at + 1] == b"N":
            at += 1
        if count < 0 and data[at : at + 1] == end:
            at += 1
            break
        name = None
        if kind == "{":
            n, at = _decoded(data, at, "")
            name, at = data[at : at + n].decode(), at + n
        value, at = _decoded(data, at, typed)
        items.append((name, value))
    return (dict(items) if kind == "{" else [v for _, v in items]), at


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | np.ndarray):
        return [_plain(v) for v in value]
    value = value.item() if isinstance(value, np.generic) else value
    return "nan" if isinstance(value, float) and math.isnan(value) else value


TARGETS: dict[str, Callable[[bytes], bool]] = {
    "svm": svm,
    "table": table,
    "parquet": parquet,
    "packed": packed,
    "costs": costs,
    "suite": suite,
    "datasets": datasets,
    "setting": setting,
    "model": model,
    "ubj": ubj,
}
