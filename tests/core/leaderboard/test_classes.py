"""Right answers by class, and costs that are numbers of features, of a run's own table."""

import numpy as np
import pandas as pd
import pytest

import bench_core
from bench_core._io.files import from_cache
from bench_core.datasets.cache import open_prepared
from bench_core.results.store import Store


def table(rows=600, seed=0):
    """Three features that tell more the higher their number; class c has a tenth of the rows."""
    rng = np.random.default_rng(seed)
    true = rng.choice(3, rows, p=[0.5, 0.4, 0.1])
    cells = {f"f{j}": true + rng.normal(0, s, rows) for j, s in enumerate((2.0, 1.0, 0.5))}
    return pd.DataFrame(cells), np.array(["a", "b", "c"])[true]


def ran(**more):
    X, y = table()
    given = {"learners": {"gbrt": {"trees": 8}, "constant": {}}, "executor": "inline"}
    return bench_core.run(X=X, y=y, audit="off", **given | more)


def test_right_answers_are_stored_by_class(home):
    result = ran()
    store = Store(result.store)
    (use,) = store.info("last").datasets
    seen = 0
    for values in store.values("last", dataset=use.name, split="test"):
        y = open_prepared(from_cache(values.trial.data)).test.y.astype(int)
        assert use.test_classes == dict(zip("abc", np.bincount(y).tolist(), strict=True))
        for right, by_row in zip(values.right, values.metric, strict=True):
            assert right.tolist() == [by_row[y == k].sum() for k in range(3)]
            seen += 1
    assert seen > 2


def test_of_another_metric_no_right_answers_are_stored(home):
    store = Store(ran(metrics="log_loss").store)
    (use,) = store.info("last").datasets
    assert {one.right is None for one in store.values("last", dataset=use.name)} == {True}


@pytest.mark.parametrize(
    ("costs", "counted"),
    [
        (None, True),
        ({"f0": 1, "f1": 1, "f2": 1}, True),
        ({"f0": 0, "f1": 1, "f2": 2}, False),
        ({"f0": 1, "f1": 1, "f2": 1, "unit": "EUR"}, False),
    ],
)
def test_costs_are_numbers_of_features_where_each_costs_1(home, costs, counted):
    unit = (costs or {}).pop("unit", "") if costs else ""
    more = {"costs": costs} if costs else {}
    result = ran(**more, **({"unit": unit} if unit else {}))
    (use,) = Store(result.store).info("last").datasets
    assert use.counted is counted
