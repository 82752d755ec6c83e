"""Exported C, compiled by an available compiler and run on rows."""

import shutil
import subprocess
from pathlib import Path

import bench_c
import numpy as np

from bench_core.serving import Predictor
from bench_core.serving.folder import write_as
from helpers.program_cases import X

HERE = Path(__file__).parent
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")
SAFE = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def write_c(place, folder):
    """Write a folder as ``bench model export --format c`` does; return its remark."""
    return write_as(place, folder, "c", bench_c.write_c)


def compiled(folder, main, place, flags, compiler):
    """The program of a folder ``c`` with the two files and a main of this folder."""
    files = [str(folder / "bench_model.c"), str(HERE / main)]
    words = [compiler, *STRICT, *flags, f"-I{folder}", *files, "-o", str(place / "run"), "-lm"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(place / "run")


def served(folder, place, flags, compiler, cap=0.0, rows=X, prices=None):
    """Output of the compiled model for the rows, (n, K + 3), which may have ``prices`` (n, c)."""
    write_c(place / "c", folder)
    program = compiled(place / "c", "serve_rows.c", place, flags, compiler)
    rows.tofile(place / "rows")
    files = [str(place / name) for name in ("rows", "out", "prices")]
    words = [program, *files[:2], repr(cap)]
    if prices is not None:
        prices.tofile(files[2])
        words.append(files[2])
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return np.fromfile(place / "out").reshape(len(rows), -1)


def assert_same(folder, found, cap=None, rows=X, prices=None):
    answers = Predictor(folder).predict_features(rows, None, cap, prices)
    scores = answers.scores.reshape(len(rows), -1)
    assert np.allclose(found[:, :-3], scores, rtol=1e-9, atol=1e-9, equal_nan=True)
    assert np.allclose(found[:, -3], answers.spent, rtol=1e-9)
    assert np.array_equal(found[:, -2] == 2, answers.capped)
