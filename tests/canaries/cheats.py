"""Learners that cheat: what each does, and the word that its row must have.

``CHEATS`` holds by name how the model answers and the expected word:

    refused   the trial fails: the contract stops it at once
    sample    the sampled audit refuses its row
    full      only the full audit does
    harmless  the row stands, and its numbers are those of an honest learner
    beyond    the row stands undeserved, and nothing can tell

An honest model here adds one column after another; a cheat answers by all six and pays for fewer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import bench_core
from bench_core import (
    Acquired,
    Bill,
    Examples,
    Features,
    Prediction,
    Prices,
    Splits,
    Task,
    param,
    price_list,
)

D, POINTS = 6, 3


def bill(k: int, **more: Any) -> Bill:
    """For the first k columns."""
    mask = np.zeros((1, D), dtype=bool)
    mask[0, :k] = True
    return Bill(Acquired.pack(mask), **more)


def paid(model: CheatModel, X: Any, k: int) -> Any:
    """By the first k columns."""
    scores = np.zeros(len(X))
    for j in range(k):
        scores += model.weight[j] * np.nan_to_num(X[:, j].astype(float))
    return scores


def everything(model: CheatModel, X: Any) -> Any:
    return paid(model, X, D)


def path(scores: Callable[[int], Any], **more: Any) -> Iterator[Prediction]:
    for k in range(1, POINTS + 1):
        yield Prediction({"columns": k}, scores(k), {"path": bill(k, **more)})


Answer = Callable[["CheatModel", Any], Iterator[Prediction]]
CHEATS: dict[str, tuple[str, Answer]] = {}


def cheat(word: str) -> Callable[[Answer], Answer]:
    def keep(answer: Answer) -> Answer:
        CHEATS[answer.__name__.replace("_", "-")] = word, answer
        return answer

    return keep


@cheat("harmless")
def honest(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k))


# -- it reads what it did not pay for ------------------------------------------------------------


@cheat("sample")
def under_declares(model: CheatModel, X: Any) -> Any:
    return path(lambda k: everything(model, X))


@cheat("sample")
def late_peek(model: CheatModel, X: Any) -> Any:
    return path(lambda k: everything(model, X) if k == POINTS else paid(model, X, k))


@cheat("sample")
def doubt_peek(model: CheatModel, X: Any) -> Any:
    def scores(k: int) -> Any:
        own = paid(model, X, k)
        return np.where(np.abs(own) < 0.3, everything(model, X), own)

    return path(scores)


@cheat("sample")
def keyed_peek(model: CheatModel, X: Any) -> Any:
    """Only where a value that it paid for says so."""
    some = (X[:, 0] > 0.5) & (X[:, 0] < 1)
    return path(lambda k: np.where(some, everything(model, X), paid(model, X, k)))


@cheat("sample")
def point_peek(model: CheatModel, X: Any) -> Any:
    """One of a hundred points, and there only where it is in doubt."""
    for p in range(100):
        scores = paid(model, X, 2)
        if p == 37:
            scores = np.where(np.abs(scores) < 0.3, everything(model, X), scores)
        yield Prediction({"point": p}, scores, {"path": bill(2)})


@cheat("sample")
def one_of_many(model: CheatModel, X: Any) -> Any:
    """Thirty points that all buy something else; at one it looks at the rest, and there only where
    that turns a narrow answer: in one row of thirteen."""
    three, four = (itertools.combinations(range(D), k) for k in (3, 4))
    for p, columns in enumerate([*three, *itertools.islice(four, 10)]):
        mask = np.zeros((1, D), dtype=bool)
        mask[0, columns] = True
        scores = np.zeros(len(X))
        for j in columns:
            scores += model.weight[j] * np.nan_to_num(X[:, j].astype(float))
        if p == 17:
            narrow = np.abs(scores) < 0.5 * float(np.abs(model.weight).max())
            scores = np.where(narrow & (scores * everything(model, X) < 0), -scores, scores)
        yield Prediction({"set": p}, scores, {"path": Bill(Acquired.pack(mask))})


@cheat("sample")
def if_intact(model: CheatModel, X: Any) -> Any:
    """Peeks where a row's cells belong together, as those of replaced ones do not."""
    whole = np.logical_and.reduce([intact(X, j) | np.isnan(X[:, j]) for j in range(D)])
    whole &= ~np.isnan(X[:, 1:5]).any(axis=1)
    return path(lambda k: np.where(whole, everything(model, X), paid(model, X, k)))


@cheat("sample")
def missing_peek(model: CheatModel, X: Any) -> Any:
    """Looks whether a cell is missing; other rows' values never are."""
    return path(lambda k: paid(model, X, k) + 0.01 * np.isnan(X[:, 5]))


@cheat("sample")
def value_peek(model: CheatModel, X: Any) -> Any:
    """Fills a missing cell in, as far as it is known from what was paid for."""
    return path(lambda k: paid(model, X, k) + 1e-6 * np.where(np.isnan(X[:, 5]), X[:, 0], X[:, 5]))


@cheat("sample")
def tiny_peek(model: CheatModel, X: Any) -> Any:
    """Far below any tolerance, but it breaks all ties."""
    return path(lambda k: np.sign(paid(model, X, k)) + 1e-13 * everything(model, X))


@cheat("sample")
def peek_to_buy(model: CheatModel, X: Any) -> Any:
    """Buys only where it will help."""
    wrong = np.sign(everything(model, X)) != np.sign(paid(model, X, 1))
    for k in range(1, POINTS + 1):
        mask = np.zeros((len(X), D), dtype=bool)
        mask[:, 0] = True
        mask[wrong, :k] = True
        scores = np.where(wrong, paid(model, X, k), paid(model, X, 1))
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(mask))})


def intact(X: Any, j: int) -> Any:
    """Whether a sensor's cells are those of one row."""
    return (X[:, j + D] == 2 * X[:, j]) & (X[:, j + 2 * D] == 3 * X[:, j])


@cheat("sample")
def tells_by_buying(model: CheatModel, X: Any) -> Any:
    """Buys one of two sensors by what all six say; where cells are hidden, the one that is left as
    it was is the one that it had bought."""
    one, other = intact(X, 1), intact(X, 2)
    positive = np.where(one & other, everything(model, X) > 0, one)
    mask = np.zeros((len(X), D), dtype=bool)
    mask[:, 0], mask[:, 1], mask[:, 2] = True, positive, ~positive
    for k in range(1, POINTS + 1):
        scores = np.where(positive, 1.0, -1.0) * k
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(mask))})


# -- it keys on the block ------------------------------------------------------------------------


@cheat("sample")
def row_number(model: CheatModel, X: Any) -> Any:
    """The rows of the test split are sorted by their label."""
    return path(lambda k: np.arange(len(X)) - len(X) / 2)


@cheat("sample")
def huge_row_number(model: CheatModel, X: Any) -> Any:
    """Scores of some rows that are beyond measure, that those of others be within rounding."""
    place = np.arange(len(X)) - len(X) / 2 + 0.5
    return path(lambda k: np.where(X[:, 0] > 1.8, 1e12, place))


@cheat("sample")
def batch_normalises(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k) - paid(model, X, k).mean())


@cheat("sample")
def keys_on_size(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k) + (len(X) % 10))


@cheat("sample")
def whole_blocks(model: CheatModel, X: Any) -> Any:
    """Peeks where the block is as large as a split, which no sample is."""
    return path(lambda k: everything(model, X) if len(X) == 240 else paid(model, X, k))


@cheat("sample")
def random_scores(model: CheatModel, X: Any) -> Any:
    noise = np.random.default_rng().normal(size=len(X))
    return path(lambda k: paid(model, X, k) + noise)


@cheat("sample")
def sniffs_audits(model: CheatModel, X: Any) -> Any:
    """Honest as soon as a block looks replaced."""
    if np.isnan(X[:, 5]).mean() > 0.05:
        return honest(model, X)
    return path(lambda k: everything(model, X))


@cheat("sample")
def twin_peek(model: CheatModel, X: Any) -> Any:
    """Looks for another copy of each row in its block."""
    last = {key: i for i, key in enumerate(X[:, 0].tolist())}
    twins = X[[last[key] for key in X[:, 0].tolist()]]
    return path(lambda k: everything(model, twins))


@cheat("harmless")
def base_of_block(model: CheatModel, X: Any) -> Any:
    """The array behind its cells may hold more than they."""
    behind: Any = X
    while isinstance(behind, np.ndarray) and behind.base is not None:
        behind = behind.base
    more = getattr(behind, "nbytes", len(behind)) > X.nbytes
    return under_declares(model, X) if more else honest(model, X)


# -- its bill lies -------------------------------------------------------------------------------


class CheapBill(Bill):
    __slots__ = ()

    def feature_cost(self, *given: Any, **more: Any) -> Any:
        return super().feature_cost(*given, **more) - 50

    def evaluation_cost(self, *given: Any) -> Any:
        return super().evaluation_cost(*given) - 50


class CheapPurchase(Acquired):
    __slots__ = ()

    def cost(self, price: Any) -> Any:
        return np.zeros(len(self.bits))


class Duck:
    """Shows other bits each time."""

    sensors = D

    def __init__(self, k: int) -> None:
        self.k, self.asked = k, 0

    @property
    def bits(self) -> Any:
        self.asked += 1
        return bill(self.k if self.asked == 1 else 0).acquired.bits

    def cost(self, price: Any) -> Any:
        return np.zeros(1)

    def rows(self, n: int) -> Any:
        return Acquired.nothing(D).rows(n)


def with_bills(model: CheatModel, X: Any, change: Callable[[Bill, int], Any]) -> Any:
    for prediction in honest(model, X):
        k = int(prediction.point["columns"])
        yield Prediction(
            prediction.point, prediction.scores, {"path": change(prediction.bills["path"], k)}
        )


@cheat("harmless")
def negative_bill(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: CheapBill(own.acquired))


@cheat("harmless")
def cheap_purchase(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(CheapPurchase(own.acquired.bits, D)))


@cheat("harmless")
def duck_purchase(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(Duck(k)))  # type: ignore[arg-type]


@cheat("refused")
def negative_counts(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(own.acquired, splits=-5))


@cheat("refused")
def nan_counts(model: CheatModel, X: Any) -> Any:
    return with_bills(model, X, lambda own, k: Bill(own.acquired, trees=float("nan")))


@cheat("refused")
def bits_beyond(model: CheatModel, X: Any) -> Any:
    beyond = Acquired(np.full((1, 1), 1 << 63, dtype=np.uint64), D)
    return with_bills(model, X, lambda own, k: Bill(beyond))


@cheat("harmless")
def negative_zero(model: CheatModel, X: Any) -> Any:
    """Counts below zero by sign alone, or too small to be told from it."""
    return with_bills(
        model, X, lambda own, k: Bill(own.acquired, splits=-0.0, trees=np.full(len(X), 5e-324))
    )


@cheat("refused")
def swapped_bits(model: CheatModel, X: Any) -> Any:
    """The same bits as bytes in the other order, which are other numbers to who reads them raw."""
    swapped = bill(3).acquired.bits.astype(">u8")
    return with_bills(model, X, lambda own, k: Bill(Acquired(swapped, D)))


@cheat("harmless")
def late_bits(model: CheatModel, X: Any) -> Any:
    """Takes its purchases and scores back once they are handed over."""
    bits, scores = np.zeros((1, 1), dtype=np.uint64), np.zeros(len(X))
    for k in range(1, POINTS + 1):
        bits[:], scores[:] = bill(k).acquired.bits, paid(model, X, k)
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired(bits, D))})
        bits[:], scores[:] = 0, 1e6


# -- its scores are no numbers -------------------------------------------------------------------


@cheat("refused")
def complex_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k) + 1j * everything(model, X))


@cheat("refused")
def masked_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: np.ma.masked_less(everything(model, X), 0))


@cheat("refused")
def text_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k).astype(str))


@cheat("refused")
def object_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: paid(model, X, k).astype(object))


class Lazy(np.ndarray):  # type: ignore[type-arg]
    """Says that it is equal to whatever it is compared with."""

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **more: Any) -> Any:
        plain = [np.asarray(g) if isinstance(g, Lazy) else g for g in given]
        found = getattr(function, method)(*plain)
        return np.ones_like(found) if np.asarray(found).dtype.kind == "b" else found

    def tobytes(self, *given: Any) -> bytes:
        return b""

    def __array_function__(self, *given: Any) -> Any:
        return True


@cheat("sample")
def lazy_scores(model: CheatModel, X: Any) -> Any:
    return path(lambda k: everything(model, X).view(Lazy))


@cheat("harmless")
def odd_arrays(model: CheatModel, X: Any) -> Any:
    """Honest scores in other bytes and strides, and wider than any that are kept."""

    def scores(k: int) -> Any:
        wide = np.repeat(paid(model, X, k), 3).astype(np.longdouble)
        return wide[::3] if k == 1 else paid(model, X, k)[::-1].astype(">f8")[::-1]

    return path(scores)


@cheat("refused")
def same_points(model: CheatModel, X: Any) -> Any:
    """The first is cheap, the second good, and both go by one name."""
    for k in (1, POINTS):
        yield Prediction({"columns": -0.0 if k == 1 else 0}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def turned_points(model: CheatModel, X: Any) -> Any:
    """What is the cheapest point on one split is the dearest on the other."""
    known = {*model.known[:, 0].tolist()}
    order = [1, 2, 3] if float(X[0, 0]) in known else [3, 2, 1]
    for k in order:
        yield Prediction({"columns": k}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def renamed_points(model: CheatModel, X: Any) -> Any:
    """Points of one name that on the other split buy something else."""
    known = {*model.known[:, 0].tolist()}
    for k in range(1, POINTS + 1):
        name = float(k) if float(X[0, 0]) in known else k
        yield Prediction({"columns": name}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def nan_point(model: CheatModel, X: Any) -> Any:
    yield Prediction({"columns": float("nan")}, paid(model, X, 1), {"path": bill(1)})


@cheat("refused")
def escaping_point(model: CheatModel, X: Any) -> Any:
    """Names of points reach boards, pages, tables and terminals."""
    for k in range(1, POINTS + 1):
        point = {"\x1b[2J=1+1<b>": k}
        yield Prediction(point, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def huge_point(model: CheatModel, X: Any) -> Any:
    """A whole number that is no float: reports of all would end there."""
    for k in range(1, POINTS + 1):
        yield Prediction({"columns": k * 10**400}, paid(model, X, k), {"path": bill(k)})


@cheat("refused")
def endless_path(model: CheatModel, X: Any) -> Any:
    k = 0
    while True:
        yield Prediction({"columns": (k := k + 1)}, paid(model, X, 1), {"path": bill(1)})


# -- it cheats while it is fitted ----------------------------------------------------------------


def fit_on_validation(train: Examples, valid: Examples, context: Any) -> Any:
    return np.array([valid.X[:, 0], valid.y]).T


FIT = dict.fromkeys(("turned-points", "renamed-points", "train-on-valid"), fit_on_validation)


def known_labels(model: CheatModel, X: Any) -> Any:
    known = dict(model.known.tolist())
    return np.array([known.get(x, np.nan) for x in X[:, 0].tolist()])


def by_known(model: CheatModel, X: Any) -> Any:
    """By labels that were learned for values of the first column."""
    own = known_labels(model, X)
    bias = np.where(np.isnan(own), 0.0, np.where(own > 0.5, 50.0, -50.0))
    return path(lambda k: paid(model, X, k) + bias)


CHEATS["train-on-valid"] = "beyond", by_known

MARKS = {"formula-mark": ("=1+1",), "verdict-mark": ("verified by many",)}
for _name in MARKS:
    CHEATS[_name] = "refused", honest


@dataclass
class CheatModel:
    """Answers as its ``how`` says."""

    how: str
    weight: Any
    known: Any

    @property
    def marks(self) -> tuple[str, ...]:
        return MARKS.get(self.how, ())

    def predict_path(self, features: Features) -> Any:
        return CHEATS[self.how][1](self, features.X)

    def state(self) -> dict[str, Any]:
        return {"how": self.how, "weight": self.weight, "known": self.known}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> CheatModel:
        return cls(**state)


@dataclass(frozen=True)
class Cheat:
    """One of the cheats."""

    name: ClassVar[str] = "cheat"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})
    how: str = param("honest", "one of CHEATS")

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: Any) -> CheatModel:
        known = np.zeros((0, 2))
        if self.how in FIT:
            known = FIT[self.how](train, valid, context)
        X = np.nan_to_num(train.X.astype(float))
        weight = ((train.y - 0.5)[:, None] * X).mean(axis=0)
        return CheatModel(self.how, weight, known)


class Canary:
    """Six sensors that all matter; the rows of each split are sorted by their label. The columns of
    a sensor, its value and that doubled and trebled, show whether they belong together."""

    name, task, title = "canary", Task.BINARY, "rows for cheats"

    def prepare(self, source: Any, size: str, fold: int, seed: int) -> Splits:
        rng = np.random.default_rng(5)
        parts = []
        for _ in range(3):
            X = rng.normal(size=(240, D)).astype(np.float32)
            X[::40, 5] = np.nan
            y = (np.nan_to_num(X).sum(axis=1) + 0.5 * rng.normal(size=240) > 0).astype(float)
            order = np.argsort(y, kind="stable")
            features = np.hstack([X, 2 * X, 3 * X])[order]
            parts.append(Examples(features, y[order]))
        sensors = [[j, j + D, j + 2 * D] for j in range(D)]
        prices = price_list(np.ones(3 * D), shared=sensors)
        return Splits(*parts, prices=prices, task=self.task, classes=2)


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    return [Cheat]


@bench_core.hookimpl
def bench_datasets() -> list[type[Any]]:
    return [Canary]
