"""Messages over a pipe: a JSON header and raw arrays.

    8 bytes length of the header | header | arrays one after another

The header's ``arrays`` lists name, type and shape of each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

from bench_core.arrays import Array

_LENGTH = 8


def send(pipe: BinaryIO, message: Mapping[str, Any], arrays: Mapping[str, Array] = {}) -> None:
    """Write one message and flush it. NaN and infinities travel as Python's JSON spells them."""
    solid = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in solid.items()]
    header = json.dumps({**message, "arrays": listed}).encode()
    pipe.write(len(header).to_bytes(_LENGTH, "little") + header)
    for array in solid.values():
        if array.size:
            pipe.write(array.reshape(-1).view(np.uint8).data)
    pipe.flush()


def receive(pipe: BinaryIO) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read one message. Raises EOFError where the other side is gone."""
    header = json.loads(_exactly(pipe, int.from_bytes(_exactly(pipe, _LENGTH), "little")))
    arrays = {}
    for name, kind, shape in header.pop("arrays"):
        dtype = np.dtype(kind)
        raw = _exactly(pipe, dtype.itemsize * math.prod(shape))
        arrays[name] = np.frombuffer(raw, dtype=dtype).reshape(shape)
    return header, arrays


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data
