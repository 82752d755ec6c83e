"""Policies: what is hidden, what is bought, what is billed, and what a cap leaves."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import (
    STOP,
    DiscountGroup,
    Evaluated,
    Examples,
    Features,
    Purchases,
    SensorPrices,
    Sequential,
    price_list,
)
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.predict import predict_split


@dataclass
class Ladder:
    """Buys the purchase of the least price that is left while what is bought adds up to less than
    ``stop``; predicts that sum."""

    stops: dict[str, tuple[float, ...]]
    nested: bool = False
    seen: Any = None

    def act(self, cells, bought, left, stop):
        if self.seen is not None:
            self.seen.append((cells.copy(), bought.copy(), left.copy(), stop))
        first = np.argmin(bought, axis=1)
        return np.where(np.nansum(cells, axis=1) < stop, first, STOP)

    def predict(self, cells, bought):
        return np.nansum(cells, axis=1).astype(float)

    def state(self):
        return {"name": next(iter(self.stops)), "stops": list(*self.stops.values())}

    @classmethod
    def from_state(cls, state):
        return cls({state["name"]: tuple(state["stops"])})


def rows(n=50, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)).astype(np.float32)
    return Examples(X, (X.sum(axis=1) > d / 2).astype(float))


def bought_by_hand(x, price, stop, cap):
    """The ladder, a row and a purchase at a time, where each feature is its own sensor."""
    own = [j for j in range(len(x)) if price[j] == 0]
    while len(own) < len(x) and sum((x[j] for j in sorted(own)), np.float32(0)) < stop:
        following = min(j for j in range(len(x)) if j not in own)
        if sum(price[j] for j in [*own, following]) > cap + 1e-9:
            break
        own.append(following)
    return own


@given(
    seed=st.integers(0, 10_000),
    price=st.lists(st.sampled_from([0.0, 0.1, 0.2, 1.0]), min_size=4, max_size=4),
    cap=st.sampled_from([0.0, 0.3, 1.0, 5.0]),
    nested=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_purchases_are_those_made_one_by_one_by_hand(seed, price, cap, nested):
    part, price, stops = rows(20, seed=seed), np.array(price), (0.4, 1.1, 9.0)
    prices = SensorPrices.additive(price)
    model = Sequential(Ladder({"sum": stops}, nested), prices)
    found = [*model.predict_path(part.features)]
    assert [dict(p.point) for p in found] == [{"sum": s} for s in stops]
    limits = [np.inf] * 3 + [cap]
    found.append(model.predict_capped(part.features, cap, prices))
    for prediction, stop, limit in zip(found, (*stops, stops[-1]), limits, strict=True):
        bill, free = prediction.bills["path"], int((price == 0).any())
        for i, x in enumerate(part.X):
            own = bought_by_hand(x, price, stop, limit)
            assert set(np.flatnonzero(bill.acquired.unpack()[i])) == set(own)
            paid = [j for j in own if price[j] > 0]
            steps = [0 if price[j] == 0 else free + paid.index(j) for j in own]
            assert bill.order[i, own].tolist() == steps
            assert prediction.scores[i] == pytest.approx(x[own].sum())


def test_a_policy_sees_only_what_was_bought_and_cannot_change_it():
    class Writer(Ladder):
        def act(self, cells, bought, left, stop):
            answer = super().act(cells, bought, left, stop)
            cells[:], bought[:], left[:] = 7.0, True, 1e9
            return answer

    part, prices = rows(), SensorPrices.additive(np.ones(4))
    plain = Ladder({"sum": (1.5,)}, seen=[])
    (honest,) = Sequential(plain, prices).predict_path(part.features)
    for cells, bought, left, _ in plain.seen:
        assert np.isnan(cells[~bought]).all()
        assert not np.isnan(cells[bought]).any()
        assert np.isinf(left).all()
    (other,) = Sequential(Writer({"sum": (1.5,)}), prices).predict_path(part.features)
    assert np.array_equal(other.scores, honest.scores)
    assert np.array_equal(other.bills["path"].order, honest.bills["path"].order)


def test_under_a_cap_the_policy_knows_what_is_left():
    policy, part = Ladder({"sum": (0.0, 9.0)}, seen=[]), rows(5)
    prices = SensorPrices.additive(np.array([0.1, 0.2, 0.4, 5.0]))
    answer = Sequential(policy, prices).predict_capped(part.features, 0.3, prices)
    seen = [float(left[0]) for _, _, left, _ in policy.seen]
    assert seen == pytest.approx([0.3, 0.2, 0.0], abs=1e-8)
    assert {stop for *_, stop in policy.seen} == {9.0}
    assert answer.bills["path"].acquired.unpack()[0].tolist() == [True, True, False, False]


def test_a_trial_answers_caps_by_the_policy_and_within_them():
    part, prices = rows(300), SensorPrices.additive(np.array([1.0, 2.0, 3.0, 4.0]))
    model = Sequential(Ladder({"sum": (9.0,)}), prices)
    caps = Caps((0.5, 3.0, 100.0), np.array(0.25))
    found = predict_split(model, part, prices, 2, caps=caps)  # its path has 10 alone
    assert found.cost.max(axis=1).tolist() == [10.0, 0.0, 3.0, 10.0, 0.0]
    assert np.allclose(found.scores[2], part.X[:, :2].sum(axis=1))
    # where trees cost something the path is followed, whose only point costs too much
    dear = SensorPrices.additive(np.array([1.0, 2.0, 3.0, 4.0]), tree=0.1)
    assert (predict_split(model, part, dear, 2, caps=caps).scores[2] == 0.25).all()


def test_steps_are_counted_sensor_by_sensor_over_copies_of_rows():
    price, cap = np.array([1.0, 0.0, 2.0, 0.5]), 1.5
    part = rows(9000)  # of two blocks
    part = replace(part, multiplicity=1 + np.arange(9000) % 3)
    prices = SensorPrices.additive(price)
    stops = (0.4, 1.6)
    model = Sequential(Ladder({"sum": stops}), prices)
    found = predict_split(model, part, prices, 2, caps=Caps((cap,), np.array(0.0)))
    for k, (stop, limit) in enumerate([*((stop, np.inf) for stop in stops), (1.6, cap)]):
        counts = np.zeros((17, 4))
        for x, copies in zip(part.X, part.multiplicity, strict=True):
            paid = [j for j in bought_by_hand(x, price, stop, limit) if price[j] > 0]
            for step, j in enumerate(paid, start=1):
                counts[[0, step], j] += [step * copies, copies]
        assert found.steps[k] == pytest.approx(counts / part.multiplicity.sum())


def test_steps_after_the_sixteenth_count_in_the_mean_alone():
    part, prices = rows(3, 20), SensorPrices.additive(np.ones(20))
    path = predict_split(Sequential(Ladder({"sum": (99.0,)}), prices), part, prices, 2)
    assert path.steps[0][0].tolist() == [*range(1, 21)]
    assert (path.steps[0][1:, :16] == np.eye(16)).all()
    assert (path.steps[0][1:, 16:] == 0).all()


def test_purchases_are_distinct_sets_of_sensors():
    cost = np.array([1.0, 1.0, 5.0, 4.0, 9.0, 2.0])
    prices = price_list(
        cost,
        shared=[(0, 1)],
        discounted=[DiscountGroup((2, 3), (3.0, 2.0))],
        derived={4: (0, 5)},
    )
    purchases = Purchases.of(prices)
    assert len(purchases) == 4  # the pair, both of the group, the last; none for the derived
    nothing = np.zeros((1, 4), dtype=bool)
    assert sorted(purchases.marginal(nothing)[0]) == [1.0, 2.0, 4.0, 5.0]
    group = int(np.argmax(purchases.price == 5.0))
    after = purchases.marginal(np.eye(4, dtype=bool)[[group]])[0]
    assert sorted(after) == [0.0, 1.0, 2.0, 2.0]  # the other of the group now costs 2


def test_columns_show_when_all_of_their_sensors_are_bought():
    prices = price_list(
        np.array([1.0, 1.0, 2.0, 0.0]), shared=[(0, 1)], derived={3: (0, 2)}, unit="s"
    )
    part = rows(1)
    policy = Ladder({"sum": (99.0,)}, seen=[])
    [*Sequential(policy, prices).predict_path(part.features)]
    shown = [(~np.isnan(cells[0])).tolist() for cells, *_ in policy.seen]
    assert shown[0] == [False] * 4
    assert shown[1] in ([True, True, False, False], [False, False, True, False])
    (last,) = Sequential(policy, prices).predict_path(part.features)
    assert last.scores[0] == pytest.approx(part.X[0].sum())


def test_a_discounted_purchase_is_billed_at_its_marginal_price():
    prices = price_list(np.array([5.0, 4.0]), discounted=[DiscountGroup((0, 1), (3.0, 2.0))])
    part, policy = rows(3, 2), Ladder({"sum": (99.0,)})
    model = Sequential(policy, prices)
    (last,) = model.predict_path(part.features)
    bill = last.bills["path"]
    assert bill.feature_cost(prices, 3).tolist() == [7.0] * 3
    assert bill.order.max() == 1
    capped = model.predict_capped(part.features, 7.0, prices)
    assert capped.bills["path"].feature_cost(prices, 3).tolist() == [7.0] * 3


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda n: np.zeros(n), "whole numbers"),
        (lambda n: np.zeros((n, 1), dtype=int), "whole numbers"),
        (lambda n: np.full(n, 4), "purchase 4 of 4"),
        (lambda n: np.full(n, -2), "purchase -2 of 4"),
        (lambda n: np.zeros(n, dtype=int), "was made"),  # the same again and again
    ],
)
def test_wrong_actions_are_refused(answer, says):
    policy = Ladder({"sum": (1.0,)})
    policy.act = lambda cells, bought, left, stop: answer(len(cells))
    model = Sequential(policy, SensorPrices.additive(np.ones(4)))
    with pytest.raises(ValueError, match=says):
        [*model.predict_path(rows().features)]


def test_evaluations_of_a_policy_are_billed():
    policy = Ladder({"sum": (0.0, 9.0)})
    policy.each_act, policy.each_answer = Evaluated(3, 1), Evaluated(10, 5)
    model = Sequential(policy, SensorPrices.additive(np.ones(4)))
    first, last = (p.bills["path"] for p in model.predict_path(rows(2).features))
    assert first.trees.tolist() == [6, 6]  # asked once, answered once
    assert last.trees.tolist() == [9, 9]  # four purchases; nothing is left to ask for
    assert last.splits.tolist() == [22, 22]


def test_a_policy_that_looks_at_other_rows_fails_its_audit():
    class Crowd(Ladder):
        def act(self, cells, bought, left, stop):
            own = np.nansum(cells, axis=1)
            return np.where(own > np.median(own), STOP, np.argmin(bought, axis=1))

    part, prices = rows(400), SensorPrices.additive(np.ones(4))
    model = Sequential(Crowd({"sum": (1.0,)}), prices)
    assert replay(model, part, prices, 2, "full").word == "failed"


def test_a_block_without_rows_has_an_answer():
    model = Sequential(Ladder({"sum": (1.0,)}), SensorPrices.additive(np.ones(4)))
    (answer,) = model.predict_path(Features(np.zeros((0, 4), dtype=np.float32)))
    assert len(answer.scores) == 0
