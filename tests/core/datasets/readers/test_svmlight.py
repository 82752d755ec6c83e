"""The SVMlight reader."""

import gzip
import io
import struct

import numpy as np
import pytest
from helpers.kit import refused
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from bench_core.data import Examples, Queries
from bench_core.datasets.readers import svmlight
from bench_core.datasets.readers.svmlight import LARGEST, first_queries, read_svmlight
from bench_core.errors import InputError


def read(folder, text, **options):
    path = folder / "data.svm"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_svmlight(path, **options)


def random_file(rows, features, seed):
    """An SVMlight file by scikit-learn's writer, with the matrix and labels it holds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    X *= 10.0 ** rng.integers(-8, 8, size=X.shape)
    X[rng.random(X.shape) < 0.6] = 0
    X[0, -1] = 1.5
    y = rng.integers(-40, 40, size=rows) / 8  # the writer keeps 16 digits only
    out = io.BytesIO()
    dump_svmlight_file(X, y, out, zero_based=False, query_id=np.sort(rng.integers(1, 9, rows)))
    return out.getvalue(), X, y


def test_equals_scikit_learn_on_random_rows(tmp_path):
    content, X, _ = random_file(300, 40, seed=1)
    rows = read(tmp_path, content)
    theirs, labels, query = load_svmlight_file(io.BytesIO(content), query_id=True)
    np.testing.assert_array_equal(rows.X, theirs.toarray().astype(np.float32))
    np.testing.assert_array_equal(rows.X, X)
    np.testing.assert_array_equal(rows.y, labels)
    np.testing.assert_array_equal(np.repeat(rows.qids, rows.queries.sizes), query)


@pytest.mark.parametrize(
    "text",
    [
        "1 1:2\n\n\n0 2:3\n",
        "# header\n1 1:2\n   # note\n0 2:3 # why 5:6\n",
        "1 1:2\r\n0 2:3\r\n",
        "1\t1:2\n  0  2:3   \n",
        "1 1:2\n0 2:3",
        "1 1:2#5\n0 2:3\n\n",
        "1 001:2 000000000002:0\n0 0002:3\n",
        "+1 1:+2\n0 2:3.\n",
        "1.0 1:2.000\n-0 1:0 2:.3e1\n",
        "1 qid:7 1:2 # qid:5 3:4\n0\tqid:8 2:3\n",
    ],
)
def test_layout_does_not_matter(tmp_path, text):
    rows = read(tmp_path, text)
    np.testing.assert_array_equal(rows.X, [[2, 0], [0, 3]])
    assert rows.y.tolist() == [1, 0]


def test_nan_is_a_missing_value(tmp_path):
    rows = read(tmp_path, "1 1:nan 2:NaN 3:+nan\n0 2:1\n")
    np.testing.assert_array_equal(rows.X, [[np.nan] * 3, [0, 1, 0]])


def test_columns_can_be_chosen_while_reading(tmp_path):
    text = "1 1:1 2:2 4:4\n0 3:3\n"
    rows = read(tmp_path, text, features=5, columns=np.array([1, 3, 4]))
    np.testing.assert_array_equal(rows.X, [[2, 4, 0], [0, 0, 0]])


@pytest.mark.parametrize("side_car", ["data.svm.query", "data.svm.group"])
def test_queries_come_from_a_side_car(tmp_path, side_car):
    (tmp_path / side_car).write_text("2\n\n1\n")
    rows = read(tmp_path, "1 1:1\n0 1:2\n2 1:3\n")
    assert rows.queries.boundaries.tolist() == [0, 2, 3]


# Numbers that are hard to round: halfway cases, many digits, the ends of the range, and the
# classic traps of decimal-to-binary conversion.
HARD = """
    0 -0 1 0.1 0.2 0.3 1e22 1e23 9007199254740991 9007199254740992 9007199254740993
    9007199254740993.0 9007199254740994 8.5e-1 123456789012345678 1234567890123456789
    12345678901234567890 0.1234567890123456789 0.12345678901234567891
    0.000000000000000000000123456789 3.4028234663852886e38 1e-45 1.4e-45 1e-46 5e-324 2.5e-324
    2.2250738585072014e-308 2.2250738585072011e-308 1e-400 1e-999999999999 0e999999999999
    6.9294956446009195e15 1.00000005960464477539 1.000000059604644775390625
    1.0000000596046447753906250000001 16777217 16777216.5 33554433.0 0.30000001192092896
    7.2057594037927933e16 1.7976931348623157e-308 000000000000000000000000000000000.5
    100000000000000000000000000000000000000e-38 1.e2 .5e-3 1E+5 1e-5 4503599627370496.5
    4503599627370497.5 4503599627370498.5 8589934592.0000000009 0.0000000000000000000000000000001
"""


@pytest.mark.parametrize("token", HARD.split())
def test_hard_numbers_are_rounded_as_python_rounds_them(tmp_path, token):
    rows = read(tmp_path, f"{token} 1:{token} 2:-{token.lstrip('-')}\n")
    value = float(token)
    assert struct.pack("d", rows.y[0]) == struct.pack("d", value)
    assert rows.X[0].tobytes() == np.array([value, -abs(value)], dtype=np.float32).tobytes()


SOUND = b"2 qid:1 1:0.5 2:12 9:-3.25 10:1e3 11:7\n0 qid:1 3:0.123456789 99:4 100:.5\n1 qid:2 8:1\n"


@settings(max_examples=200, deadline=None)
@example(edits=[(0, 2, b"0"), (47, 1, b"0"), (59, 1, b"e")])
@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 2), st.sampled_from(
            [bytes([c]) for c in b"0159 \t\r\n\f.:-+eE#qdnx\x00\x7f\x80\xff"]
        )),
        min_size=1, max_size=3,
    ),
)  # fmt: skip
def test_a_file_with_wrong_bytes_is_read_or_refused_with_its_line(edits, tmp_path_factory):
    """Bytes put in, put in another's place or taken out."""
    content = SOUND
    for at, removed, put in edits:
        content = content[:at] + (b"" if removed == 2 else put) + content[at + min(removed, 1) :]
    path = tmp_path_factory.getbasetemp() / "bytes.svm"
    path.write_bytes(content)
    said = ""
    try:
        read_svmlight(path)
    except InputError as error:
        said = str(error)
    assert not said or ", line " in said or "in this file" in said


HUGE = ["1.79769313486231570815e+308", "1.7976931348623157e308", "179769313486231570000e288"]
HUGE += ["0.00000000000000000000017e330", "3.5e38", "-1e39", "1e999", "1" * 40]
HUGE += ["123456789012345678901e999999999999"]
# the last rounds to the largest; warnings are errors
NEAR_LARGEST = ["3.4028e38", "3.4028234e38", "3.4028235e38", "3.4028235677973364e38"]


@pytest.mark.parametrize("token", HUGE)
def test_a_value_beyond_float32_is_missing_where_the_reader_is_told_so(tmp_path, token):
    text = f"0 1:1 2:{token} 3:2\n1 1:{LARGEST!r} 2:3\n"
    rows = read(tmp_path, text, huge_is_missing=True)
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(rows.X, [[1, np.nan, 2], [largest, 3, 0]])
    refused("line 1: feature 2|too large", read, tmp_path, text)


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("token", NEAR_LARGEST)
def test_values_near_the_largest_of_float32_are_read_quietly(tmp_path, token, sign):
    rows = read(tmp_path, f"0 1:1 2:{sign}{token}\n1 1:{sign}{token} 2:3\n2 1:{sign}{token}\n")
    value = np.float32(float(sign + token))
    np.testing.assert_array_equal(rows.X, [[1, value], [value, 3], [value, 0]])
    assert not rows.merged


def test_first_queries_keeps_queries_whole():
    X = np.zeros((6, 1), dtype=np.float32)
    examples = Examples(X, np.arange(6.0), Queries.from_sizes(np.array([2, 3, 1])))
    for rows, kept in ((1, 2), (2, 2), (4, 2), (5, 5), (100, 6)):
        assert len(first_queries(examples, rows)) == kept


def test_chunks_do_not_change_the_result(tmp_path, monkeypatch):
    content, X, y = random_file(50, 12, seed=2)
    for size in (1, 100, 2000):
        monkeypatch.setattr(svmlight, "CHUNK", size)
        rows = read(tmp_path, content)
        np.testing.assert_array_equal(rows.X, X)
        np.testing.assert_array_equal(rows.y, y)


def test_an_error_names_the_first_bad_line(tmp_path, monkeypatch):
    lines = [f"{i % 3} 1:{i} 2:1\n" for i in range(1000)]
    lines[700] = "0 2:1 1:5\n"
    lines[400] = "0 1:x\n"
    monkeypatch.setattr(svmlight, "CHUNK", 1000)
    refused("line 401: feature 1: 'x'", read, tmp_path, "".join(lines))


def test_the_learning_to_rank_sample_is_read(real_data):
    path = real_data / "ltr-lambdarank" / "rank.train"
    rows = read_svmlight(path)
    theirs, labels = load_svmlight_file(str(path), zero_based=False)
    np.testing.assert_array_equal(rows.X, theirs.toarray().astype(np.float32))
    np.testing.assert_array_equal(rows.y, labels)
    assert rows.X.shape == (3005, 300)
    assert len(rows.queries) == 201


def test_a_byte_order_mark_and_packing_change_nothing(tmp_path):
    text = b"1 qid:1 1:0.5 3:2\n0 qid:1 2:1\n"
    for name, content in (("a.svm", b"\xef\xbb\xbf" + text), ("b.svm", gzip.compress(text))):
        (tmp_path / name).write_bytes(content)
        rows = read_svmlight(tmp_path / name)
        assert rows.X.tolist() == [[0.5, 0, 2], [0, 1, 0]]
        assert rows.place(1).endswith("line 2")
