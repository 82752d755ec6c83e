"""Points and values of a trial as columns of rows, and what was compressed there."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core.results.blocks import FEW, block_means
from bench_core.results.records import CELLS, VALUE_ARRAYS, PointRow, StoredValues

_WORTH = 0.75
"""The most that compressed values may take of what they take as they are."""


def packed_points(rows: Sequence[PointRow]) -> Iterator[dict[str, Any]]:
    """The rows of table ``point`` for a trial, without its key."""
    for split in dict.fromkeys(row.split for row in rows):
        own = sorted((row for row in rows if row.split == split), key=lambda row: row.index)
        metrics = list(own[0].metrics)
        cells = [
            [*(row.metrics[name] for name in metrics), *(getattr(row, name) for name in CELLS)]
            for row in own
        ]
        yield {
            "split": split,
            "points": json.dumps([canonical(row.point) for row in own]),
            "columns": json.dumps([*metrics, *CELLS]),
            "cells": np.array(cells, "<f8").tobytes(),
        }


def unpacked(blob: bytes) -> bytes:
    """What was compressed. Blocks that are framed as they are (RFC 1951, 3.2.4) are copied: the
    row's checksum covers them, so that of zlib need not be computed too."""
    parts, at, last = [], 2, 0
    while not last:
        last, kind = blob[at] & 1, blob[at] & 6
        if kind:
            return zlib.decompress(blob)
        end = at + 5 + int.from_bytes(blob[at + 1 : at + 3], "little")
        parts.append(blob[at + 5 : end])
        at = end
    return b"".join(parts)


def packed_blocks(stored: StoredValues) -> dict[str, Any]:
    """The row of table ``block``, without its key; none where units are no more than blocks."""
    if len(stored.weights) <= FEW:
        return {}
    means = block_means(stored.metric, stored.cost, stored.weights, stored.rows, FEW)
    cells = np.vstack(means).astype("<f4").tobytes()
    return {"split": stored.split, "points": json.dumps(stored.points), "cells": cells}


def packed_values(stored: StoredValues) -> dict[str, Any]:
    """Compressed float32: most values of a split are few numbers, repeated. Where they are not, and
    little is saved, they are framed as they are, which is read ten times as fast."""
    blobs = {}
    for name in VALUE_ARRAYS:
        raw = np.asarray(getattr(stored, name), "<f4").tobytes()
        packed = zlib.compress(raw, 6)
        blobs[name] = packed if len(packed) < _WORTH * len(raw) else zlib.compress(raw, 0)
    return {"split": stored.split, "points": json.dumps(stored.points), **blobs}
