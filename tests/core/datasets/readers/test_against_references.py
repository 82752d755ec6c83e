"""Readers against parsers of others, on made-up files."""

import csv
import io
import re
import struct

import numpy as np
import pytest
from bench_trees.importers.files import parse_ubj
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from bench_core.costs.cost_file import read_costs
from bench_core.datasets.readers.svmlight import read_svmlight
from bench_core.datasets.readers.tables import read_table
from bench_core.datasets.user_datasets import read_entries
from bench_core.errors import BenchError, InputError
from bench_core.planning.suites import read_suite
from bench_core.plugins import Registry

NOT_THERE = ["", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"]
NOT_THERE += ["1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


QUICK = settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["1e39", "3.4028235677973366e38", "1e-46", "0.1", "-0", "+.5", "7."]),
)
cells = st.one_of(numbers, st.sampled_from(["", "NA", "?", "nan", "text", '"1"', " 2 "]))
ends = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def tables(draw):
    columns, mark = draw(st.integers(2, 4)), draw(st.sampled_from(",;\t"))
    rows = draw(st.lists(st.lists(cells, min_size=columns, max_size=columns), min_size=1))
    lines = [mark.join(f"c{j}" for j in range(columns)), *(mark.join(row) for row in rows)]
    return (draw(ends).join([*lines, ""])).encode()


@st.composite
def rows_of_svmlight(draw):
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        indices = sorted(draw(st.sets(st.integers(1, 12), max_size=6)))
        found = [f"{index}:{draw(numbers)}" for index in indices]
        lines.append(" ".join([draw(st.sampled_from(["0", "1", "-1.5", "2e3"])), *found]))
    return (draw(ends).join([*lines, ""])).encode()


@QUICK
@example(content=b"0 1:3.4028235e38 2:-3.4028234e38\n1 1:3.4028e38\n")
@given(content=rows_of_svmlight())
def test_svmlight_is_read_as_by_scikit_learn(content, tmp_path):
    path = tmp_path / "x.svm"
    path.write_bytes(content)
    try:
        found = read_svmlight(path)
    except InputError:
        return
    X, y = load_svmlight_file(str(path), n_features=found.X.shape[1], zero_based=False)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found.X, X.toarray().astype(np.float32))
    np.testing.assert_array_equal(found.y, y)


def _records(text, mark):
    """The cells of each row, but of blank lines, which are no rows below the header."""
    used = []

    def noted():
        for line in io.StringIO(text, newline="\n"):
            used.append(line)
            yield line

    for row in csv.reader(noted(), delimiter=mark):
        raw = "".join(used)
        used.clear()
        if raw.strip(" \t\n") or mark in raw:
            yield row


@QUICK
@example(content=b"a,b\n3.4028235e38,-3.4028234e38\n3.4028e38,1\n")
@given(content=tables())
def test_tables_are_read_as_by_csv_and_float(content, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    try:
        found = read_table(path)
    except InputError:
        return
    text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"^([ \t]*\n|\ufeff)*\ufeff", "", text)
    header = next(line for line in text.split("\n") if line.strip())
    marks = [
        mark
        for mark in ",;\t"
        if tuple(cell.strip() for cell in next(_records(header, mark))) == found.names
    ]
    assert marks, f"no separator makes {found.names} of the header"
    mark = marks[0]
    lines = list(_records(re.sub(r"^(?:[ \t]*\n)*", "", text), mark))
    for j, name in enumerate(found.names):
        assert name == lines[0][j].strip()
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


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def as_ubj(value):
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


def _length(content):
    return b"l" + struct.pack(">i", len(content))


@QUICK
@given(value=documents)
def test_universal_binary_json_is_read(value):
    found = parse_ubj(as_ubj(value))
    assert repr(_plain(found)) == repr(_plain(value))  # as text, since nan is not itself


def _plain(value):
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | np.ndarray):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value


DEEP, LONG = "[" * 20_000, "9" * 5000
READ = {
    "suite": lambda path: read_suite(path, Registry()),
    "datasets": read_entries,
    "costs": lambda path: read_costs(path, ("TSH",)),
}


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        *(("suite", text) for text in (f"a = {DEEP}", f"seeds = [{LONG}]", "title = 2020-01-01")),
        *(("datasets", text) for text in (f"a = {DEEP}", f"[a]\nfolds = {LONG}", "a = 2020-01-01")),
        *(("costs", text) for text in (DEEP, f"[{LONG}]", '{"costs": {"TSH": 1e999}}')),
    ],
)
def test_deep_brackets_and_long_numbers_are_refused(kind, content, tmp_path):
    path = tmp_path / "x.toml"
    path = path.with_suffix(".json") if kind == "costs" else path
    path.write_text(content)
    with pytest.raises(BenchError):
        READ[kind](path)
