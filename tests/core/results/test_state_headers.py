"""A learner may have forged the file of its model: the command reads of it a header, checked."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_core.errors import InputError
from bench_core.results.store_files import is_whole, model_class, read_state, shared_with

HEADER = {"model": "m:M", "values": {}, "shared": {}}
FORGED: dict[str, Any] = {
    "list": [],
    "no-model": {"values": {}},
    "class-is-no-text": HEADER | {"model": 7},
    "shared-is-a-list": HEADER | {"shared": [1]},
    "one-is-a-number": HEADER | {"shared": {"x": 1}},
    "one-is-short": HEADER | {"shared": {"x": ["key"]}},
    "place-is-a-list": HEADER | {"shared": {"x": ["key", [], ""]}},
    "key-is-a-number": HEADER | {"shared": {"x": [1, "x", ""]}},
    "key-is-a-path": HEADER | {"shared": {"x": ["../../elsewhere/model", "x", ""]}},
}


def write(path: Path, header: Any) -> None:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    np.savez(path, json=np.frombuffer(raw, dtype=np.uint8))


@pytest.mark.parametrize("how", FORGED)
def test_a_header_that_is_none_is_that_of_no_model(how: str, tmp_path: Path) -> None:
    path = tmp_path / "ab" / "model.npz"
    path.parent.mkdir()
    write(path, HEADER)
    assert (model_class(path), shared_with(path)) == ("m:M", set())
    write(path, FORGED[how])
    refused(path)


def test_neither_depth_nor_size_of_a_header_ends_the_command(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    write(path, b"[" * 200_000)
    refused(path)
    file = io.BytesIO()
    about = {"descr": "|u1", "fortran_order": False, "shape": (1 << 60,)}
    np.lib.format.write_array_header_1_0(file, about)  # type: ignore[arg-type]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("json.npy", file.getvalue())
    refused(path)
    path.write_bytes(b"no archive")
    refused(path)


@pytest.mark.parametrize("how", ["packed", "encrypted", "header"])
def test_no_fault_of_an_archive_ends_the_command(how: str, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    raw = json.dumps(HEADER).encode()
    np.savez_compressed(path, json=np.frombuffer(raw, dtype=np.uint8))
    found, entry = bytearray(path.read_bytes()), path.read_bytes().rfind(b"PK\1\2")
    if how == "packed":
        start = 30 + sum(found[26:30:2])  # behind the name and what else stands before
        found[start : start + 2] = b"\xff\xff"
    elif how == "encrypted":
        found[6] |= 1
        found[entry + 8] |= 1
    path.write_bytes(found)
    if how == "header":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("json.npy", b"\x93NUMPY\1\0\x10\0{'descr': (((((\n")
    refused(path)
    assert how == "header" or not is_whole(path)


def test_models_that_share_arrays_in_a_circle_are_refused(tmp_path: Path) -> None:
    one, two = (tmp_path / key / f"{key}.npz" for key in ("aa", "bb"))
    for path, other in ((one, two), (two, one)):
        path.parent.mkdir()
        write(path, HEADER | {"shared": {"x": [other.stem, "x", ""]}})
    with pytest.raises(InputError, match="shares arrays with itself"):
        read_state(one)


def refused(path: Path) -> None:
    assert (model_class(path), shared_with(path)) == ("", set())
    with pytest.raises((InputError, MemoryError)):
        read_state(path)
