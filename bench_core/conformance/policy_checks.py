"""Promises of policies, one function each, given the learner and a task's splits.

They do not apply to models other than ``Sequential``. Policies are evaluated in arbitrary states,
also ones that they never reach: any purchases, any remainder of the cap.
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

ALONE = 20  # rows that are evaluated separately
SHARES = 0.0, 0.1, 0.4, 1.0  # caps, as fractions of the price of everything
TOLERANCE = 1e-9


class _States(NamedTuple):
    """Rows in arbitrary states of purchases."""

    cells: Float32Array  # (n, d)
    bought: BoolArray  # (n, k)
    left: FloatArray  # (n,)

    def of(self, rows: IntArray) -> "_States":
        return _States(self.cells[rows], self.bought[rows], self.left[rows])


def check_actions(learner: Any, splits: Splits) -> None:
    """``act`` returns for each row a purchase not made yet, or ``STOP``, for any purchases and any
    remainder: also if nothing is affordable, and if one purchase remains.

    Remedy: return the best purchase that ``bought`` does not have, and ``STOP`` if the row wants
    none: ``np.where(wanted, best, STOP)``, integers (n,).
    """
    for policy, states, stop in _asked(learner, splits):
        states = states.of(np.flatnonzero(~states.bought.all(axis=1)))
        try:
            purchases_of(_act(policy, states, stop), states.bought)
        except ValueError as error:
            expect(False, str(error))


def check_offers(learner: Any, splits: Splits) -> None:
    """If a policy has ``offer``, it makes the purchases of ``act`` at every stop, and no others.

    Remedy: let ``act`` return ``np.where(until >= stop, best, STOP)`` with
    ``best, until = self.offer(cells, bought, left)``; or omit ``offer``.
    """
    for policy, states, _ in _asked(learner, splits)[:1]:
        if not hasattr(policy, "offer"):
            return
        states = states.of(np.flatnonzero(~states.bought.all(axis=1)))
        best, until = policy.offer(*(array.copy() for array in states))
        ((name, stops),) = policy.stops.items()
        for stop in stops:
            differ = np.where(until >= stop, best, STOP) != _act(policy, states, stop)
            where = f"{name} = {stop:g}, {differ.sum()} of {len(differ)} rows"
            expect(not differ.any(), f"at {where}: offer gives another purchase than act")


def check_answers(learner: Any, splits: Splits) -> None:
    """``predict`` returns finite scores (n,), or (n, K) for K classes, for any purchases: none,
    all, and also if bought cells are missing.

    Remedy: replace NaN before arithmetic (``np.nan_to_num``), and predict the training rows'
    average if nothing is known.
    """
    for policy, states, _ in _asked(learner, splits):
        n, classes = len(states.left), splits.classes
        scores = np.asarray(policy.predict(states.cells.copy(), states.bought.copy()))
        shape = (n, classes) if classes > 2 else (n,)
        expect(scores.shape == shape, f"predict gives {scores.shape}, not {shape}")
        missing = int((~np.isfinite(scores)).sum())
        expect(missing == 0, f"predict gives {missing} scores that are not finite")


def check_rows(learner: Any, splits: Splits) -> None:
    """``act`` and ``predict`` give a row the same result in any block and order, and when called
    again.

    Remedy: keep no state between calls, draw no random numbers, and process rows independently,
    without means, orders or thresholds of the block.
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
    """Under a cap no row pays more than the cap, and a row alone gives the same result.

    Remedy: return ``Sequential(policy, prices)`` unchanged, and compare ``left`` (n,) with prices
    by row.
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
            alone = model.predict_capped(Features(features.X[[row]]), float(cap), prices)
            bits = bill.acquired.rows(len(features)).bits[[row]]
            same = np.array_equal(alone.bills["path"].acquired.bits, bits)
            expect(same, f"under a cap of {cap:g} row {row} buys differently alone")
            _same((answer.scores[[row]],), (alone.scores,), f"under a cap of {cap:g}, alone")


def check_nested(learner: Any, splits: Splits) -> None:
    """With ``nested = True`` a row at a stop buys the same, in the same order, as when it continues
    from the previous stop.

    Remedy: order ``stops`` by ascending cost, and let ``act`` choose the same next purchase at all
    stops, only ending later; or omit ``nested``.
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
        expect(len(differ) == 0, f"at {dict(one.point)} {len(differ)} rows buy differently")


def check_policy_state(learner: Any, splits: Splits) -> None:
    """A policy rebuilt by ``from_state`` acts and predicts the same in any state, and has the same
    ``stops``, ``nested``, ``marks``, ``each_act`` and ``each_answer``.

    Remedy: put everything that ``act`` and ``predict`` use into state(), including values needed
    only under caps, such as prices.
    """
    for policy, states, stop in _asked(learner, splits):
        again = type(policy).from_state(policy.state())
        one, other = (_members(each) for each in (policy, again))
        expect(one == other, f"reloaded: it has {other}, not {one}")
        _same(_both(policy, states, stop), _both(again, states, stop), "reloaded")


def _asked(learner: Any, splits: Splits) -> list[tuple[Any, _States, float]]:
    """Return the policy with states to evaluate at each stop; empty for other models."""
    model = fitted(learner, splits)
    if not isinstance(model, Sequential):
        return []
    purchases, rng = Purchases.of(splits.prices), np.random.default_rng(0)
    X, n, k = np.array(splits.test.X), len(splits.test), len(purchases)
    X[rng.random(n) < 0.1] = np.nan  # missing even if bought
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
    """Return the next purchases of rows that can buy something, and the scores."""
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
