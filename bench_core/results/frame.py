"""The data frame of a run: a row for each trial, operating point and split.

Its columns are ``RUN``, the short name of the trial, and the fields of ``Trial`` and
``OperatingPoint`` that have no ``frame=False`` in their metadata.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.results.records import OperatingPoint, Trial
from bench_core.results.tables import Column, columns_of, quoted
from bench_core.splits import SPLITS

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

TRIAL_DIGITS = 12
"""Of a trial's key, in exports and logs."""

RUN = ("run", "suite", "profile")
_FIRST = (
    *(*RUN, "trial", "dataset", "fold", "fingerprint", "stand_in"),
    *("learner", "learner_version", "params", "seed", "point", "split", "status", "error"),
)
_COUNTS = ("features_used", "threads", "workers")  # integers that a row may lack
_AT_ONCE = 50_000  # rows

_TRIALS = """
SELECT run_trial.position, trial.key, {} FROM run_trial
CROSS JOIN trial ON trial.key = run_trial.trial
WHERE run_trial.run = ? ORDER BY run_trial.position
"""
_POINTS = """
SELECT run_trial.position, point.number, {} FROM run_trial
CROSS JOIN trial ON trial.key = run_trial.trial LEFT JOIN point ON point.trial = trial.key
WHERE run_trial.run = ? ORDER BY run_trial.position
"""


def export_frame(db: sqlite3.Connection, info: RunInfo, compact: bool = False) -> pd.DataFrame:
    """The frame of a run. ``compact``: text is categorical and integers are small."""
    import pandas as pd

    of_trial = [column for column in columns_of(Trial) if column.frame]
    names = ", ".join(f"trial.{quoted(column.name)}" for column in of_trial)
    asked = "position", "key", *(column.name for column in of_trial)
    trials = _read(db, _TRIALS.format(names), info.run, asked, [*_text(of_trial), "key"])
    of_point = [column for column in columns_of(OperatingPoint) if column.frame]
    cells = [n for c in of_point for n in (info.metrics if c.spread else (c.name,))]
    names = ", ".join(f"point.{quoted(name)}" for name in cells)
    points = _read(
        db, _POINTS.format(names), info.run, ("position", "number", *cells), _text(of_point)
    )
    # SQLite returns splits in alphabetical order
    split = pd.Index(SPLITS).get_indexer(points["split"])
    order = np.lexsort((points["number"], split, points["position"]))
    places = np.searchsorted(trials["position"], points["position"].take(order))
    made: dict[str, Any] = {}
    for name in dict.fromkeys((*_FIRST, *cells, *trials)):
        if name in RUN:
            codes = np.zeros(len(order), dtype=np.int8)
            made[name] = pd.Categorical.from_codes(codes, [str(getattr(info, name))])
        elif name == "trial":
            short = [str(key)[:TRIAL_DIGITS] for key in trials["key"]]
            made[name] = pd.Categorical(short).take(places)
        elif name in cells:
            made[name] = points.pop(name).take(order)
        elif name not in ("position", "key"):
            made[name] = trials[name].take(places)
    kinds = {column.name: column for column in (*of_trial, *of_point)}
    return pd.DataFrame(
        {name: _typed(values, kinds.get(name), name, compact) for name, values in made.items()},
        copy=False,
    )


def _text(columns: Iterable[Column]) -> list[str]:
    return [column.name for column in columns if column.sql == "TEXT" and not column.spread]


def _read(
    db: sqlite3.Connection, query: str, run: str, names: Iterable[str], texts: Iterable[str]
) -> dict[str, Any]:
    """The columns of a query: numbers as float64, NaN for NULL; text as categories, "" for NULL.

    Read by pieces: as Python's objects the rows of a large run take gigabytes.
    """
    import pandas as pd

    known: dict[str, dict[Any, int]] = {name: {} for name in texts}
    parts: dict[str, list[Any]] = {name: [] for name in names}
    cursor = db.execute(query, [run])
    while rows := cursor.fetchmany(_AT_ONCE):
        for (name, own), cells in zip(parts.items(), zip(*rows, strict=True), strict=True):
            if name in known:
                # a text is kept once: most rows of a trial share theirs
                code = known[name]
                codes = [code.setdefault(cell, len(code)) for cell in cells]
                own.append(np.array(codes, dtype=np.int32))
            else:
                own.append(np.array(cells, dtype=np.float64))
    found: dict[str, Any] = {}
    for name, own in parts.items():
        values = np.concatenate(own) if own else np.zeros(0, dtype=np.int32)
        if name in known:
            words = pd.Categorical([text or "" for text in known[name]])
            values = words.take(values)
        found[name] = values
    return found


def _typed(values: Any, column: Column | None, name: str, compact: bool) -> Any:
    """A column of the frame in its type."""
    import pandas as pd

    if isinstance(values, pd.Categorical):
        return values if compact else values.astype("str")
    if name in _COUNTS:
        return pd.array(values, dtype="Int32" if compact else "Int64")
    if column is not None and column.kind is bool:
        return values.astype(bool)
    if column is not None and column.kind is int:
        return pd.to_numeric(values.astype(np.int64), downcast="integer" if compact else None)
    return values
