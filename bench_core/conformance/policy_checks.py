"""Promises of policies, one function each, given the learner and a task's splits.

They do not apply to models other than ``Sequential``. What a policy buys and answers is checked as
for all models: ``Sequential`` alone asks it, and refuses invalid purchases.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

from bench_core.conformance.cases import expect, fitted
from bench_core.data import Features
from bench_core.sequential import ROUNDING, Sequential
from bench_core.splits import Splits

ALONE = 20  # rows that are evaluated separately
SHARES = 0.0, 0.06, 0.1, 0.4, 1.0  # caps, as fractions of the price of everything
TOLERANCE = 1e-9


def check_shortcuts(learner: Any, splits: Splits) -> None:
    """With ``nested = True``, and with ``offer``, a row at a stop buys the same, in the same order,
    as when ``act`` is asked for each purchase from the start.

    Remedy: order ``stops`` by ascending cost, and let ``act`` choose the same next purchase at all
    stops, only ending later: ``np.where(until >= stop, best, STOP)`` with
    ``best, until = self.offer(cells, bought, left)``; or omit ``nested`` and ``offer``.
    """
    model = fitted(learner, splits)
    if not isinstance(model, Sequential):
        return
    policy, features = model.policy, splits.test.features
    by_act = SimpleNamespace(stops=policy.stops, act=policy.act, predict=policy.predict)
    paths = (m.predict_path(features) for m in (model, Sequential(by_act, model.prices)))
    for one, other in zip(*paths, strict=True):
        orders = [prediction.bills["path"].order for prediction in (one, other)]
        differ = np.flatnonzero((orders[0] != orders[1]).any(axis=1))
        expect(len(differ) == 0, f"at {dict(one.point)} {len(differ)} rows buy differently")


def check_caps(learner: Any, splits: Splits) -> None:
    """Under a cap no row pays more than the cap, scores are finite, and a row alone gives the same
    result.

    Remedy: return ``Sequential(policy, prices)`` unchanged, compare ``left`` (n,) with prices by
    row, and predict the training rows' average if nothing is known.
    """
    model = fitted(learner, splits)
    if not isinstance(model, Sequential):
        return
    prices, features = splits.prices, splits.test.features
    for cap in np.multiply(SHARES, prices.everything):
        under = f"under a cap of {cap:g}"
        answer = model.predict_capped(features, float(cap), prices)
        bill = answer.bills["path"]
        paid = float(bill.feature_cost(prices, len(features)).max())
        expect(paid <= cap * (1 + 2 * ROUNDING), f"{under} a row pays {paid:g}")
        expect(np.isfinite(answer.scores).all(), f"{under} some scores are not finite")
        for row in range(min(len(features), ALONE)):
            alone = model.predict_capped(Features(features.X[[row]]), float(cap), prices)
            bits = bill.acquired.rows(len(features)).bits[[row]]
            same = np.array_equal(alone.bills["path"].acquired.bits, bits)
            expect(same, f"{under} row {row} buys differently alone")
            near = np.allclose(answer.scores[[row]], alone.scores, TOLERANCE, TOLERANCE)
            expect(near, f"{under} row {row} has other scores alone")
