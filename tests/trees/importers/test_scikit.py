"""scikit-learn's trees against its own predictions; thresholds in float32."""

import numpy as np
import pytest
from bench_trees.importers.imported import ModelError, at_most, below
from bench_trees.importers.scikit import from_scikit
from helpers.peer_models import assert_close, hard_rows, on_thresholds, raw_scores, signal
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

N, D = 400, 6
FEW = {"n_estimators": 8, "random_state": 0}


def rows_and_labels(missing=0.1):
    rng = np.random.default_rng(0)
    X = hard_rows(rng, N, D, missing)
    return X, signal(rng, X)


def probes(model, X):
    hard = on_thresholds(np.random.default_rng(9), model.ensemble, 300)
    return [X, hard] if np.isnan(X).any() else [X, np.nan_to_num(hard)]


NUMBERS = [
    (DecisionTreeRegressor(random_state=0), 0.1),
    (DecisionTreeRegressor(max_leaf_nodes=20), 0.1),  # grown best first
    (ExtraTreeRegressor(random_state=0), 0.1),
    (RandomForestRegressor(**FEW), 0.1),
    (ExtraTreesRegressor(**FEW), 0.1),
    (GradientBoostingRegressor(**FEW), 0.0),
    (GradientBoostingRegressor(loss="huber", init="zero", **FEW), 0.0),
    (HistGradientBoostingRegressor(max_iter=8), 0.1),
]
OF_CLASSES = [
    (DecisionTreeClassifier(max_depth=5, random_state=0), 0.1),
    (RandomForestClassifier(**FEW), 0.1),
    (RandomForestClassifier(class_weight="balanced", max_leaf_nodes=9, **FEW), 0.1),
    (ExtraTreesClassifier(max_depth=6, **FEW), 0.1),
    (GradientBoostingClassifier(**FEW), 0.0),
    (HistGradientBoostingClassifier(max_iter=8), 0.1),
]


@pytest.mark.parametrize(
    ("estimator", "missing", "classes"),
    [*((*one, 0) for one in NUMBERS), *((*one, k) for one in OF_CLASSES for k in (2, 3))],
    ids=str,
)
def test_raw_scores_are_those_of_scikit_learn(estimator, missing, classes):
    X, y = rows_and_labels(missing)
    estimator.fit(X, np.digitize(y, [0.5, 1.5][: classes - 1]) if classes else y)
    model, boosted = from_scikit(estimator, classes), hasattr(estimator, "decision_function")
    assert (model.kind == "regression") == (classes == 0)
    assert (model.link == "probability") == (classes > 0 and not boosted)
    theirs = estimator.decision_function if boosted else estimator.predict
    for rows in probes(model, X):
        if model.link == "probability":
            expected = estimator.predict_proba(rows)[:, 1 if classes == 2 else 0 :]
        else:
            expected = theirs(rows)
        assert_close(raw_scores(model, rows), expected, rtol=1e-9)


def test_a_split_at_nan_sends_what_is_there_to_the_right():
    """As old releases grow it, where two rows miss the feature."""
    X, y = rows_and_labels(0.1)
    estimator = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, y)
    state = estimator.tree_.__getstate__()
    state["nodes"]["threshold"][:2] = np.nan
    estimator.tree_.__setstate__(state)
    for rows in probes(model := from_scikit(estimator), X):
        assert_close(raw_scores(model, rows), estimator.predict(rows), rtol=1e-9)


def test_exponential_loss_gives_log_odds():
    X, y = rows_and_labels(0.0)
    estimator = GradientBoostingClassifier(loss="exponential", **FEW).fit(X, y > 1)
    odds = raw_scores(from_scikit(estimator), X)[:, 0]
    assert_close(1 / (1 + np.exp(-odds)), estimator.predict_proba(X)[:, 1], rtol=1e-9)


def test_classes_absent_from_training_get_no_share():
    X, y = rows_and_labels()
    labels = np.where(y > 1, 3, 1)
    model = from_scikit(RandomForestClassifier(**FEW).fit(X, labels), classes=5)
    assert model.outputs == 5
    assert not raw_scores(model, X)[:, [0, 2, 4]].any()


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LogisticRegression(), "not made of trees"),
        (GradientBoostingRegressor(init=DecisionTreeRegressor(), **FEW), "init"),
        (HistGradientBoostingRegressor(max_iter=3, categorical_features=[0]), "categorical"),
        (RandomForestRegressor(**FEW), "targets"),
    ],
    ids=str,
)
def test_what_cannot_be_imported_is_one_line(estimator, message):
    X, y = rows_and_labels(0.0)
    X[:, 0] = np.abs(X[:, 0])
    labels = y > 1 if isinstance(estimator, LogisticRegression) else y
    estimator.fit(X, np.c_[y, y] if message == "targets" else labels)
    with pytest.raises(ModelError, match=message):
        from_scikit(estimator)


SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
DOUBLE = st.floats(allow_nan=False)


@given(st.lists(st.tuples(SINGLE, DOUBLE), min_size=1))
def test_at_most_keeps_the_side_of_a_threshold_in_float64(pairs):
    x, limit = (np.array(values) for values in zip(*pairs, strict=True))
    single = x.astype(np.float32)
    near = np.nextafter(single, np.float32(0))
    for cells in (single, near):
        assert np.array_equal(cells.astype(np.float64) <= limit, cells <= at_most(limit))
    assert np.array_equal(at_most(single.astype(np.float64)), single)


@given(st.lists(st.tuples(SINGLE, SINGLE), min_size=1))
def test_below_makes_less_than_of_at_most(pairs):
    x, limit = (np.array(values, dtype=np.float32) for values in zip(*pairs, strict=True))
    assert np.array_equal(x < limit, x <= below(limit))
    assert not np.any(limit <= below(limit))
