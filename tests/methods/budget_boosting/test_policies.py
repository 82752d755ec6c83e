"""The search for exits, against trying everything."""

import numpy as np
import pytest
from bench_methods.budget_boosting.policies import (
    ALL,
    NONE,
    Held,
    Policy,
    _threshold,
    by_class,
    by_rank,
    kept,
)

from bench_core import Examples, Queries
from bench_core.metrics import parse_metric


@pytest.mark.parametrize("seed", range(5))
def test_a_threshold_saves_as_much_as_any_other(seed):
    rng = np.random.default_rng(seed)
    sure = rng.integers(5, 10, 30) / 10  # with ties
    saved = rng.normal(size=30)
    found = _threshold(sure, saved, np.argsort(sure, kind="stable"))
    tried = [saved[sure <= t].sum() for t in (NONE, *np.arange(0.5, 1, 0.1) + 0.01, ALL)]
    assert saved[sure <= found].sum() == pytest.approx(max(tried))


def held():
    """Stage 1 is sure and right on half the rows, stage 2 (at 9 more) right on all."""
    y = np.arange(40) % 2.0
    easy = np.arange(40) < 20
    sign = 2 * y - 1
    scores = np.stack([0 * y, np.where(easy, 4 * sign, -0.1), 5 * sign])[:, None, :]
    features = np.repeat([[0.0], [1.0], [10.0]], 40, axis=1)
    rows = Examples(np.zeros((40, 1), np.float32), y)
    return Held(rows, scores, features, 0 * features, parse_metric("accuracy"))


def test_rows_that_are_sure_leave_and_the_others_go_on():
    policies = by_class(held())
    full = max(policies, key=lambda p: p.cost)
    assert full.cost == 10.0
    as_good = [p for p in policies if p.quality >= full.quality - 0.02]
    assert min(p.cost for p in as_good) == pytest.approx(5.5)  # half pay 1, half 10


def test_evaluation_is_paid_at_every_stage_of_a_chain():
    plain = held()
    priced = Held(plain.rows, plain.scores, plain.features, plain.features * 0 + 2, plain.metric)
    assert priced.cost[:, 0].tolist() == [2.0, 5.0, 16.0]
    assert priced.only([0, 2]).cost[:, 0].tolist() == [2.0, 14.0]


def test_documents_of_low_rank_do_not_reach_the_second_stage():
    rng = np.random.default_rng(0)
    y = np.tile(np.r_[np.full(2, 3.0), np.zeros(18)], 10)
    cheap = y + rng.normal(size=200)
    scores = np.stack([0 * y, cheap, y])[:, None, :]
    features = np.repeat([[0.0], [1.0], [11.0]], 200, axis=1)
    rows = Examples(np.zeros((200, 1), np.float32), y, Queries.from_sizes(np.full(10, 20)))
    found = by_rank(Held(rows, scores, features, 0 * features, parse_metric("ndcg@5")))
    gated = {int(p.values[0]): p for first, last, p in found if (first, last) == (1, 2)}
    assert gated[5].cost == pytest.approx(1 + 10 * 5 / 20)
    alone = next(p for first, last, p in found if first == last == 1)
    assert gated[5].quality > alone.quality


def test_what_is_dominated_is_dropped_and_costs_are_spread():
    none = np.zeros(0)
    policies = [
        Policy(none, c, q) for c, q in ((1, 0.5), (2, 0.4), (3, 0.6), (3.1, 0.61), (9, 0.7))
    ]
    assert [p.cost for p in kept(policies, 9)] == [1, 3, 3.1, 9]
    assert [p.cost for p in kept(policies, 3)] == [1, 3, 9]
