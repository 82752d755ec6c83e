"""Right answers by class, and costs that are numbers of features, of a run's own table."""

import json

import numpy as np
import pandas as pd
import pytest

import bench_core
from bench_core._io.files import from_cache
from bench_core.datasets.cache import open_prepared
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.conclusion import conclusion
from bench_core.leaderboard.reports import paragraph
from bench_core.leaderboard.selection import Choice
from bench_core.results.budgets import Budget
from bench_core.results.store import Store


def table(rows=600, seed=0):
    """Three features that tell more the higher their number; class c has a tenth of the rows."""
    rng = np.random.default_rng(seed)
    true = rng.choice(3, rows, p=[0.5, 0.4, 0.1])
    cells = {f"f{j}": true + rng.normal(0, s, rows) for j, s in enumerate((2.0, 1.0, 0.5))}
    return pd.DataFrame(cells), np.array(["a", "b", "c"])[true]


def ran(rows=600, **more):
    X, y = table(rows)
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


def test_of_another_metric_right_answers_are_stored_too(home):
    store = Store(ran(metrics=["log_loss", "accuracy"]).store)
    (use,) = store.info("last").datasets
    frame = store.frame("last")
    of_test, seen = frame[frame["split"] == "test"], 0
    for values in store.values("last", dataset=use.name):
        own = of_test[of_test["trial"] == values.trial.short]
        accuracy = {
            json.dumps(json.loads(p)): of
            for p, of in zip(own["point"], own["accuracy"], strict=True)
        }
        for right, setting in zip(values.right, values.settings, strict=True):
            wanted = accuracy[json.dumps(dict(setting))] * use.rows["test"]
            assert right.sum() == pytest.approx(wanted)
            assert (right <= [*use.test_classes.values()]).all()
            seen += 1
    assert seen > 2


def right_by_class(store, dataset, row, pick):
    """Rows of each class that a model answers right, counted by row: the mean over seeds."""
    (setting,) = {(point, params) for point, params in pick.choices}
    point, params = map(json.loads, setting)
    counts = []
    for values in store.values("last", dataset=dataset, learner=row.learner):
        y = open_prepared(from_cache(values.trial.data)).test.y.astype(int)
        for by_row, at in zip(values.metric, values.settings, strict=True):
            if (dict(values.trial.params), dict(at)) == (params, point):
                counts.append([by_row[y == k].sum() for k in range(3)])
    return np.mean(counts, axis=0)


def test_a_board_counts_the_rows_of_a_class_that_two_models_find(home):
    cegb = {"trees": 30, "tradeoff": [0.01, 0.03, 0.1]}
    result = ran(4000, learners={"gbrt": {"trees": 30}, "cegb": cegb})
    store = Store(result.store)
    (board,) = boards(store.info("last"), store.frame("last"), store)
    row = board.named
    assert row.learner == "cegb"
    of_model = right_by_class(store, board.dataset, row, row.model)
    reference = board.reference_row
    of_reference = right_by_class(store, board.dataset, reference, reference.best)
    assert [(one.model, one.reference) for one in board.classes] == [
        *zip(of_model, of_reference, strict=True)
    ]
    assert [one.label for one in board.classes] == ["a", "b", "c"]
    assert sum(one.rows for one in board.classes) == board.tested


def test_the_constant_is_the_most_frequent_class(home):
    result = ran(seeds=[0, 1])
    store = Store(result.store)
    (board,) = boards(store.info("last"), store.frame("last"), store)
    assert board.constant_class == "a"
    assert board.constant.cost == 0
    shares = [use.test_classes["a"] / use.rows["test"] for use in store.info("last").datasets]
    assert board.constant.quality == pytest.approx(np.mean(shares))
    # as a store that does not know its classes
    (plain,) = boards(store.info("last"), store.frame("last"))
    assert plain.classes == ()


def test_under_a_cap_the_conclusion_names_what_best_names(home):
    result = ran(
        learners={"gbrt": {"trees": 8}, "miser": {"trees": 8, "tradeoff": [0.1, 3.0]}},
        caps=[1, 2],
    )
    store = Store(result.store)
    info, frame = store.info("last"), store.frame("last")
    caps = [Budget(amount, "cap") for amount in (1.0, 2.0)]
    (board,) = boards(info, frame, store, budgets={info.datasets[0].name: caps})
    lines = [line for line in conclusion(board) if line.startswith("With no row above")]
    assert len(lines) == 2
    for cap, line in zip(caps, lines, strict=True):
        best = Choice(info, store, frame, board.dataset).at(cap).found[0]
        words = f"{best.learner} is best on validation: accuracy {best.quality:.4f} on test"
        assert line == f"With no row above {cap.amount:g}, {words} at cost {best.cost:.2f}."


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
    store = Store(result.store)
    (use,) = store.info("last").datasets
    assert use.counted is counted
    (board,) = boards(store.info("last"), store.frame("last"), store)
    assert (board.unit, board.counted) == ("features" if counted else unit, counted)
    assert ("all of them cost 3" in board.facts) is not counted
    text = paragraph(store.info("last"), store.frame("last"))
    assert ("3 features, which cost 1 each." in text) is counted
