"""Readers against parsers of others, on made-up and spoilt files."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import random
import re
import struct
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_trees.importers import ModelError, read_model
from bench_trees.importers.files import parse_ubj
from helpers.bad_input_cases import SUITE, svm, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from bench_core.plugins import Registry, load_registry

MEMORY = Path("/dev/shm")  # where a file costs no more than its bytes
FOLDER = MEMORY if MEMORY.is_dir() else Path(tempfile.gettempdir())
FOLDER = FOLDER / "budget-bench-readers" / str(os.getpid())
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


def reads_svm(data: bytes) -> bool:
    """The exact and the compiled reader, and scikit-learn's."""
    from sklearn.datasets import load_svmlight_file

    path = _file("x.svm", data)
    base = 0 if data[:2].endswith(b"0") else 1
    ways = []
    for small in (1 << 22, -1):
        svmlight.SMALL = small
        try:
            ways.append(svmlight.read_svmlight(path, index_base=base))
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


def reads_table(data: bytes) -> bool:
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
        found = read_suite(_file("x.toml", data), Registry())
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
    try:
        read_model(data)
    except ModelError:
        return False
    return True


def ubj(data: bytes) -> bool:
    try:
        parse_ubj(data)
    except ModelError:
        return False
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | np.ndarray):
        return [_plain(v) for v in value]
    value = value.item() if isinstance(value, np.generic) else value
    return "nan" if isinstance(value, float) and math.isnan(value) else value


TARGETS: dict[str, Callable[[bytes], bool]] = {
    "svm": reads_svm,
    "table": reads_table,
    "packed": packed,
    "costs": costs,
    "suite": suite,
    "datasets": datasets,
    "setting": setting,
    "model": model,
    "ubj": ubj,
}


QUICK = settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
LONG = settings(max_examples=3000, suppress_health_check=list(HealthCheck), deadline=None)

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["1e39", "3.4028235677973366e38", "1e-46", "0.1", "-0", "+.5", "7."]),
)
cells = st.one_of(numbers, st.sampled_from(["", "NA", "?", "nan", "text", '"1"', " 2 "]))
ends = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    columns, mark = draw(st.integers(2, 4)), draw(st.sampled_from(",;\t"))
    rows = draw(st.lists(st.lists(cells, min_size=columns, max_size=columns), min_size=1))
    lines = [mark.join(f"c{j}" for j in range(columns)), *(mark.join(row) for row in rows)]
    return (draw(ends).join([*lines, ""])).encode()


@st.composite
def rows_of_svmlight(draw: st.DrawFn) -> bytes:
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        indices = sorted(draw(st.sets(st.integers(1, 12), max_size=6)))
        found = [f"{index}:{draw(numbers)}" for index in indices]
        lines.append(" ".join([draw(st.sampled_from(["0", "1", "-1.5", "2e3"])), *found]))
    return (draw(ends).join([*lines, ""])).encode()


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def as_ubj(value: Any) -> bytes:
    """Universal Binary JSON, written from its specification."""
    if value is None or isinstance(value, bool):
        return {None: b"Z", True: b"T", False: b"F"}[value]
    if isinstance(value, int):
        return b"L" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"D" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + _length(value.encode()) + value.encode()
    if isinstance(value, list):
        return b"[" + b"".join(map(as_ubj, value)) + b"]"
    pairs = (_length(k.encode()) + k.encode() + as_ubj(v) for k, v in value.items())
    return b"{" + b"".join(pairs) + b"}"


def _length(content: bytes) -> bytes:
    return b"l" + struct.pack(">i", len(content))


def holds(target: Callable[[bytes], bool]) -> Callable[[bytes], None]:
    def judged(data: bytes) -> None:
        target(data)

    return judged


def ubj_is_read(value: Any) -> None:
    found = parse_ubj(as_ubj(value))
    assert _plain(found) == _plain(value)


@st.composite
def cost_files(draw: st.DrawFn) -> bytes:
    prices = [draw(numbers) for _ in NAMES]
    pairs = dict(zip(NAMES, prices, strict=True))
    form = draw(st.sampled_from(["csv", "colon", "bare", "json", "list"]))
    if form in ("csv", "colon"):
        mark = "," if form == "csv" else ":"
        return "\n".join(f"{name}{mark}{price}" for name, price in pairs.items()).encode()
    if form == "bare":
        return "\n".join(prices).encode()
    values = [float(price) for price in prices]
    made = dict(zip(NAMES, values, strict=True)) if form == "json" else values
    return json.dumps(made).encode()


CASES = {
    "table": (holds(reads_table), tables()),
    "svm": (holds(reads_svm), rows_of_svmlight()),
    "costs": (holds(costs), cost_files()),
    "ubj": (ubj_is_read, documents),
}


@pytest.mark.parametrize("name", CASES)
def test_made_up_files_are_read_as_by_the_reference(name: str) -> None:
    target, strategy = CASES[name]
    QUICK(given(strategy)(target))()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many_made_up_files_are_read_as_by_the_reference(name: str) -> None:
    target, strategy = CASES[name]
    LONG(given(strategy)(target))()


DATASETS = """[clicks]
title = "Clicks"
file = "all.csv"
task = "binary"
label = "clicked"
split = [0.7, 0.15, 0.15]
[more-1]
file = "m.svm"
folds = 5
index_base = 0
task = "ranking"
"""
COSTS = [
    "name,cost\nTSH,22.78\nT 4,14.51\nc,0\n",
    "TSH:1\nT 4:2.5\nc:3\n",
    "1\n2\n3e2\n",
    '{"TSH": 1, "T 4": 2.5, "c": 0}',
    "[1, 2, 3.5]",
    '{"costs": {"TSH": 22.78, "T 4": 14.51}, "shared": [["TSH", "c"]], "derived": {"c": ["TSH"]}, '
    '"discounted": [{"members": ["TSH", "T 4"], "later": [2.5, 1]}], "split": 0.25, "tree": 0, '
    '"unit": "dollars"}',
]
SETTINGS = ["300", "[1, 2]", "{learner = 1}", '{learner = "gbrt", trees = 3}', "gbrt", "none"]
SETTINGS += ["0.1", "2020-01-01", "true", "1e999", "nan", "[[1, 2], [3]]", "'x'", "{trees = 3}"]
SVM = [svm(5, ids=True), "1 1:nan 3:1e-40 # c\n0 2:0x1 3:1e39\n", "0 0:1\n", "-1 1:+.5e1\n\n#\n2\n"]
TABLES = [table(6), "a;b\n1,5;2\n", 'a\tb\n"x\ty"\t1\n', 'a,"b ""c"""\n1,"2"\n,NA\n', "a,b\r1,2\r"]
TABLES += ["a,b\ntrue,1\nfalse,?\n", "a,b\n 1 ,-inf\n1e400,0x1\n", "\ufeffa\n1\n\n2"]

SEEDS = {
    "table": TABLES,
    "svm": SVM,
    "costs": COSTS,
    "datasets": [DATASETS],
    "suite": [SUITE],
    "setting": SETTINGS,
}


def spoilt(text: str, draw: random.Random) -> bytes:
    content = bytearray(text.encode())
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(content) + 1)
        content[at : at + draw.randrange(3)] = draw.choice(
            [b"", b"\r", b"\n", b"0", b"-", b'"', b"[", b"\xff", b"\0", b"1e999", b"\x1b", b"nan"]
        )
    return bytes(content)


@pytest.mark.parametrize("name", SEEDS)
def test_spoilt_files_are_refused_in_one_line_or_read_as_by_the_reference(name: str) -> None:
    draw = random.Random(name)
    for text in SEEDS[name]:
        TARGETS[name](text.encode())
        for _ in range(4):
            TARGETS[name](spoilt(text, draw))


UNKIND = {
    "setting": [b"[" * 20_000, b"9" * 5000, b"{learner = 1}", b"{learner = {}}", b"2020-01-01"],
    "suite": [b"a = " + b"[" * 20_000, b"seeds = [" + b"9" * 5000 + b"]", b"title = 2020-01-01"],
    "datasets": [b"a = " + b"[" * 20_000, b"[a]\nfolds = " + b"9" * 5000, b"a = 2020-01-01"],
    "costs": [b"[" * 20_000, b"[" + b"9" * 5000 + b"]", b'{"costs": {"TSH": 1e999}}'],
    "packed": [b"", b"\x1f\x8b", b"\x1f\x8b\x08" + bytes(20)],
    "ubj": [
        b"[$Z#l\x7f\xff\xff\xff",
        b"[" + b"[$Z#i\x28" * 40 + b"]",
        b"[" * 300,
        b"{d\x3f\x80\0\0aZ}",
    ],
    "model": [
        b'{"features_info": {"float_features": [{"feature_index": "x", "flat_feature_index": 0}]},'
        b' "model_info": {"params": {"loss_function": {"type": "RMSE"}}}, "scale_and_bias": [1]}',
        b"tree\nmax_feature_idx=1\nobjective=regression\n\nTree=0\nnum_leaves=2\nsplit_feature=0\n"
        b"threshold=0\ndecision_type=2\nleft_child=-9223372036854775808\nright_child=-2\n"
        b"leaf_value=1 2\n\nend of trees\n",
        b'{"learner": {"learner_model_param": {"base_score": "' + b"[" * 20_000 + b'", "num_class":'
        b' "0", "num_feature": "1"}, "objective": {"name": "reg:gamma"}, "gradient_booster":'
        b' {"name": "gbtree", "model": {"trees": [], "tree_info": []}}}}',
    ],
}


@pytest.mark.parametrize("name", UNKIND)
def test_what_was_a_traceback_is_refused_in_one_line(name: str) -> None:
    for content in UNKIND[name]:
        assert not TARGETS[name](content), content[:40]
