"""Readers against parsers of others (``reference_parsers``), on made-up and spoilt files."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest
from helpers import reference_parsers as targets
from helpers.bad_input_cases import SUITE, svm, table
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
    found = targets.parse_ubj(as_ubj(value))
    assert targets._plain(found) == targets._plain(value)


@st.composite
def cost_files(draw: st.DrawFn) -> bytes:
    prices = [draw(numbers) for _ in targets.NAMES]
    pairs = dict(zip(targets.NAMES, prices, strict=True))
    form = draw(st.sampled_from(["csv", "colon", "bare", "json", "list"]))
    if form in ("csv", "colon"):
        mark = "," if form == "csv" else ":"
        return "\n".join(f"{name}{mark}{price}" for name, price in pairs.items()).encode()
    if form == "bare":
        return "\n".join(prices).encode()
    values = [float(price) for price in prices]
    made = dict(zip(targets.NAMES, values, strict=True)) if form == "json" else values
    return json.dumps(made).encode()


CASES = {
    "table": (holds(targets.table), tables()),
    "svm": (holds(targets.svm), rows_of_svmlight()),
    "costs": (holds(targets.costs), cost_files()),
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
        targets.TARGETS[name](text.encode())
        for _ in range(4):
            targets.TARGETS[name](spoilt(text, draw))


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
        assert not targets.TARGETS[name](content), content[:40]
