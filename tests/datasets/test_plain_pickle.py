"""Pickles of a publisher are read without running anything of theirs."""

import os
import pickle
import sys
import types

import numpy as np
import pytest
from bench_datasets._plain_pickle import read_pickle
from helpers.kit import refused

from bench_core.errors import InputError

PLAIN = {
    "answers": {"a": ["B", "\N{SNOWMAN}", None], "b": [True, 1.5, -(2**70), float("-inf")]},
    "pair": ([[], {}, ()], 0),
}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_are_read_as_they_are(protocol, tmp_path):
    path = tmp_path / "plain.pkl"
    path.write_bytes(pickle.dumps(PLAIN, protocol))
    assert read_pickle(path) == PLAIN


def test_scalars_of_numpy_become_numbers(tmp_path):
    path = tmp_path / "scalars.pkl"
    values = [np.float64(-0.25), np.float32(0.5), np.int64(-7), np.bool_(True), np.float64("-inf")]
    values.append(np.array([1.5], dtype=">f8")[0])  # big-endian
    path.write_bytes(pickle.dumps(values))
    read = read_pickle(path)
    assert read == [-0.25, 0.5, -7, True, float("-inf"), 1.5]
    assert [type(value) for value in read] == [float, float, int, bool, float, float]


def test_named_classes_become_empty_objects(tmp_path, monkeypatch):
    module = types.ModuleType("niagara.chain")
    module.ChainResponse = type("ChainResponse", (), {"__module__": "niagara.chain"})
    monkeypatch.setitem(sys.modules, "niagara", types.ModuleType("niagara"))
    monkeypatch.setitem(sys.modules, "niagara.chain", module)
    response = module.ChainResponse()
    response.answer = "A"
    path = tmp_path / "responses.pkl"
    path.write_bytes(pickle.dumps({"responses": [response], "n": 1}))
    read = read_pickle(path, ["niagara.chain.ChainResponse"])
    assert read["n"] == 1
    assert not hasattr(read["responses"][0], "answer")
    refused("it asks for 'niagara.chain.ChainResponse'", read_pickle, path, error=InputError)


class Runs:
    """A pickle that calls a function with a file's name."""

    def __init__(self, function, *values):
        self.call = function, values

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "function", [os.mkdir, os.system, eval, __import__, open, print, np.load, np.array]
)
def test_code_is_refused_before_it_runs(function, tmp_path):
    path, mark = tmp_path / "evil.pkl", tmp_path / "mark"
    path.write_bytes(pickle.dumps({"chain": Runs(function, str(mark))}))
    refused("nothing of it was run", read_pickle, path, error=InputError)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        # attributes reached through an allowed name
        ("dotted", b"\x80\x04\x8c\x05numpy\x8c\x15dtype.__init__.__code__\x93."),
        ("object", pickle.dumps(np.array([{}], dtype=object))),
        ("cut", pickle.dumps(PLAIN)[:-9]),
        ("text", b"no pickle"),
        ("empty", b""),
        ("huge", b"\x80\x05\x96" + (2**62).to_bytes(8, "little") + b"x."),  # a bytearray of 4 EiB
        # a scalar of objects, whose bytes would be a pickle of their own
        (
            "nested",
            b"\x80\x04cnumpy._core.multiarray\nscalar\n(cnumpy\ndtype\n(X\x02\x00\x00\x00O8tRC\x01xtR.",
        ),
    ],
)
def test_damaged_files_are_refused_in_one_line(name, raw, tmp_path):
    path = tmp_path / f"{name}.pkl"
    path.write_bytes(raw)
    refused(str(path), read_pickle, path, error=InputError)
