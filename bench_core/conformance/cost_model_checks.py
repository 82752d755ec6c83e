"""Promises of cost models, given the model, random purchases (60, s) and their queries."""

from typing import Any

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.conformance.cases import drawn_queries, expect
from bench_core.contracts import check
from bench_core.costs.bill import Acquired, Bill
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import from_json, to_json
from bench_core.data import Examples, Queries
from bench_core.datasets.pricing import same_sensors

ROWS = 60
ROUNDING = 1e-9  # relative


def check_members(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """A cost model has all members of ``CostModel``.

    Remedy: subclass SensorPrices, as the model that 'bench new cost-model NAME' writes.
    """
    check(type(costs), CostModel, type(costs).__name__)


def check_bills(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """Bills are (n,), finite and at least 0; no purchase costs 0; all sensors cost ``everything``.

    Remedy: make feature_cost a sum over ``acquired``, one number for each row, and ``everything``
    its value if all sensors are bought.
    """
    for of in (None, queries):
        bill = _bill(costs, bought, of)
        expect((np.isfinite(bill) & (bill >= 0)).all(), "a bill is negative or not finite")
    nothing = _bill(costs, np.zeros_like(bought), queries)
    expect(not nothing.any(), "buying nothing costs something")
    every = _bill(costs, np.ones((1, costs.sensors), dtype=bool), None)[0]
    alike = np.isclose(every, costs.everything, rtol=ROUNDING)
    expect(alike, f"everything costs {every:g}, not {costs.everything:g}")


def check_more_costs_more(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """A query that buys more sensors never costs less.

    Remedy: a discount must not exceed the price already paid.
    """
    # the same purchases and a few more
    more = bought | (np.random.default_rng(1).random(bought.shape) < 0.2)
    starts = queries.boundaries[:-1]
    less_cost, more_cost = (
        np.add.reduceat(_bill(costs, mask, queries), starts) for mask in (bought, more)
    )
    never_less = (more_cost >= less_cost * (1 - ROUNDING)).all()
    expect(never_less, "with more sensors a query costs less")


def check_blocks(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """A query's bill depends on nothing outside it.

    Remedy: do not use sums or counts over the block; ``queries`` delimit the bills.
    """
    whole = _bill(costs, bought, queries)
    for a, b in zip(queries.boundaries[:-1], queries.boundaries[1:], strict=True):
        alone = _bill(costs, bought[a:b], Queries(np.array([0, b - a])))
        alike = np.allclose(alone, whole[a:b], rtol=ROUNDING, atol=0)
        expect(alike, "a query alone is billed differently than with others")


def check_state(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """``state`` is arrays and JSON; a model rebuilt from it computes the same bills.

    Remedy: put everything that feature_cost uses into state(), and read it in from_state().
    """
    one, two = (_bill(c, bought, queries) for c in (from_json(to_json(costs)), costs))
    expect(np.array_equal(one, two), "rebuilt from its state it bills differently")


def check_surrogate(costs: Any, bought: BoolArray, queries: Queries) -> None:
    """``surrogate`` returns additive prices of the same sensors. A model that is its own surrogate
    is additive: two purchases without a common sensor cost their sum.

    Remedy: return SensorPrices, as SensorPrices.from_state(self.state()).
    """
    X = np.zeros((ROWS, costs.features), dtype=np.float32)
    prices = costs.surrogate(Examples(X, np.zeros(ROWS), queries))
    given = isinstance(prices, SensorPrices)
    expect(given, f"surrogate gives {prices!r}, not SensorPrices")
    alike = same_sensors(prices, costs)
    expect(alike, "its features need other sensors than the surrogate's")
    # purchases without a common sensor
    half = np.arange(costs.sensors) % 2 == 0
    whole, one, two = (_bill(costs, m, queries) for m in (bought, bought & half, bought & ~half))
    worst = int(np.abs(whole - one - two).argmax())
    parts = f"{one[worst]:g} and {two[worst]:g}"
    adds_up = prices is not costs or np.allclose(whole, one + two, rtol=ROUNDING)
    expect(adds_up, f"parts that cost {parts} cost {whole[worst]:g} together")


def purchases(costs: CostModel) -> tuple[BoolArray, Queries]:
    """Return random purchases of the rows of some queries."""
    rng = np.random.default_rng(0)
    # (60, s): about two fifths of the sensors each
    return rng.random((ROWS, costs.sensors)) < 0.4, drawn_queries(ROWS, rng)


def _bill(costs: CostModel, bought: BoolArray, queries: Queries | None) -> FloatArray:
    return Bill(Acquired.pack(bought)).feature_cost(costs, len(bought), queries)
