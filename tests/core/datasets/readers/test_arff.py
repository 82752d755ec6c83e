"""ARFF files: numbers, text, gaps, and lines that do not fit."""

import gzip

import numpy as np
import pytest
from helpers.kit import refused

from bench_core.datasets.readers.arff import read_arff

HEAD = "% note\n@relation r\n@attribute a string\n@ATTRIBUTE b REAL\n@attribute c {x,y}\n\n@Data\n"


@pytest.mark.parametrize("packed", [False, True])
def test_numbers_text_and_gaps(packed, tmp_path):
    raw = f"{HEAD}% none\nq,1.5,x\n?,?,?\n7,-2e3,y\n".encode()
    path = tmp_path / ("a.arff.gz" if packed else "a.arff")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    frame = read_arff(path)
    assert frame["a"].tolist() == ["q", None, "7"]
    assert frame["c"].tolist() == ["x", None, "y"]
    assert frame["b"].dtype == np.float64
    assert frame["b"].fillna(0).tolist() == [1.5, 0, -2000]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("q,1,x\nq,1\n", "line 9: 2 cells for 3 attributes"),
        ("q,1,x\n\nq,one,x\n", "line 10, column 'b': 'one' is not a number"),
        ("", "no rows below @DATA"),
    ],
)
def test_other_lines_are_refused(rows, message, tmp_path):
    path = tmp_path / "a.arff"
    path.write_text(HEAD + rows)
    refused(message, read_arff, path)
