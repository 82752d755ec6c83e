"""The data frame of a run: a row for each trial, operating point and split.

Its columns are ``RUN``, the short name of the trial, and the fields of ``Trial`` and
``OperatingPoint`` that have no ``frame=False`` in their metadata.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from bench_core.results.records import TRIAL_DIGITS, OperatingPoint, Trial
from bench_core.results.tables import columns_of, quoted
from bench_core.splits import SPLITS

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

RUN = ("run", "suite", "profile")
_FIRST = (
    *(*RUN, "trial", "dataset", "fold", "fingerprint", "stand_in"),
    *("learner", "learner_version", "params", "seed", "point", "split", "status", "error"),
)
_COUNTS = ("features_used", "threads", "workers")  # integers that a row may lack
_AT_ONCE = 50_000  # rows; as Python's objects those of a large run take gigabytes

_TRIALS = """
SELECT position, substr(key, 1, {}) AS trial, {} FROM run_trial
CROSS JOIN trial ON trial.key = run_trial.trial WHERE run_trial.run = ?
"""
_POINTS = """
SELECT position, {} FROM run_trial CROSS JOIN trial ON trial.key = run_trial.trial
LEFT JOIN point ON point.trial = trial.key WHERE run_trial.run = ?
ORDER BY position, instr('{}', split), number
"""


def export_frame(db: sqlite3.Connection, info: RunInfo, compact: bool = False) -> pd.DataFrame:
    """The frame of a run. ``compact``: text is categorical."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    of_trial, of_point = (
        {c.name: c.kind for c in columns_of(record) if c.about.get("frame", True)}
        for record in (Trial, OperatingPoint)
    )
    del of_point["metrics"]
    numbers = [*info.metrics, *(name for name, kind in of_point.items() if kind in (int, float))]
    names = ", ".join(f"trial.{name}" for name in of_trial)
    trials = pd.read_sql_query(
        _TRIALS.format(TRIAL_DIGITS, names), db, "position", params=[info.run]
    )
    trials = trials.assign(**{name: str(getattr(info, name)) for name in RUN})
    # a text is kept once: the rows of a trial share theirs
    texts = [name for name in trials if of_trial.get(name) not in (int, bool, float)]
    trials[texts] = trials[texts].astype(object).fillna("").astype("category")
    names = ", ".join(f"point.{quoted(name)}" for name in ("point", "split", *numbers))
    query = _POINTS.format(names, " ".join(SPLITS))
    types = dict.fromkeys(numbers, "float64") | {"point": "category", "split": "category"}
    parts = [*pd.read_sql_query(query, db, params=[info.run], dtype=types, chunksize=_AT_ONCE)]
    points = pd.concat([part[["position", *numbers]] for part in parts], ignore_index=True)
    for name in ("point", "split"):
        whole = union_categoricals([part.pop(name).cat.add_categories("") for part in parts])
        points[name] = whole.fillna("")
    frame = points.join(trials, on="position")
    kinds = of_trial | of_point
    frame = frame.astype(
        {
            name: "Int64" if name in _COUNTS else kinds[name]
            for name in kinds
            if kinds[name] in (int, bool, float)
        }
        | ({} if compact else dict.fromkeys((*texts, "point", "split"), "str"))
    )
    return frame[[*dict.fromkeys((*_FIRST, *numbers, *of_trial))]]
