from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench_trees.kernels.payments import count_unpaid, mark_paid
from bench_trees.penalties import Ledger, Penalty


def shared() -> Penalty:
    """Feature 0 needs sensors 0 and 1, feature 1 sensor 1, feature 2 none, feature 3 sensor 2."""
    return Penalty.over(
        np.array([0, 2, 3, 3, 4], np.int32),
        np.array([0, 1, 1, 2], np.int32),
        3,
        coupled=np.array([4.0, 2.0, 1.0]),
        lazy=np.array([0.5, 0.25, 0.0]),
    )


def test_a_feature_owes_the_sum_of_its_unbought_sensors() -> None:
    assert Ledger(shared(), 5).coupled_owed().tolist() == [6, 2, 0, 1]


def test_buying_a_feature_discounts_those_that_share_its_sensors() -> None:
    ledger = Ledger(shared(), 5)
    assert ledger.buy(1)
    assert ledger.coupled_owed().tolist() == [4, 0, 0, 1]


def test_buying_again_changes_nothing() -> None:
    ledger = Ledger(shared(), 5)
    ledger.buy(0)
    assert not ledger.buy(1)
    assert not ledger.buy(2)  # needs no sensor


def test_lazy_owed_is_price_times_unpaid_multiplicity_over_sensors() -> None:
    owed = Ledger(shared(), 5).lazy_owed(np.array([4, 8, 100]))
    assert owed.tolist() == [4.0, 2.0, 0.0, 0.0]


def test_a_fresh_ledger_owes_all_multiplicity() -> None:
    assert Ledger(shared(), 2, np.array([3, 4])).unpaid.tolist() == [7, 7, 7]


@pytest.mark.parametrize("copies", [None, np.array([3, 1, 4, 1, 5] * 40)])
def test_unpaid_counts_are_those_of_a_plain_set(copies: Any) -> None:
    rng = np.random.default_rng(0)
    ledger = Ledger(shared(), 200)
    owing = {(k, r) for k in range(3) for r in range(200)}
    for _ in range(5):
        sensors = rng.choice(3, 2, replace=False)
        rows = rng.choice(200, 30, replace=False).astype(np.uint32)
        mark_paid(ledger.paid, sensors, rows)
        owing -= {(int(k), int(r)) for k in sensors for r in rows}
    rows = rng.choice(200, 90, replace=False).astype(np.uint32)
    out = np.zeros(3, np.int64)
    count_unpaid(
        ledger.paid, np.arange(3), rows, np.empty(0, np.int64) if copies is None else copies, out
    )
    weight = np.ones(200, int) if copies is None else copies
    expected = [sum(weight[r] for r in rows if (k, int(r)) in owing) for k in range(3)]
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"coupled": np.array([1.0, -1, 0])}, "coupled holds a negative"),
        ({"lazy": np.array([1.0, np.nan, 0])}, "lazy holds a negative or non-finite"),
        ({"lazy": np.zeros(2)}, r"coupled and lazy must be \(s,\)"),
        ({"split": np.zeros(3)}, r"split \(d,\)"),
        ({"needed": np.array([0, 1, 1, 3], np.int32)}, "sensors 0..2"),
        ({"needed": np.array([0, 1, 1], np.int32)}, "do not fit together"),
    ],
)
def test_impossible_penalties_are_refused(changed: dict[str, Any], message: str) -> None:
    p = shared()
    fields = {name: getattr(p, name) for name in ("start", "needed", "coupled", "lazy", "split")}
    with pytest.raises(ValueError, match=message):
        Penalty(**{**fields, **changed})
