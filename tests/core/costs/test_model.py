from dataclasses import replace

import numpy as np
import pytest
from helpers.kit import refused

from bench_core import DiscountGroup, Prices, price_list
from bench_core.costs.model import ContradictionError


def paid(prices, features):
    """What buying these features costs, by sets: the definition, not the implementation."""
    sensors = {int(s) for j in features for s in prices.sensors_of(j)}
    return float(sum(prices.sensor[s] for s in sensors))


def test_a_plain_feature_costs_its_price_each():
    prices = price_list(np.array([1.0, 5.0, 20.0]))
    assert prices.sensors == 3
    assert paid(prices, [0, 2]) == 21.0
    assert prices.everything == 26.0
    np.testing.assert_array_equal(prices.feature_price(), [1.0, 5.0, 20.0])


def test_the_cheapest_price_is_that_of_a_feature_which_is_not_free():
    group = DiscountGroup(members=(1, 2), later=(2.0, 3.0))  # of sensors of 4, 2 and 3
    assert price_list(np.array([0.0, 6.0, 7.0]), discounted=[group]).cheapest == 6.0
    assert price_list(np.array([0.0, 0.0]), split=1.0).cheapest == 0.0


def test_features_of_one_sensor_are_paid_once():
    prices = price_list(np.array([3.0, 7.0, 7.0]), shared=[[1, 2]])
    assert paid(prices, [1]) == 7.0
    assert paid(prices, [1, 2]) == 7.0
    assert prices.everything == 10.0


def test_the_second_member_of_a_discounted_group_pays_less():
    # Turney's blood tests on Pima: glucose 17.61 and insulin 22.78, the second 2.10 less.
    group = DiscountGroup(members=(0, 1), later=(15.51, 20.68))
    prices = price_list(np.array([17.61, 22.78]), discounted=[group])
    assert paid(prices, [0]) == pytest.approx(17.61)
    assert paid(prices, [1]) == pytest.approx(22.78)
    assert paid(prices, [0, 1]) == pytest.approx(17.61 + 20.68)


def test_a_derived_feature_is_free_once_its_parents_are_bought():
    # thyroid: FTI is computed from TT4 (14.51) and T4U (11.41).
    prices = price_list(np.array([14.51, 11.41, 99.0]), derived={2: [0, 1]})
    assert paid(prices, [2]) == pytest.approx(25.92)
    assert paid(prices, [0, 1, 2]) == pytest.approx(25.92)
    assert paid(prices, [0]) == pytest.approx(14.51)


GROUP = DiscountGroup(members=(0, 1), later=(10.0, 8.0))


@pytest.mark.parametrize(
    "prices",
    [
        price_list(np.ones(3)),
        price_list(np.array([12.0, 10.0, 0.0]), discounted=[GROUP], derived={2: [0, 1]}),
        price_list(np.array([1.0, 0.0]), discounted=[DiscountGroup((0,), (0.5,))], derived={1: []}),
        replace(price_list(np.ones(3)), sensor=np.ones(5)),
    ],
    ids=["one each", "as many but shared", "a feature that needs nothing", "sensors nobody needs"],
)
def test_features_are_bought_with_the_sensors_that_they_need(prices):
    for j in range(prices.features):
        needed = set(prices.sensors_of(j).tolist())
        bought = prices.bought_for(np.array([j]))
        assert bought.tolist() == [s in needed for s in range(prices.sensors)]


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


def test_a_sensor_that_no_feature_needs_is_never_bought():
    prices = Prices(
        start=np.array([0, 1, 2], dtype=np.int32),
        needed=np.array([0, 1], dtype=np.int32),
        sensor=np.array([1.0, 5.0, 20.0]),
        multiplier=np.ones(2),
    )
    assert prices.bought_for(np.array([True, True])).tolist() == [True, True, False]
