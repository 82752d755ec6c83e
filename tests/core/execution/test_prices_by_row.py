"""Prices by row: what policies see and pay, against a plain walk of one row at a time."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import (
    STOP,
    Acquired,
    Bill,
    Examples,
    Prediction,
    Queries,
    SensorPrices,
    Sequential,
    price_list,
)
from bench_core.costs.by_row import ByRow, on_rows, with_known_prices
from bench_core.costs.shipped import PerQueryPrices
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.predict import predict_split

UNITS = 2.0 ** np.arange(-3, 4)  # sums of these are exact


def drawn_prices(rng: np.random.Generator, n: int) -> tuple[ByRow, Any]:
    """Six features of five sensors, some shared or required, and columns of prices (n, 3)."""
    base = price_list(rng.choice(UNITS, 6).repeat([1] * 6)[[0, 1, 1, 3, 4, 5]], shared=[[1, 2]])
    needs = [set(base.sensors_of(j).tolist()) for j in range(6)]
    needs[4] |= needs[3]  # requires it
    base = replace(
        base,
        start=np.cumsum([0, *map(len, needs)]).astype(np.int32),
        needed=np.array([s for need in needs for s in sorted(need)], dtype=np.int32),
    )
    own = np.sort(rng.choice(base.sensors, 3, replace=False))
    costs = ByRow(base, own, rng.permutation(3), rng.random(3) < 0.5)
    return costs, rng.choice([0.0, *UNITS], size=(n, 3))


@dataclass
class Wanting:
    """Buys purchases in the order of a row's first cell, at least until its sum reaches a stop."""

    stops: Any
    reads_prices: bool = False

    def act(self, cells, bought, left, stop, prices=None):
        told = np.zeros(len(cells)) if prices is None else prices.sum(axis=1)
        turn = np.nan_to_num(cells[:, 0], nan=0.0) + told
        first = [
            next((int(k) for k in np.roll(np.arange(len(b)), int(t)) if not b[k]), STOP)
            for b, t in zip(bought, turn, strict=True)
        ]
        return np.where(bought.sum(axis=1) < stop, first, STOP)

    def predict(self, cells, bought):
        return np.nansum(cells, axis=1).astype(float)


def walked(model: Sequential, costs: ByRow, columns: Any, x: Any, stop: float, cap: float) -> Any:
    """Sensors that a row buys, and their price, in plain words."""
    sets = [set(np.flatnonzero(row).tolist()) for row in model._purchases.sets]
    price = costs.base.sensor.tolist()
    metered = set()
    known = list(price)
    for s, column, quoted in zip(costs.priced, costs.column, costs.quoted, strict=True):
        price[s] = float(columns[column])
        if quoted:
            known[s] = price[s]
        else:
            metered.add(int(s))
    bought: set[int] = set()
    for need in sets:
        if sum(costs.base.sensor[list(need)]) == 0:
            bought |= need
    left = cap * (1 + 1e-9) - sum(price[s] for s in bought)
    while True:
        done = np.array([need <= bought for need in sets])
        if done.all():
            break
        shows = np.array([{*costs.sensors_of(j).tolist()} <= bought for j in range(len(x))])
        cells = np.where(shows, x, np.nan)[None]
        told = {"prices": np.array([known])} if model.policy.reads_prices else {}
        (action,) = model.policy.act(cells, done[None], np.array([max(left, 0)]), stop, **told)
        if action == STOP:
            break
        new = sets[action] - bought
        total, quoted = sum(price[s] for s in new), sum(price[s] for s in new - metered)
        some = left - 2e-9 * cap if cap < np.inf else left  # left is a little more than money
        if quoted >= some if new & metered else total > left:
            break
        bought |= new
        left -= total
    return bought, sum(price[s] for s in bought)


@given(st.integers(0, 2**20), st.booleans(), st.booleans())
@settings(max_examples=80, deadline=None)
def test_policies_pay_the_prices_of_their_rows(seed, reads_prices, copied):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    costs, columns = drawn_prices(rng, n)
    X = rng.integers(0, 9, size=(n, 6)).astype(np.float32)
    copies = rng.integers(1, 4, n) if copied else None
    examples = Examples(X, np.zeros(n), multiplicity=copies, price_columns=columns)
    examples = with_known_prices(examples, costs)
    model = Sequential(Wanting({"most": (0.0, 2.0, 9.0)}, reads_prices), costs.base)
    caps = Caps((0.5, 3.0, 9.0), np.asarray(-1.0))
    path = predict_split(model, examples, costs, 0, caps=caps)
    asked = [(p, stop, np.inf) for p, stop in enumerate(model.policy.stops["most"])]
    asked += [(k, 9.0, cap) for k, cap in enumerate(caps.limits, start=3)]
    if reads_prices and examples.prices is None:
        model.policy.reads_prices = False  # nothing is quoted by row
    for p, stop, cap in asked:
        by_hand = [walked(model, costs, c, x, stop, cap) for c, x in zip(columns, X, strict=True)]
        assert path.cost[p] == pytest.approx([cost for _, cost in by_hand], abs=1e-9)
        bought = [[s in sensors for s in range(5)] for sensors, _ in by_hand]
        assert path.bought[p] == pytest.approx(np.average(bought, 0, examples.weights))


def test_a_policy_with_prices_by_row_passes_its_audit():
    rng = np.random.default_rng(5)
    costs, columns = drawn_prices(rng, 80)
    X = rng.integers(0, 9, size=(80, 6)).astype(np.float32)
    rows = with_known_prices(Examples(X, np.zeros(80), price_columns=columns), costs)
    model = Sequential(Wanting({"most": (0.0, 2.0, 9.0)}, reads_prices=True), costs.base)
    path = predict_split(model, rows, costs, 0, caps=Caps((3.0,), np.asarray(-1.0)))
    assert replay(model, rows, costs, 0, "full", path=path).word == "verified"


def test_models_see_quoted_prices_and_never_metered_ones():
    base = SensorPrices.additive(np.array([1.0, 2.0, 4.0]))
    costs = ByRow(base, np.array([0, 2]), np.array([1, 0]), np.array([True, False]))
    columns = np.array([[7.0, 0.5], [9.0, 1.5]])
    rows = Examples(np.zeros((2, 3), np.float32), np.zeros(2), price_columns=columns)
    known = with_known_prices(rows, costs).features.prices
    assert known.tolist() == [[0.5, 2.0, 4.0], [1.5, 2.0, 4.0]]
    hidden = replace(costs, quoted=np.array([False, False]))
    assert with_known_prices(rows, hidden).features.prices is None


@dataclass
class Everything:
    """Buys all sensors in every row."""

    sensors: int

    def predict_path(self, features):
        mask = np.ones((1, self.sensors), dtype=bool)
        yield Prediction({"k": 0}, np.zeros(len(features)), {"path": Bill(Acquired.pack(mask))})


def test_large_blocks_are_billed_by_the_compiled_meter():
    rng, n = np.random.default_rng(0), 20_000
    base = SensorPrices.additive(rng.random(70))
    costs = ByRow(base, np.array([3, 64, 69]), np.array([0, 1, 2]), np.array([True] * 3))
    columns = rng.random((n, 3))
    rows = Examples(np.zeros((n, 70), np.float32), np.zeros(n), price_columns=columns)
    path = predict_split(Everything(70), rows, costs, 0)
    rest = np.delete(base.sensor, [3, 64, 69]).sum()
    assert path.cost[0] == pytest.approx(rest + columns.sum(axis=1), rel=1e-9)


def test_prices_per_query_are_shared_and_those_by_row_are_the_rows_own():
    base = PerQueryPrices.of(SensorPrices.additive(np.array([6.0, 2.0])), np.array([True, False]))
    costs = ByRow(base, np.array([1]), np.array([0]), np.array([False]))
    sizes = np.array([2, 1])
    rows = Examples(
        np.zeros((3, 2), np.float32), np.zeros(3), Queries.from_sizes(sizes),
        np.array([1, 2, 1]), price_columns=np.array([[1.0], [2.0], [4.0]]),
    )  # fmt: skip
    path = predict_split(Everything(2), rows, costs, 0)
    # the query's 6 are shared by its three physical rows
    assert path.cost[0].tolist() == [2 + 1, 2 + 2, 6 + 4]
    assert on_rows(costs, rows, slice(1, 3)).of_rows.tolist() == [[6.0, 2.0], [6.0, 4.0]]


def test_purchases_that_give_no_value_are_counted_and_paid():
    """The second sensor requires the first: its features do not tell what the first gives."""
    base = SensorPrices(
        np.array([0, 1, 2, 4, 4], np.int32),
        np.array([0, 0, 0, 1], np.int32),
        np.ones(2),
        np.ones(4),
    )
    costs = ByRow(base, np.array([0, 1]), np.array([0, 1]), np.array([False, True]))
    assert [costs.yields(s).tolist() for s in (0, 1)] == [[0, 1], [2]]
    X = np.array([[np.nan, 1, 2, 0], [np.nan, np.nan, 2, 0], [0, 0, np.nan, 0]], np.float32)
    copies = np.array([1, 2, 5])
    rows = Examples(X, np.zeros(3), multiplicity=copies, price_columns=np.full((3, 2), 3.0))
    path = predict_split(Everything(2), rows, costs, 0)
    assert path.cost[0].tolist() == [6.0] * 3
    assert path.nothing[0].tolist() == [2 / 8, 5 / 8]
    assert path.paid[0].tolist() == [3.0, 3.0]
    full = replace(rows, X=np.zeros_like(X))
    assert predict_split(Everything(2), full, costs, 0).nothing is None
