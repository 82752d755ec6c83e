"""Caps against a plain rule that follows one row at a time."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers import models
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import Acquired, Bill, Examples, Prediction, Prices, Queries, Splits, Task
from bench_core.costs.by_row import ByRow
from bench_core.costs.shipped import PerQueryPrices
from bench_core.execution.caps import Caps
from bench_core.execution.contract import ContractError
from bench_core.execution.predict import predict_split

SENSORS, CONSTANT = 4, -1.0
PRICE = [1.0, 2.0, 4.0, 8.0]
SPLIT, TREE = 0.25, 0.5
BASE = Prices.additive(np.array(PRICE), split=SPLIT, tree=TREE)


@dataclass
class Drawn:
    """Answers at point p as ``points[p]`` says: bits (n, s) or (1, s), splits and trees."""

    points: list[tuple[Any, Any, Any]]
    independent_rows: bool = True

    def predict_path(self, features):
        row = features.X[:, 0].astype(int)
        for p, (mask, splits, trees) in enumerate(self.points):
            own = mask if len(mask) == 1 else mask[row]
            counts = (c if np.ndim(c) == 0 else c[row] for c in (splits, trees))
            bill = Bill(Acquired.pack(own), *counts)
            yield Prediction({"step": p}, 10.0 * p + row, {"path": bill})


@st.composite
def drawn(draw):
    n, points = draw(st.integers(2, 9)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    nested, found = draw(st.booleans()), []
    mask, splits = np.zeros((n, SENSORS), dtype=bool), np.zeros(n)
    for _ in range(points):
        new = rng.random((n, SENSORS)) < 0.3
        mask = mask | new if nested else new
        splits = splits + rng.integers(0, 3, n) if nested else rng.integers(0, 4, n)
        if rng.random() < 0.3:
            found.append((mask[:1], float(splits[0]), 1.0))
        else:
            found.append((mask.copy(), splits.astype(float), float(rng.integers(0, 3))))
    sizes = np.array([1, n - 1]) if draw(st.booleans()) else None
    queries = None if sizes is None else Queries.from_sizes(sizes)
    X = np.tile(np.arange(n, dtype=np.float32)[:, None], (1, SENSORS))
    copies = rng.integers(1, 4, n) if draw(st.booleans()) else None
    caps = draw(st.lists(st.sampled_from([0.25, 1, 3, 5.5, 8, 11, 40]), min_size=1, unique=True))
    alone = draw(st.booleans())
    return Drawn(found, alone), Examples(X, np.zeros(n), queries, copies), sorted(caps)


@dataclass(frozen=True)
class Tariff:
    """Prices (n, s) of rows; those of some sensors are known only after the purchase."""

    price: Any
    metered: tuple[int, ...] = ()

    def spent(self, i, sensors, splits, trees):
        return sum(self.price[i][s] for s in sensors) + SPLIT * splits + TREE * trees

    def allowed(self, i, before, after, cap):
        """A point is reached within the cap, or if only its last metered purchase exceeds it: of
        several the cheapest, as the dearest comes first. Evaluations may come last."""
        new = after.sensors - before.sensors
        own = [self.price[i][s] for s in new if s in self.metered]
        ran = SPLIT * (after.splits - before.splits) + TREE * (after.trees - before.trees)
        if after.cost <= cap or not (new or ran):
            return True
        if not own or before.cost > cap:
            return False
        if len(new) == 1 and not ran:
            return before.cost < cap
        return after.cost - min(own) < cap

    def stopped(self, i, new, room, ran):
        """Most that a row spends before the first sensor that does not fit, and its excess."""
        own = [self.price[i][s] for s in new if s in self.metered and room > 0]
        fit = [p for s in new if (p := self.price[i][s]) <= room and s not in self.metered]
        excess = max(own, default=0.0)
        return min(room, sum(fit) + sum(own) - excess + ran) + excess


@dataclass
class Row:
    """What one row has bought, and whether it goes on."""

    sensors: frozenset[int] = frozenset()
    splits: float = 0.0
    trees: float = 0.0
    place: int = -1
    going: bool = True
    cost: float = 0.0

    def then(self, tariff, i, sensors, splits, trees, p):
        contained = self.sensors <= sensors and splits >= self.splits and trees >= self.trees
        if not contained:
            splits, trees = splits + self.splits, trees + self.trees
        union = frozenset(self.sensors | sensors)
        return Row(union, splits, trees, p, True, tariff.spent(i, union, splits, trees))


def followed(model, examples, cap, tariff):
    """Row by row, in plain words."""
    n = len(examples)
    rows = [Row() for _ in range(n)]
    bounds = np.arange(n + 1) if examples.queries is None else examples.queries.boundaries
    if model.independent_rows:
        bounds = np.arange(n + 1)
    for p, (mask, splits, trees) in enumerate(model.points):
        alike = len(mask) == 1
        known = alike and not tariff.metered
        for start, stop in pairwise(bounds):
            after = {}
            for i in (i for i in range(start, stop) if rows[i].going):
                own = {s for s in range(SENSORS) if mask[0 if alike else i][s]}
                now = splits if np.ndim(splits) == 0 else splits[i]
                after[i] = rows[i].then(tariff, i, own, float(now), float(trees), p)
            if all(tariff.allowed(i, rows[i], row, cap) for i, row in after.items()):
                for i, row in after.items():
                    rows[i] = row
                continue
            for i, row in after.items():
                had, room = rows[i], max(0.0, cap - rows[i].cost)
                ran = SPLIT * (row.splits - had.splits) + TREE * (row.trees - had.trees)
                new = row.sensors - had.sensors
                more = 0.0 if known else tariff.stopped(i, new, room, ran)
                rows[i] = replace(had, going=False, cost=had.cost + more)
    return rows


def prices_by_row(examples, seed, quoted):
    """Three sensors with prices by row: the examples, their costs, and the plain rule."""
    rng, n, own = np.random.default_rng(seed), len(examples), [0, 2, 3]
    columns = rng.choice([0.0, 0.5, 2, 3, 7.25], size=(n, 4))
    costs = ByRow(BASE, np.array(own), np.array([3, 0, 1]), np.array(quoted))
    price = np.tile(PRICE, (n, 1))
    price[:, own] = columns[:, [3, 0, 1]]
    metered = tuple(s for s, known in zip(own, quoted, strict=True) if not known)
    return replace(examples, price_columns=columns), costs, Tariff(price.tolist(), metered)


@given(
    drawn(),
    st.integers(0, 2**20),
    st.none() | st.lists(st.booleans(), min_size=3, max_size=3),
)
@settings(max_examples=240, deadline=None)
def test_caps_are_as_followed_row_by_row(case, seed, quoted):
    model, examples, limits = case
    costs, tariff, n = BASE, Tariff([PRICE] * len(examples)), len(examples)
    if quoted is not None:
        examples, costs, tariff = prices_by_row(examples, seed, quoted)
    caps = Caps(tuple(limits), np.asarray(CONSTANT))
    path = predict_split(model, examples, costs, 0, caps=caps)
    for p, (mask, splits, trees) in enumerate(model.points):
        masks, counts = np.broadcast_to(mask, (n, SENSORS)), np.broadcast_to(splits, (n,))
        bills = [tariff.spent(i, np.flatnonzero(masks[i]), counts[i], trees) for i in range(n)]
        assert path.cost[p] == pytest.approx(bills, abs=1e-12)
    for k, limit in enumerate(limits, start=len(path.points)):
        rows = followed(model, examples, limit, tariff)
        scores = [CONSTANT if r.place < 0 else 10.0 * r.place + i for i, r in enumerate(rows)]
        assert path.scores[k].tolist() == scores
        assert path.cost[k] == pytest.approx([r.cost for r in rows], abs=1e-12)
        assert tariff.metered or (path.cost[k] <= limit).all()
        bought = [[s in r.sensors for s in range(SENSORS)] for r in rows]
        assert path.bought[k] == pytest.approx(np.average(bought, 0, examples.weights))
        both = path.feature_cost[k] + path.evaluation_cost[k]
        assert both == pytest.approx(np.average(path.cost[k], weights=examples.weights))


def test_a_sum_that_is_within_a_cap_but_for_rounding_is_within_it():
    mask = np.array([[True, True], [True, True]])
    examples = Examples(np.zeros((2, 2), np.float32), np.zeros(2))
    model, costs = Drawn([(mask, 0.0, 0.0)]), Prices.additive(np.array([0.1, 0.2]))
    caps = Caps((0.3,), np.asarray(CONSTANT))
    found = predict_split(model, examples, costs, 0, caps=caps)
    assert found.cost[1].tolist() == [0.3, 0.3]
    assert found.scores[1].tolist() == [0.0, 0.0]


def test_no_row_of_a_query_that_shares_its_sensors_exceeds_the_cap():
    """One row buys what all pay for: if it went on alone, the others would pay too much."""
    costs = PerQueryPrices.of(
        Prices.additive(np.array(PRICE)), np.array([False, False, True, True])
    )
    rng = np.random.default_rng(0)
    n, masks = 300, []
    for chance in (0.1, 0.3, 0.6, 1.0):
        masks.append((rng.random((n, SENSORS)) < chance) | (masks[-1] if masks else False))
    X = np.tile(np.arange(n, dtype=np.float32)[:, None], (1, SENSORS))
    examples = Examples(X, np.zeros(n), Queries.from_sizes(np.full(n // 3, 3)))
    model = Drawn([(mask, 0.0, 0.0) for mask in masks])
    limits = (1.0, 2.0, 4.0, 6.0)
    found = predict_split(model, examples, costs, 0, caps=Caps(limits, np.asarray(-1.0)))
    for k, limit in enumerate(limits, start=len(masks)):
        assert found.cost[k].max() <= limit
        scores = found.scores[k]
        place = np.where(scores < 0, -1, (scores - np.arange(n)) / 10).reshape(-1, 3)
        assert (place == place[:, :1]).all()  # of a query all stop at the same point
    assert (found.cost.max(axis=1) > limits[-1]).any()


@pytest.mark.parametrize(
    ("task", "classes", "constant"),
    [
        (Task.REGRESSION, 0, 1.25),
        (Task.RANKING, 0, 1.25),
        (Task.BINARY, 2, np.log(0.5 / 0.5)),
        (Task.MULTICLASS, 4, np.log([0.25, 0.5, 0.5 / 4, 0.25])),
    ],
)
def test_before_the_first_point_the_best_constant_answers(task, classes, constant):
    labels = [0.0, 1.0, 0.0, 1.0] if task == Task.BINARY else [0.0, 1.0, 1.0, 3.0]
    train = Examples(np.zeros((4, 1), np.float32), np.array(labels))
    splits = Splits(train, train, train, Prices.additive(np.ones(1)), task, classes)
    assert splits.constant == pytest.approx(constant)


@pytest.mark.parametrize("name", ["cap", "constant"])
def test_a_models_point_may_not_be_named_as_the_benchmarks_own_are(name):
    class Named:
        def predict_path(self, features):
            bill = Bill(Acquired.nothing(models.D))
            yield Prediction({name: 1}, np.zeros(len(features)), {"path": bill})

    examples = Examples(np.zeros((4, models.D), np.float32), np.zeros(4))
    with pytest.raises(ContractError, match="is reserved; choose another"):
        predict_split(Named(), examples, Prices.additive(np.ones(models.D)), 0)
