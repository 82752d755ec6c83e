"""The promises of policies, one function each, given the learner and a task's splits.

A learner whose model is no ``Sequential`` has none of them to keep. Policies are asked about states
that they may never get into by themselves: any purchases made, any money left.
"""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.conformance.case import expect
from bench_core.conformance.tasks import fitted
from bench_core.data import Features
from bench_core.execution.predict import readable
from bench_core.sequential import (
    ROUNDING,
    STOP,
    Evaluated,
    Purchases,
    Sequential,
    purchases_of,
)
from bench_core.splits import Splits

ALONE = 20  # rows that are asked about one by one
SHARES = 0.0, 0.1, 0.4, 1.0  # caps, as shares of the price of everything
TOLERANCE = 1e-9


class _States(NamedTuple):
    """Rows in any state that purchases can lead to."""

    cells: Float32Array  # (n, d)
    bought: BoolArray  # (n, k)
    left: FloatArray  # (n,)

    def of(self, rows: IntArray) -> "_States":
        return _States(self.cells[rows], self.bought[rows], self.left[rows])


def check_actions(learner: Any, splits: Splits) -> None:
    """``act`` gives for each row a purchase that was not made yet, or ``STOP``, whatever was bought
    and whatever is left: also where nothing can be paid, and where one purchase remains.

    Remedy: take the best of the purchases that ``bought`` does not have, and return ``STOP`` where
    there is none that the row wants: ``np.where(wanted, best, STOP)``, whole numbers (n,).
    """
    for policy, states, stop in _asked(learner, splits):
        states = states.of(np.flatnonzero(~states.bought.all(axis=1)))
        try:
            purchases_of(_act(policy, states, stop), states.bought)
        except ValueError as error:
            expect(False, str(error))


def check_answers(learner: Any, splits: Splits) -> None:
    """``predict`` gives finite scores (n,), or (n, K) for K classes, whatever was bought: nothing,
    everything, and also where bought cells are missing.

    Remedy: replace NaN before arithmetic (``np.nan_to_num``), and answer by what the training rows
    have on average where nothing is known.
    """
    for policy, states, _ in _asked(learner, splits):
        n, classes = len(states.left), splits.classes
        scores = np.asarray(policy.predict(states.cells.copy(), states.bought.copy()))
        shape = (n, classes) if classes > 2 else (n,)
        expect(scores.shape == shape, f"predict gives {scores.shape}, not {shape}")
        missing = int((~np.isfinite(scores)).sum())
        expect(missing == 0, f"predict gives {missing} scores that are not finite")


def check_rows(learner: Any, splits: Splits) -> None:
    """``act`` and ``predict`` give a row the same in any block, in any order, and when they are
    asked again.

    Remedy: keep nothing from one call to the next, draw no random numbers, and look at one row at
    a time: no mean, order or threshold of the rows at hand.
    """
    for policy, states, stop in _asked(learner, splits):
        n = len(states.left)
        shuffled = np.random.default_rng(1).permutation(n)
        alone = [np.array([row]) for row in range(min(n, ALONE))]
        whole = _both(policy, states, stop)
        for rows in (np.arange(n), shuffled, *alone):
            expected = tuple(part[rows] for part in whole)
            _same(expected, _both(policy, states.of(rows), stop), f"for a block of {len(rows)}")


def check_caps(learner: Any, splits: Splits) -> None:
    """Under a cap no row pays more than it, and a row by itself buys and answers the same.

    Remedy: return ``Sequential(policy, prices)`` as it is, and compare ``left`` (n,) with prices
    row by row.
    """
    model = fitted(learner, splits)
    if not isinstance(model, Sequential):
        return
    prices, features = splits.prices, splits.test.features
    for cap in np.multiply(SHARES, prices.everything):
        answer = model.predict_capped(features, float(cap), prices)
        bill = answer.bills["path"]
        paid = float(bill.feature_cost(prices, len(features)).max())
        within = paid <= cap * (1 + 2 * ROUNDING)
        expect(within, f"under a cap of {cap:g} a row pays {paid:g}")
        for row in range(min(len(features), ALONE)):
            one = model.predict_capped(Features(features.X[[row]]), float(cap), prices)
            bits = bill.acquired.rows(len(features)).bits[[row]]
            same = np.array_equal(one.bills["path"].acquired.bits, bits)
            expect(same, f"under a cap of {cap:g} row {row} buys otherwise by itself")
            _same((answer.scores[[row]],), (one.scores,), f"under a cap of {cap:g}, by itself")


def check_nested(learner: Any, splits: Splits) -> None:
    """With ``nested = True`` a row that starts at a stop buys what it buys by going on from
    the stop before, in the same order.

    Remedy: order ``stops`` from the one that spends least, let ``act`` choose the same next
    purchase at all of them, and only stop later; or leave ``nested`` out.
    """
    model = fitted(learner, splits)
    if not isinstance(model, Sequential) or not getattr(model.policy, "nested", False):
        return
    policy, features = model.policy, splits.test.features
    restarted = SimpleNamespace(stops=policy.stops, act=policy.act, predict=policy.predict)
    paths = (m.predict_path(features) for m in (model, Sequential(restarted, model.prices)))
    for one, other in zip(*paths, strict=True):
        orders = [prediction.bills["path"].order for prediction in (one, other)]
        differ = np.flatnonzero((orders[0] != orders[1]).any(axis=1))
        expect(len(differ) == 0, f"at {dict(one.point)} {len(differ)} rows buy otherwise")


def check_policy_state(learner: Any, splits: Splits) -> None:
    """A policy rebuilt by ``from_state`` acts and predicts the same whatever was bought and is
    left, and has the same ``stops``, ``nested``, ``marks``, ``each_act`` and ``each_answer``.

    Remedy: put all that ``act`` and ``predict`` use into state(), also what only caps need, such as
    prices.
    """
    for policy, states, stop in _asked(learner, splits):
        again = type(policy).from_state(policy.state())
        one, other = (_members(each) for each in (policy, again))
        expect(one == other, f"reloaded: it has {other}, not {one}")
        _same(_both(policy, states, stop), _both(again, states, stop), "reloaded")


def _asked(learner: Any, splits: Splits) -> list[tuple[Any, _States, float]]:
    """The policy with states to ask it about at each stop; nothing for other models."""
    model = fitted(learner, splits)
    if not isinstance(model, Sequential):
        return []
    purchases, rng = Purchases.of(splits.prices), np.random.default_rng(0)
    X, n, k = np.array(splits.test.X), len(splits.test), len(purchases)
    X[rng.random(n) < 0.1] = np.nan  # whatever they buy, nothing comes
    bought = rng.random((n, k)) < rng.choice([0.0, 0.2, 0.5, 0.8, 1.0], (n, 1))
    one_remains = rng.random(n) < 0.2
    bought[one_remains] = np.arange(k) != rng.integers(0, k, int(one_remains.sum()))[:, None]
    sensors = purchases.sensors(bought | (purchases.price == 0))
    cells = np.where(readable(sensors, splits.prices), X, np.float32(np.nan))
    left = rng.choice([0.0, 0.05, 0.5, np.inf], n) * splits.prices.everything
    states = _States(cells, purchases.made(sensors), left)
    ((_, stops),) = model.policy.stops.items()
    return [(model.policy, states, stop) for stop in dict.fromkeys((stops[0], stops[-1]))]


def _act(policy: Any, states: _States, stop: float) -> Any:
    cells, bought, left = (array.copy() for array in states)
    return policy.act(cells, bought, left, stop)


def _both(policy: Any, states: _States, stop: float) -> tuple[FloatArray, ...]:
    """The next purchases, of rows that can buy something, and the scores."""
    scores = policy.predict(states.cells.copy(), states.bought.copy())
    chosen, asked = np.full(len(scores), STOP), np.flatnonzero(~states.bought.all(axis=1))
    if len(asked):
        chosen[asked] = _act(policy, states.of(asked), stop)
    return chosen, np.asarray(scores)


def _same(one: tuple[FloatArray, ...], two: tuple[FloatArray, ...], how: str) -> None:
    for name, a, b in zip(("purchases", "scores")[-len(one) :], one, two, strict=True):
        near = a.shape == b.shape and np.allclose(a, b, TOLERANCE, TOLERANCE)
        expect(near, f"{how}: its {name} differ")


def _members(policy: Any) -> dict[str, Any]:
    stops = {name: [*map(float, values)] for name, values in policy.stops.items()}
    nested = bool(getattr(policy, "nested", False))
    usual = {"marks": (), "each_act": Evaluated(), "each_answer": Evaluated()}
    more = {name: tuple(getattr(policy, name, value)) for name, value in usual.items()}
    return {"stops": stops, "nested": nested, **more}
