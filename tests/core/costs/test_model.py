from dataclasses import replace

import numpy as np
import pytest
from helpers.kit import refused

from bench_core import DiscountGroup, price_list
from bench_core.costs.model import ContradictionError


def test_the_cheapest_price_is_that_of_a_feature_which_is_not_free():
    group = DiscountGroup(members=(1, 2), later=(2.0, 3.0))  # of sensors of 4, 2 and 3
    assert price_list(np.array([0.0, 6.0, 7.0]), discounted=[group]).cheapest == 6.0
    assert price_list(np.array([0.0, 0.0]), split=1.0).cheapest == 0.0


GROUP = DiscountGroup(members=(0, 1), later=(10.0, 8.0))


@pytest.mark.parametrize(
    "prices",
    [
        price_list(np.ones(3)),
        price_list(np.array([12.0, 10.0, 0.0]), discounted=[GROUP], derived={2: [0, 1]}),
        price_list(np.array([1.0, 0.0]), discounted=[DiscountGroup((0,), (0.5,))], derived={1: []}),
        replace(price_list(np.ones(3)), sensor=np.ones(5)),
        price_list(np.array([3.0, 7, 7, 0, 2]), shared=[[1, 2]], derived={3: [0, 1]}),
    ],
    ids=["one each", "as many but shared", "needs nothing", "sensors nobody needs", "shared"],
)
def test_features_are_bought_with_the_sensors_that_they_need(prices):
    one_each = np.eye(prices.features, dtype=bool)
    wanted = np.zeros((prices.features, prices.sensors), dtype=bool)
    for j in range(prices.features):
        wanted[j, prices.sensors_of(j)] = True
        assert prices.bought_for(np.array([j])).tolist() == wanted[j].tolist()
    assert prices.bought_for(one_each).tolist() == wanted.tolist()
    assert prices.acquired(one_each).unpack().tolist() == wanted.tolist()
    assert (prices.needs.toarray() > 0).tolist() == wanted.tolist()
    both = one_each[:1] | one_each[-1:]
    assert prices.acquired(both).unpack().tolist() == [(wanted[0] | wanted[-1]).tolist()]


@pytest.mark.parametrize(
    ("cost", "rules", "message"),
    [
        ([12.0, 15.0], {"discounted": [(10.0, 10.0)]}, "5 cheaper later, 0 2; in a discounted"),
        ([12.0, 15.0], {"discounted": [(13.0, 16.0)]}, "negative"),
        ([12.0, 15.0], {"discounted": [(3,)]}, "one later price for each, not [0, 1] and [3]"),
        ([1.0, 1.0], {"shared": [[]]}, "share one sensor is empty"),
        ([1.0, 2.0], {"shared": [[0, 1]]}, "share one measurement but cost 1 and 2"),
        ([1.0] * 3, {"derived": {1: [0], 2: [1]}}, "feature 2 is derived from 1, itself derived"),
    ],
)
def test_groups_that_contradict_themselves_are_refused(cost, rules, message):
    def listed():
        groups = [DiscountGroup((0, 1), later) for later in rules.get("discounted", ())]
        return price_list(np.array(cost), **(rules | {"discounted": groups}))

    refused(message, listed, error=ValueError)


def test_a_sensor_that_is_not_there_is_refused():
    whole = price_list(np.ones(2))
    for needed in ([0, 2], [0, -1]):
        outside = np.array(needed, dtype=np.int32)
        refused(
            "needed names a sensor outside 0..1", replace, whole, needed=outside, error=ValueError
        )


def test_features_in_groups_are_among_those_with_a_cost():
    for beyond in (-1, 2):
        for rules in (
            {"shared": [[beyond]]},
            {"discounted": [DiscountGroup((0, beyond), (0.0, 0.0))]},
            {"derived": {beyond: [0]}},
            {"derived": {0: [beyond]}},
        ):
            words = f"feature {beyond} is outside 0..1"
            refused(words, price_list, np.ones(2), **rules, error=ValueError)


def test_a_feature_under_two_rules_is_refused():
    with pytest.raises(ContradictionError) as caught:
        price_list(np.array([1.0, 1.0, 1.0]), shared=[[0, 1], [1, 2]])
    assert str(caught.value) == "feature 1 is in two groups; keep one"
    assert caught.value.feature == 1


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_price_that_is_negative_or_not_finite_is_refused(bad):
    refused("negative or non-finite", price_list, np.array([1.0, bad]), error=ValueError)
    refused("split and tree", price_list, np.array([1.0]), split=bad, error=ValueError)
    refused("split and tree", price_list, np.array([1.0]), tree=bad, error=ValueError)
