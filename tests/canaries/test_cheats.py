"""Mistakes of honest authors, and cheats: ``bench audit`` verifies none of them. More that concern
one proof are in ``core/execution/test_audit``.

This module is also the plugin of the learner ``cheat`` and of its data. An honest model here adds
one column after another; the others answer by all six and pay for fewer, or break their word
otherwise.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import bench_core
from bench_core import (
    STOP,
    Acquired,
    Bill,
    Examples,
    Prediction,
    Sequential,
    Splits,
    Task,
    param,
    price_list,
)
from bench_core.costs.by_row import ByRow, with_known_prices
from bench_core.costs.model import SensorPrices
from bench_core.execution.audit import REMEDY, replay
from bench_core.execution.caps import Caps
from bench_core.execution.fitting import fit_in_process
from bench_core.execution.predict import predict_split
from bench_core.metrics import default_metric

D, POINTS, ROWS = 6, 3, 240

Answer = Callable[["CheatModel", Any], Iterator[Prediction]]
CASES = {}
"""By name the verdict of a full audit, how the model answers for cells (n, 6), and the reason."""
READS = "replaced by NaN, its scores change"
DEPENDS = "its scores depend on rows outside the query, on their order or on chance"


def case(word, reason=""):
    def keep(answer):
        CASES[answer.__name__.replace("_", "-")] = word, answer, reason
        return answer

    return keep


def bill(k):
    """For the first k columns."""
    return Bill(Acquired.pack(np.arange(D)[None, :] < k))


def paid(model, X, k=D):
    """Scores by the first k columns."""
    return X[:, :k] @ model.weight[:k]


def path(scores):
    for k in range(1, POINTS + 1):
        yield Prediction({"columns": k}, scores(k), {"path": bill(k)})


@case("verified")
def honest(model, X):
    return path(lambda k: paid(model, X, k))


@case("failed", READS)
def reads_unpaid_cells(model, X):
    return path(lambda k: paid(model, X))


@case("failed", READS)
def reads_unpaid_cells_in_doubt(model, X):
    def scores(k):
        own = paid(model, X, k)
        return np.where(np.abs(own) < 0.3, paid(model, X), own)

    return path(scores)


@case("failed", READS)
def fills_unpaid_cells_in(model, X):
    """The cell's absence changes nothing where it is like one that was paid for."""
    return path(lambda k: paid(model, X, k) + np.where(np.isnan(X[:, 5]), X[:, 0], X[:, 5]))


@case("failed", READS)
def counts_missing_cells(model, X):
    return path(lambda k: paid(model, X, k) + 0.01 * np.isnan(X[:, 5]))


@case("failed", READS)
def multiplies_unpaid_cells_by_zero(model, X):
    return path(lambda k: X @ np.where(np.arange(D) < k, model.weight, 0.0))


@case("failed", "it buys other sensors")
def buys_by_unpaid_cells(model, X):
    """Buys more only where that will help."""
    wrong = np.sign(paid(model, X)) != np.sign(paid(model, X, 1))
    for k in range(1, POINTS + 1):
        mask = np.arange(D) < np.where(wrong, k, 1)[:, None]
        scores = np.where(wrong, paid(model, X, k), paid(model, X, 1))
        yield Prediction({"columns": k}, scores, {"path": Bill(Acquired.pack(mask))})


def told_by_purchases(X, yes, mask, ordered=False):
    order = np.where(mask, np.cumsum(mask, axis=1) - 1, -1) if ordered else None
    bills = {"path": Bill(Acquired.pack(mask), order=order)}
    yield Prediction({"k": 1}, np.where(yes, 1.0, -1.0), bills)


def belongs(X, columns):
    """Whether the cells of these columns are those of one row: fractions of their values agree."""
    part = np.mod(X[:, columns], 1.0)
    return (np.abs(part - part[:, :1]) < 1e-4).all(axis=1)


def complement(model, X):
    """Rows of "no" buy the first sensor, those of "yes" the other five; what is left of a row whose
    other cells were replaced is the answer."""
    yes = np.where(belongs(X, slice(0, D)), paid(model, X) > 0, belongs(X, slice(1, D)))
    return yes, (np.arange(D) > 0) == yes[:, None]


@case("declared", REMEDY)
def tells_by_complementary_sets(model, X):
    return told_by_purchases(X, *complement(model, X))


@case("failed", "it buys other sensors next")
def tells_by_complementary_sets_in_order(model, X):
    return told_by_purchases(X, *complement(model, X), ordered=True)


@case("declared", REMEDY)
def tells_by_halves(model, X):
    yes = np.where(belongs(X, slice(0, D)), paid(model, X) > 0, belongs(X, slice(3, D)))
    return told_by_purchases(X, yes, (np.arange(D) >= 3) == yes[:, None])


@case("failed", "replaced by other rows' values, it buys other sensors")
def buys_the_largest_of_all(model, X):
    """The three sensors that say most of the row, as all six show."""
    size = np.abs(np.nan_to_num(X) * model.weight)
    mask = size >= np.sort(size, axis=1)[:, -3:-2]
    yes = (np.nan_to_num(X) * model.weight * mask).sum(axis=1) > 0
    return told_by_purchases(X, yes, mask)


@case("failed", DEPENDS)
def depends_on_other_rows(model, X):
    return path(lambda k: paid(model, X, k) - paid(model, X, k).mean())


@case("failed", DEPENDS)
def depends_on_the_order_of_rows(model, X):
    """The file lists the rows of one label first."""
    return path(lambda k: np.arange(len(X), dtype=float))


@case("failed", DEPENDS)
def is_random(model, X):
    return path(lambda k: paid(model, X, k) + 0.01 * np.random.default_rng().random(len(X)))


@case("failed", READS)
def remembers_what_it_saw(model, X):
    """Keeps its answers by the first cell, which it pays for."""
    scores = zip(X[:, 0].tolist(), paid(model, X).tolist(), strict=True)
    kept = np.array([model.seen.setdefault(key, score) for key, score in scores])
    return path(lambda k: kept)


SEEN = {}
"""Cells that a module keeps: another instance finds them, another process does not."""


@case("failed", READS)
def remembers_in_its_module(model, X):
    paid_cells = map(tuple, X[:, :1].tolist())
    kept = [SEEN.setdefault((model.how, *key), row) for key, row in zip(paid_cells, X, strict=True)]
    return path(lambda k: paid(model, np.array(kept)))


class Keeping:
    """Policy that buys the first columns, and answers by the most that it has seen of a row. The
    first column is free, and tells the rows apart."""

    stops: ClassVar = {"columns": (1, 3, 6)}

    def __init__(self, weight, seen):
        self.weight, self.seen = weight, seen

    def act(self, cells, bought, left, stop):
        n = bought.sum(axis=1)
        return np.where(n < stop, n, STOP)

    def predict(self, cells, bought):
        for key, row in zip(cells[:, 0].tolist(), cells, strict=True):
            before = self.seen.get(key, row)
            self.seen[key] = np.where(np.isnan(row), before, row)
        return np.nan_to_num([self.seen[key] for key in cells[:, 0].tolist()]) @ self.weight

    def state(self):
        return {"weight": self.weight, "kind": "module" if self.seen is SEEN_BY_POLICY else "self"}

    @classmethod
    def from_state(cls, state):
        return cls(state["weight"], SEEN_BY_POLICY if state["kind"] == "module" else {})


class Forgetting(Keeping):
    """The honest policy."""

    def predict(self, cells, bought):
        return np.nan_to_num(cells) @ self.weight


SEEN_BY_POLICY = {}
POLICIES = {
    "policy": ("verified", lambda weight: Forgetting(weight, {})),
    "policy-that-keeps-answers": ("failed", lambda weight: Keeping(weight, {})),
    "policy-with-a-module": ("failed", lambda weight: Keeping(weight, SEEN_BY_POLICY)),
}


@case("failed", "it modifies its input cells; let it work on a copy")
def changes_what_it_was_given(model, X):
    X[:, 3:] = 0.0
    return path(lambda k: paid(model, X, k))


@case("verified")
def may_crash(model, X):
    if "CANARY_CRASHES" in os.environ:
        os.abort()
    return honest(model, X)


@case("failed", READS)
def bills_less_than_it_reads(model, X):
    for k in range(1, POINTS + 1):
        yield Prediction({"columns": k}, paid(model, X, k), {"path": bill(k - 1)})


@dataclass
class CheatModel:
    """Answers as its ``how`` says."""

    how: str
    weight: Any
    seen: dict[float, float] = field(default_factory=dict)

    def predict_path(self, features):
        return CASES[self.how][1](self, features.X)

    def state(self):
        return {"how": self.how, "weight": self.weight}

    @classmethod
    def from_state(cls, state):
        return cls(**state)


@dataclass(frozen=True)
class Cheat:
    """One of the cases."""

    name: ClassVar[str] = "cheat"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})
    how: str = param("honest", "one of CASES")

    def fit(self, train, valid, prices, context):
        weight = ((train.y - 0.5)[:, None] * train.X).mean(axis=0)
        if self.how in POLICIES:
            return Sequential(POLICIES[self.how][1](weight), prices)
        return CheatModel(self.how, weight)


class Canary:
    """Six sensors that all matter. The cells of a row have one fraction, which shows whether they
    belong together; rows are sorted by their label."""

    name, task, title = "canary", Task.BINARY, "rows for cheats"

    def prepare(self, source, size, fold, seed):
        rng = np.random.default_rng(5)
        parts = []
        for _ in range(3):
            X = rng.integers(-8, 8, (ROWS, D)) + rng.random((ROWS, 1))
            y = (X.sum(axis=1) > 0).astype(float)
            order = np.argsort(y, kind="stable")
            parts.append(Examples(X[order].astype(np.float32), y[order]))
        prices = price_list(np.ones(D))
        return Splits(*parts, prices=prices, task=self.task, classes=2)


@bench_core.hookimpl
def bench_learners():
    return [Cheat]


@bench_core.hookimpl
def bench_datasets():
    return [Canary]


@pytest.mark.parametrize("mode", ["sample", "full"])
@pytest.mark.parametrize("how", [name for name in CASES if name != "remembers-in-its-module"])
def test_the_sample_already_tells_what_the_full_audit_tells(how, mode):
    splits = Canary().prepare(None, "quick", 0, 0)
    model = Cheat(how).fit(splits.train, splits.valid, splits.prices, None)
    word, _, reason = CASES[how]
    again = CheatModel.from_state(model.state())
    found = replay(model, splits.test, splits.prices, 2, mode, fresh=lambda: again)
    assert found.word == ("sampled" if (mode, word) == ("sample", "verified") else word)
    assert "\n" not in found.reason
    assert (reason in found.reason, bool(reason)) == (True, bool(found.reason))


class Peeping(Forgetting):
    """Policy that buys by prices which are known only after the purchase: its caller has them."""

    def act(self, cells, bought, left, stop):
        caller = sys._getframe(1).f_locals
        prices = np.where(bought, np.inf, caller["rows"].price[caller["some"]])
        return np.where(bought.all(axis=1), STOP, prices.argmin(axis=1))


@pytest.mark.parametrize("mode", ["sample", "full"])
@pytest.mark.parametrize("policy", [Forgetting, Peeping])
def test_a_policy_that_reads_metered_prices_before_it_buys_fails(policy, mode):
    splits, rng = Canary().prepare(None, "quick", 0, 0), np.random.default_rng(0)
    columns = rng.gamma(0.5, 2.0, (len(splits.test), D))
    columns[:, 0] = 0.0  # rows see something before they buy
    test = replace(splits.test, price_columns=columns)
    prices = SensorPrices.additive(columns.mean(axis=0))
    costs = ByRow(prices, np.arange(D), np.arange(D), np.arange(D) < 2)  # two are quoted
    test = with_known_prices(test, costs)
    model = Sequential(policy(Cheat("policy").fit(
        splits.train, splits.valid, prices, None).policy.weight, {}), prices)  # fmt: skip
    path = predict_split(model, test, costs, 2, caps=Caps((2.0,), np.zeros(())))
    found = replay(model, test, costs, 2, mode, path=path)
    if policy is Forgetting:
        assert found.word == ("sampled" if mode == "sample" else "verified")
    else:
        assert found.word == "failed"
        assert "metered prices that it did not pay" in found.reason


@dataclass
class Curious:
    """A learner that looks for prices of rows where it is trained."""

    name = "curious"
    version = "1"
    tasks = frozenset(Task)

    def needs(self):
        return ()

    def fit(self, train, valid, prices, context):
        parts = (train, valid, *(getattr(context.splits, n) for n in ("train", "valid", "test")))
        SEEN["prices"] = [part.price_columns for part in parts]
        return Sequential(Forgetting(np.ones(D), {}), prices)


def test_metered_prices_are_hidden_from_fit():
    splits = Canary().prepare(None, "quick", 0, 0)
    parts = {
        name: replace(part, price_columns=np.ones((len(part), D)))
        for name in ("train", "valid", "test")
        if (part := getattr(splits, name))
    }
    fit_in_process(
        Curious(), replace(splits, **parts).complete(), default_metric(Task.BINARY), 0, 1
    )
    assert SEEN["prices"] == [None] * 5


@pytest.mark.parametrize("mode", ["sample", "full"])
@pytest.mark.parametrize("limits", [(), (1.0, 2.0)], ids=["points", "caps"])
@pytest.mark.parametrize("how", ["policy", "policy-that-keeps-answers"])
def test_a_policy_answers_alike_at_each_point_and_cap_alone(how, limits, mode):
    splits = Canary().prepare(None, "quick", 0, 0)
    prices = price_list(np.arange(D))
    model = Cheat(how).fit(splits.train, splits.valid, prices, None)
    caps = Caps(limits, np.zeros(()))
    # what fails are the caps, or points that are asked after one with more purchases
    stops = {"columns": (6,) if limits else (6, 3, 1)}
    model.policy.stops = stops
    path = predict_split(model, splits.test, prices, 2, caps=caps)

    def fresh():
        again = Sequential.from_state(model.state())
        again.policy.stops = stops
        return again

    found = replay(model, splits.test, prices, 2, mode, path=path, fresh=fresh)
    if how == "policy":
        assert found.word == ("sampled" if mode == "sample" else "verified")
    else:
        assert found.word == "failed"
        assert "its scores depend on its answers at other points or caps" in found.reason
        assert ("'cap'" in found.reason) == bool(limits)


VERDICTS = {how: word for how, (word, *_) in (CASES | POLICIES).items()}
PROCESSES = [
    *("honest", "reads-unpaid-cells", "tells-by-halves", "changes-what-it-was-given"),
    *("remembers-what-it-saw", "remembers-in-its-module", *POLICIES),
]
"""Cases of each verdict, and those that depend on who asks: instances and processes."""


@pytest.mark.parametrize(
    "names", [PROCESSES, pytest.param([*VERDICTS], marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_bench_audit_verifies_the_honest_one_alone(names, elsewhere):
    plugins = ["canaries.test_cheats"]
    expected = {how: VERDICTS[how] for how in names}
    learners = {"cheat": {"how": [*expected]}}
    bench_core.run(
        data="canary", plugins=plugins, learners=learners, store="b.db", workers=2, caps=[2]
    )
    result = bench_core.audit(store="b.db", plugins=plugins, workers=2)
    frame = bench_core.load_run(store="b.db").frame()
    frame["how"] = [json.loads(params)["how"] for params in frame["params"]]
    found = {str(how): {*rows["audit"]} for how, rows in frame.groupby("how")}
    assert found == {how: {word} for how, word in expected.items()}
    declared = frame[frame["audit"] == "declared"]
    assert declared["error"].str.endswith(REMEDY).all()
    assert len(result.audit_failures) == [*expected.values()].count("failed")


def test_an_audit_without_an_answer_verifies_nothing(elsewhere, monkeypatch):
    plugins = ["canaries.test_cheats"]
    learners = {"cheat": {"how": ["may-crash"]}}
    bench_core.run(data="canary", plugins=plugins, learners=learners, store="b.db")
    monkeypatch.setenv("CANARY_CRASHES", "1")
    assert bench_core.audit(store="b.db", plugins=plugins).counts == {"crashed": 1}
    frame = bench_core.load_run(store="b.db").frame()
    assert {*frame["audit"]} == {"failed"}
    assert frame["error"].str.startswith("the audit did not finish: crashed").all()
