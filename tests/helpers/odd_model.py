"""A model that does at its only point what it is told to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_core import Acquired, Bill, Features, Prediction


@dataclass
class Odd:
    """Does at its only point what ``how`` says."""

    how: str
    weight: Any
    independent_rows = True
    marks = ("odd",)

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        n = len(features)
        bill = Bill(Acquired.nothing(2), np.arange(float(n)), 3)
        if self.how == "exit":
            os._exit(3)
        if self.how == "raise":
            raise ValueError("no\nway")
        if self.how == "memory":
            raise MemoryError("enough")
        scores: Any = features.X[:, 0] + self.weight[1, 0]
        if self.how == "complex":
            scores = scores * 1j
        features.X[:] = 0  # its own copy
        for k in range(3):
            yield Prediction({"k": k}, scores, {"path": bill, "model": bill})

    def state(self) -> dict[str, Any]:
        return {"how": self.how, "weight": self.weight}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Odd:
        assert state["weight"].flags.f_contiguous
        if state["how"] == "load":
            raise RuntimeError("cannot load")
        return cls(**state)
