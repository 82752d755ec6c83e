"""A third-party plugin for the tests' ``-p``: a learner that works, one that fails, and one that
reads unbought columns. Kept free of slow imports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from bench_core import Acquired, Bill, Examples, Features, Prediction, Prices, Task, hookimpl, param


class FirstColumns:
    """Adds up the first columns; point k has bought k of them."""

    def __init__(self, columns: int, sensors: int, peek: int = 0) -> None:
        self.columns, self.sensors, self.peek = columns, sensors, peek

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        rows = len(features)
        for k in range(self.columns + 1):
            bought = np.zeros((1, self.sensors), dtype=bool)
            bought[0, :k] = True
            scores = np.zeros(rows)
            for j in range((k + self.peek) if k else 0):
                scores = scores + np.nan_to_num(features.X[:, j].astype(np.float64))
            yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(bought))})

    def state(self) -> Mapping[str, Any]:
        return {"columns": self.columns, "sensors": self.sensors, "peek": self.peek}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        return cls(int(state["columns"]), int(state["sensors"]), int(state["peek"]))


@dataclass(frozen=True)
class Toy:
    """Adds up the first columns and learns nothing."""

    name: ClassVar[str] = "toy"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.REGRESSION})

    columns: int = param(2, "how many columns to add up")

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: Any) -> FirstColumns:
        return FirstColumns(self.columns, prices.sensors)


@dataclass(frozen=True)
class Broken(Toy):
    """Fails to fit."""

    name: ClassVar[str] = "broken"

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: Any) -> FirstColumns:
        raise RuntimeError("no luck <b>today</b>\nand a second line")


@dataclass(frozen=True)
class Peeking(Toy):
    """Reads one column more than it declares."""

    name: ClassVar[str] = "peeking"

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: Any) -> FirstColumns:
        return FirstColumns(1, prices.sensors, peek=1)


@hookimpl
def bench_learners() -> Sequence[Any]:
    return [Toy, Broken, Peeking]
