"""A plugin of small learners and data sets for the tests of the run engine.

Every fit adds a line to the file named by TOY_LOG, so that tests can count them.
"""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from bench_core import (
    Acquired,
    Bill,
    BudgetedLearner,
    Examples,
    Prediction,
    Prices,
    Queries,
    Splits,
    Task,
    hookimpl,
    param,
)

ALL_TASKS = frozenset(Task) - {Task.CHOICE}
COSTS = np.array([1.0, 1.0, 2.0, 5.0, 10.0, 20.0])


def log(line):
    if os.environ.get("TOY_LOG"):
        with Path(os.environ["TOY_LOG"]).open("a") as file:
            file.write(line + "\n")


def fits(home):
    """Lines written by the toys while they were fitted."""
    log = home / "fits.log"
    return log.read_text().splitlines() if log.exists() else []


def answer(point, scores, mask, splits=0):
    bill = Bill(Acquired.pack(mask), splits=splits, trees=0)
    return Prediction({"features": point}, scores, {"path": bill})


@dataclass
class PrefixModel:
    """Adds one weighted feature after another; NaN counts as 0."""

    order: np.ndarray
    weight: np.ndarray
    needs: np.ndarray  # bool (d, s): sensors by feature

    def predict_path(self, features):
        score = np.zeros(len(features))
        for k, j in enumerate(self.order, start=1):
            score = score + self.weight[j] * np.nan_to_num(features.X[:, j].astype(np.float64))
            mask = self.needs[self.order[:k]].any(axis=0, keepdims=True)
            yield answer(k, score.copy(), mask, splits=k)

    def state(self):
        return {"order": self.order, "weight": self.weight, "needs": self.needs}

    @classmethod
    def from_state(cls, state):
        return cls(**state)


def correlate(X, y, weights):
    X = np.nan_to_num(np.asarray(X, dtype=np.float64))
    y = y - np.average(y, weights=weights)
    X = X - np.average(X, axis=0, weights=weights)
    both = np.average(X * y[:, None], axis=0, weights=weights)
    return both / np.maximum(np.average(X**2, axis=0, weights=weights), 1e-9)


def needs(prices):
    mask = np.zeros((prices.features, prices.sensors), dtype=bool)
    for j in range(prices.features):
        mask[j, prices.sensors_of(j)] = True
    return mask


@dataclass(frozen=True)
class Prefix:
    """Buys features in the order of value for money."""

    name: ClassVar[str] = "toy-prefix"
    tasks: ClassVar[frozenset[Task]] = ALL_TASKS - {Task.MULTICLASS}

    tradeoff: float = param(0.1, "price of everything in units of the constant loss")
    seconds: float = param(0.0, "how long to pretend to work")

    def fit(self, train, valid, prices, context):
        log(f"{self.name} {self.tradeoff:g}")
        for step in range(4):
            time.sleep(self.seconds / 4)
            context.progress(step + 1, 4)
        weight = correlate(train.X, train.y, train.weights)
        share = prices.feature_price() / prices.everything
        value = np.abs(weight) / (1 + 40 * self.tradeoff * share)
        return PrefixModel(np.argsort(-value)[:100], weight, needs(prices))


@dataclass(frozen=True)
class Stacked:
    """Uses another learner and halves its weights."""

    name: ClassVar[str] = "toy-stacked"
    tasks: ClassVar[frozenset[Task]] = ALL_TASKS - {Task.MULTICLASS}

    base: BudgetedLearner = param(Prefix(0.0), "what it stands on")
    shrink: float = param(0.5, "factor on the weights")

    def needs(self):
        return (self.base,)

    def fit(self, train, valid, prices, context):
        log(f"{self.name} {self.shrink:g}")
        below = context.fitted(self.base)
        return PrefixModel(below.order, below.weight * self.shrink, needs(prices))


@dataclass(frozen=True)
class Broken:
    """Fails as its field says."""

    name: ClassVar[str] = "toy-broken"
    tasks: ClassVar[frozenset[Task]] = ALL_TASKS

    how: str = param("raise", "raise, hang, memory, children, crash, exit or state")
    megabytes: int = param(4000, "how much memory to ask for")

    def fit(self, train, valid, prices, context):
        log(f"{self.name} {self.how}")
        if self.how == "raise":
            raise RuntimeError("deliberately\nbroken")
        if self.how == "hang":
            time.sleep(3600)
        if self.how == "memory":
            held = np.ones(self.megabytes << 17)
            raise AssertionError(f"{held.sum()} should not fit")
        if self.how == "children":
            hold = f"held = bytearray({self.megabytes} << 20); input()"
            many = [subprocess.Popen([sys.executable, "-c", hold], stdin=-1) for _ in range(2)]
            many[0].wait()
        if self.how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.how == "exit":
            os._exit(3)
        return PrefixModel(np.array([object()]), np.zeros(1), np.zeros((1, 1)))


@dataclass(frozen=True)
class Busy(Prefix):
    """Keeps the interpreter's lock for a very long time."""

    name: ClassVar[str] = "toy-busy"

    def fit(self, train, valid, prices, context):
        sum(range(10**13))
        raise AssertionError("that took years")


@dataclass(frozen=True)
class OnBroken(Stacked):
    """Uses a learner that fails."""

    name: ClassVar[str] = "toy-on-broken"
    tasks: ClassVar[frozenset[Task]] = ALL_TASKS
    base: BudgetedLearner = param(Broken(), "what it stands on")


@dataclass(frozen=True)
class ToyRank:
    """Small ranking data with prices."""

    name: ClassVar[str] = "toy-rank"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "toy queries"
    folds: ClassVar[int] = 2
    stand_in_for: ClassVar[str] = "toy-licensed"

    queries: int = param(40, "queries in each split")

    def prepare(self, source, size, fold, seed):
        rng = np.random.default_rng([fold, seed, len(size)])
        parts = [self.part(rng) for _ in range(3)]
        return Splits(
            *parts,
            prices=Prices.additive(COSTS, split=0.25, unit="toys"),
            task=Task.RANKING,
            stand_in=True,
            notes=("made of random numbers",),
        )

    def part(self, rng):
        sizes = rng.integers(1, 12, self.queries)
        n = int(sizes.sum())
        X = rng.normal(size=(n, len(COSTS))).astype(np.float32)
        X[rng.random(X.shape) < 0.05] = np.nan
        signal = np.nan_to_num(X) @ np.array([0.2, 0.1, 0.3, 0.5, 0.8, 1.0])
        y = np.clip(np.round(signal + rng.normal(size=n) + 1), 0, 4)
        return Examples(X, y.astype(np.float64), Queries.from_sizes(sizes))


@dataclass(frozen=True)
class ToyLicensed(ToyRank):
    """The data set that ``toy-rank`` replaces."""

    name: ClassVar[str] = "toy-licensed"
    title: ClassVar[str] = "licensed queries"
    files: ClassVar[tuple[str, ...]] = ("licensed.txt",)
    stand_in_for: ClassVar[str] = ""

    def prepare(self, source, size, fold, seed):
        source.find("licensed.txt")
        rng = np.random.default_rng(7)
        parts = [self.part(rng) for _ in range(3)]
        return Splits(*parts, prices=Prices.additive(COSTS), task=Task.RANKING)


@dataclass(frozen=True)
class ToyBinary:
    """Independent rows with multiplicities."""

    name: ClassVar[str] = "toy-binary"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "toy rows"

    rows: int = param(300, "rows in each split")

    def prepare(self, source, size, fold, seed):
        rng = np.random.default_rng([9, seed])
        parts = [self.part(rng) for _ in range(3)]
        prices = Prices.additive(COSTS)
        return Splits(*parts, prices=prices, task=Task.BINARY, classes=2)

    def part(self, rng):
        X = rng.normal(size=(self.rows, len(COSTS))).astype(np.float32)
        y = (X @ np.ones(len(COSTS)) + rng.normal(size=self.rows) > 0).astype(np.float64)
        return Examples(X, y, multiplicity=rng.integers(1, 4, self.rows))


SUITE = """
title = "Toys"
paper = "none"
datasets = ["toy-licensed"]
metrics = ["ndcg@5", "precision@5"]
seeds = [0]
reference = "toy-prefix"
[learners.toy-prefix]
tradeoff = [0.0, 1.0]
[learners.toy-stacked]
shrink = [0.5, 0.25]
[profiles.quick.learners.toy-prefix]
seconds = 0.0
[[claims]]
id = "cheap"
source = "nobody"
says = "toys are cheap"
published = "1"
dataset = "toy-licensed"
measure = "none"
why = "nobody says so"
"""


@hookimpl
def bench_learners():
    return [Prefix, Stacked, Broken, OnBroken, Busy]


@hookimpl
def bench_datasets():
    return [ToyRank, ToyLicensed, ToyBinary]


@hookimpl
def bench_suites():
    folder = os.environ.get("TOY_SUITES")
    return [Path(folder)] if folder else []
