"""What made a trial's numbers, and trials by a short name: for exports, logs and reruns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_core.errors import UsageError
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
    by split and point, and packed ``values`` by split and name.

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
    trial = db.execute("SELECT * FROM trial WHERE key = ?", [key]).fetchone()
    run = db.execute(
        "SELECT about FROM run JOIN run_trial ON run.id = run WHERE trial = ? "
        "ORDER BY updated_at DESC LIMIT 1",
        [key],
    ).fetchone()
    rows = {}
    for row in db.execute("SELECT * FROM point WHERE trial = ? ORDER BY split, position", [key]):
        numbers = {**json.loads(row["metrics"]), **dict(row)}
        for name in ("trial", "split", "position", "metrics", "point"):
            numbers.pop(name)
        rows[row["split"], row["point"]] = numbers
    units = db.execute("SELECT * FROM unit WHERE trial = ?", [key])
    values = {(u["split"], name): u[name] for u in units for name in VALUE_ARRAYS}
    spec = json.loads(trial["spec"])
    installed = spec.pop("installed", "")
    request = json.loads(run["about"])["request"] if run else {}
    return StoredTrial(key, spec, installed, trial["machine"], rows, values, request)
