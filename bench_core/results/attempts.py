"""The log of a store: one row for each attempt of a fit, a trial or an audit."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from bench_core.results.records import Outcome

TABLE = """
CREATE TABLE attempt (
  number INTEGER PRIMARY KEY, run TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
  title TEXT NOT NULL, status TEXT NOT NULL, error TEXT NOT NULL, trace TEXT NOT NULL,
  output TEXT NOT NULL, seconds REAL NOT NULL, created_at TEXT NOT NULL);
"""

_OF_RUN = """
SELECT kind, title, status, error, trace, output, seconds, created_at,
  row_number() OVER (PARTITION BY kind, key ORDER BY number) AS attempt
FROM attempt
WHERE run = :run OR key IN (
  SELECT trial FROM run_trial WHERE run = :run
  UNION SELECT json_extract(spec, '$.fit') FROM run_trial JOIN trial ON trial.key = trial
  WHERE run = :run)
ORDER BY number
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: the ``attempt``-th of its fit, trial (``score``) or audit.

    ``error`` is one line, ``trace`` a traceback that begins with the plugin's frames, ``output``
    the end of what was written to stdout and stderr; each is empty where there is none.
    """

    kind: str
    title: str
    status: str
    error: str
    trace: str
    output: str
    seconds: float
    created_at: str
    attempt: int


def add_attempt(db: sqlite3.Connection, run: str, outcome: Outcome, moment: str) -> None:
    """Add one row."""
    job = outcome.job
    about = (run, job.kind, job.spec.key, job.spec.title, str(outcome.status))
    texts = (outcome.error, outcome.trace, outcome.output)
    db.execute(
        "INSERT INTO attempt "
        "(run, kind, key, title, status, error, trace, output, seconds, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*about, *texts, outcome.seconds, moment),
    )


def attempts_of(db: sqlite3.Connection, run: str) -> list[Attempt]:
    """The attempts of a run's fits and trials in order, also those of earlier runs that it uses."""
    return [Attempt(**dict(row)) for row in db.execute(_OF_RUN, {"run": run})]
