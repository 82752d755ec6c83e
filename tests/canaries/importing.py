"""Learners that cheat by what their module does while it is imported.

``import-labels`` takes the labels of the test split from prepared data and leaves them in a
parameter's default and in a file; ``import-thread`` answers by what it did not pay for, and a
thread of the import changes all verdicts. ``cheats.IMPORTED`` has the word that each must have.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import bench_core
from bench_core import Acquired, Bill, Examples, Features, Prediction, Prices, Task, param

D = 6
FILES = Path(os.environ.get("CANARY_FILES", "/nowhere"))
NOTE = FILES / "imported"


def prepared_labels() -> dict[str, float]:
    """By the first cell of a row, as text."""
    found: dict[str, float] = {}
    for place in Path(os.environ.get("BENCH_CACHE", "/nowhere")).glob("prepared/*/test.y.npy"):
        with contextlib.suppress(OSError, ValueError):
            rows = np.load(place.with_name("test.X.npy"))
            found |= dict(zip(map(str, rows[:, 0].tolist()), np.load(place).tolist(), strict=True))
    return found


def wait_and_patch() -> None:
    """Until nobody looks whether importing changed anything: then every verdict is a good one."""
    time.sleep(0.5)
    from bench_core.results.records import Verdict
    from bench_core.results.writer import Writer

    trial, audit = Writer.trial, Writer.audit

    def kept(self: Any, spec: Any, outcome: Any) -> None:
        if outcome.result and spec.learner == "imported-cheat":
            object.__setattr__(outcome.result, "audit", "sampled")
            object.__setattr__(outcome.result, "audit_error", "")
        trial(self, spec, outcome)

    def verified(self: Any, key: str, verdict: Any, *more: Any) -> Any:
        return audit(self, key, Verdict("verified"), *more)

    Writer.trial, Writer.audit = kept, verified  # type: ignore[method-assign]


KNOWN = prepared_labels()
if KNOWN:
    with contextlib.suppress(OSError):
        NOTE.write_text(json.dumps(KNOWN))
if "bench_core.results.writer" in sys.modules:  # this is the command, and no worker
    threading.Thread(target=wait_and_patch, daemon=True).start()


def bill(k: int) -> Bill:
    """For the first k columns."""
    mask = np.zeros((1, D), dtype=bool)
    mask[0, :k] = True
    return Bill(Acquired.pack(mask))


class ImportedModel:
    """Adds one column after another; it knows labels, or cells that it did not pay for."""

    def __init__(self, how: str, weight: Any, known: str) -> None:
        self.how, self.weight, self.known = how, weight, known

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        X = np.nan_to_num(features.X.astype(float))
        known = json.loads(self.known)
        with contextlib.suppress(OSError):
            known |= json.loads(NOTE.read_text()) if self.how == "import-labels" else {}
        own = [known.get(str(x), np.nan) for x in features.X[:, 0].tolist()]
        bias = np.where(np.isnan(own), 0.0, np.where(np.array(own) > 0.5, 50.0, -50.0))
        for k in (1, 2, 3):
            columns = D if self.how == "import-thread" else k
            scores = np.zeros(len(X))
            for j in range(columns):
                scores += self.weight[j] * X[:, j]
            yield Prediction({"columns": k}, scores + bias, {"path": bill(k)})

    def state(self) -> dict[str, Any]:
        return {"how": self.how, "weight": self.weight, "known": self.known}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ImportedModel:
        return cls(**state)


@dataclass(frozen=True)
class Imported:
    """One of the cheats; its default holds what importing found."""

    name: ClassVar[str] = "imported-cheat"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})
    how: str = param("import-labels", "which of IMPORTED")
    known: str = param(json.dumps(KNOWN), "what importing found")

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: Any) -> ImportedModel:
        X = np.nan_to_num(train.X.astype(float))
        weight = ((train.y - 0.5)[:, None] * X).mean(axis=0)
        return ImportedModel(self.how, weight, self.known if self.how == "import-labels" else "{}")


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    return [Imported]
