"""What made a trial's numbers, and trials by a short name: for exports, logs and reruns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_core.errors import UsageError
from bench_core.results import rows
from bench_core.results.records import VALUE_ARRAYS

TRIAL_DIGITS = 12
"""Of a trial's key, in exports and logs."""
MADE_BY = ("code", "versions")
"""Columns of the export: a digest of the learner's source, and what was installed."""


def made_by(key: str, spec: Mapping[str, Any]) -> dict[str, str]:
    """A trial's short name, and what made it."""
    versions = ", ".join(filter(None, [spec.get("installed", ""), spec.get("libraries", "")]))
    return {"trial": key[:TRIAL_DIGITS], "code": spec.get("code", ""), "versions": versions}


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A trial as it is kept: ``spec`` as JSON, ``installed`` and ``machine`` of the time, ``rows``
    by split and point, and the bytes of ``values`` by split and name.

    ``request`` is that of a run that asked for it.
    """

    key: str
    spec: Mapping[str, Any]
    installed: str
    machine: str
    rows: Mapping[tuple[str, str], Mapping[str, Any]]
    values: Mapping[tuple[str, str], bytes]
    request: Mapping[str, Any]


def find_trial(db: sqlite3.Connection, path: Path, name: str) -> StoredTrial:
    """The finished trial whose key begins so, of the store at ``path``.

    Raises UsageError where there is none, or more than one.
    """
    keys = "SELECT key FROM trial WHERE substr(key, 1, ?) = ? AND status = 'ok'"
    found = [row["key"] for row in db.execute(keys, [len(name), name])] if name else []
    if len(found) != 1:
        fault = f"several trials begin with {name}" if found else f"no finished trial {name!r}"
        raise UsageError(f"{path}: {fault}; see trial in 'bench export' or 'bench log'")
    key = found[0]
    (trial,) = rows.select(db, "trial", "key = ?", key)
    asked = "id IN (SELECT run FROM run_trial WHERE trial = ?) ORDER BY updated_at DESC LIMIT 1"
    runs = rows.select(db, "run", asked, key)
    spec = json.loads(trial["spec"])
    points = {
        (one.split, point): dict(zip(one.columns, one.cells[k].tolist(), strict=True))
        for one in rows.points(db, {**trial, "spec": spec})
        for k, point in enumerate(one.points)
    }
    values = {
        (one.split, name): getattr(one, name).tobytes()
        for split in spec["splits"]
        for one in rows.values(db, key, split)
        for name in VALUE_ARRAYS
    }
    installed = spec.pop("installed", "")
    request = json.loads(runs[0]["about"])["request"] if runs else {}
    return StoredTrial(key, spec, installed, trial["machine"], points, values, request)
