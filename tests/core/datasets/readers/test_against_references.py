"""Readers against parsers of others, on made-up files."""

import struct

import numpy as np
import pytest
from bench_trees.importers.files import parse_ubj
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench_core.costs.cost_file import read_costs
from bench_core.datasets.user_datasets import read_entries
from bench_core.errors import BenchError
from bench_core.planning.suites import read_suite
from bench_core.plugins import Registry

QUICK = settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)


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
