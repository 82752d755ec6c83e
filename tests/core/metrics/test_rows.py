"""Classification, regression and cost by hand; how metrics are spelt."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.kit import refused
from hypothesis import given
from hypothesis import strategies as st

from bench_core import Task, UsageError
from bench_core.costs.bill import mean_cost
from bench_core.costs.error_costs import ErrorCosts
from bench_core.metrics import Labels, default_metric, evaluate, families, parse_metric
from bench_core.planning.shipped import bench_metrics

WITHOUT = (
    *("accuracy", "balanced_accuracy", "log_loss", "auc", "mse", "mae", "r2"),
    *("score", "regret"),
)


def judge(name, scores, y, multiplicity=None):
    m = None if multiplicity is None else np.array(multiplicity)
    return parse_metric(name).values(np.array(scores, float), np.array(y, float), None, m)


@pytest.mark.parametrize(
    ("name", "scores", "y", "values"),
    [
        ("accuracy", [0, 0, 1e-300, -1e-300], [0, 1, 1, 0], [1, 0, 1, 1]),
        ("accuracy", [[1, 1, 0], [0, 1, 1]], [0, 2], [1, 0]),  # of equal scores the lowest class
        ("log_loss", [1e4, -1e4], [0, 0], [1e4, 0]),
        ("log_loss", [[1e4, 0.0]], [1], [1e4]),
        ("log_loss", [np.inf, -np.inf, np.inf], [1, 0, 0], [0, 0, np.inf]),
        # shares of the other class in the right order: 1, .75, .75, 1; the area is .875, and twice
        # what differs from it is added
        ("auc", [3, 1, 1, 0], [1, 1, 0, 0], [1.125, 0.625, 0.625, 1.125]),
    ],
)
def test_values_by_hand(name, scores, y, values):
    assert judge(name, scores, y).values.tolist() == values


def area_by_pairs(odds, y, m, classes):
    """Mean over classes of the share of pairs (inside, outside) in the right order, ties half."""
    found = []
    for c in classes:
        column, inside = (odds if odds.ndim == 1 else odds[:, c]), y == c
        gap = column[inside][:, None] - column[~inside]
        pairs = m[inside][:, None] * m[~inside]
        found.append((pairs * ((gap > 0) + (gap == 0) / 2)).sum() / pairs.sum())
    return np.mean(found)


@pytest.mark.parametrize("classes", [2, 3])
def test_auc_moves_with_one_more_copy_of_any_row_as_its_values_say(classes):
    rng = np.random.default_rng(classes)
    y, m = rng.permutation([0, 0, 0, 0, 1, 1, 1, *[classes - 1] * 5]), rng.integers(1, 4, 12) * 1000
    scores = np.round(rng.normal(size=12 if classes == 2 else (12, 3)), 1)
    odds, judged = scores, [1]
    if classes == 3:
        chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        odds, judged = np.round(np.log(chance / (1 - chance)), 9), [0, 1, 2]
    found, before = judge("auc", scores, y, m), area_by_pairs(odds, y, m, judged)
    assert found.mean == pytest.approx(before, abs=1e-12)
    share = found.weights / found.weights.sum() / m  # of one copy
    moved = [area_by_pairs(odds, y, m + row, judged) - before for row in np.eye(12)]
    assert share * (found.values - before) == pytest.approx(moved, rel=1e-2, abs=1e-9)
    assert (found.weights > 0).all()  # rows of every class are drawn


@pytest.mark.parametrize("y", [[1, 1], [0, 0]])
def test_auc_of_one_class_is_nan(y):
    found = judge("auc", [1, 2], y)
    assert np.isnan(found.mean)
    assert found.values.tolist() == found.weights.tolist() == [0, 0]


def test_multiclass_auc_tells_apart_saturated_probabilities():
    scores = [[60, 0], [50, 0], [55, 0]]  # softmax of each rounds to 1
    assert judge("auc", scores, [0, 1, 0]).mean == pytest.approx(1)


def test_r2_of_equal_labels_is_nan():
    assert np.isnan(judge("r2", [1, 2], [3, 3]).mean)


@pytest.mark.parametrize(("name", "scores"), [("accuracy", [1, 1]), ("auc", [[0, 1], [1, 0]])])
@pytest.mark.parametrize("bad", [2, -1, 0.5])
def test_a_label_that_is_no_class_number_is_refused(name, scores, bad):
    refused("row 1|class numbers 0..1", judge, name, scores, [0, bad])


@pytest.mark.parametrize("name", WITHOUT)
def test_a_nan_score_is_refused_by_every_row_metric(name):
    refused(f"{name}: the score of row 1 ", judge, name, [0, np.nan, np.nan], [0, 1, 1])


costs = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 12)), min_size=1, max_size=12)


@given(costs)
def test_a_mean_cost_equals_that_of_physical_copies(rows):
    cost, m = (np.array(column) for column in zip(*rows, strict=True))
    physical = np.repeat(cost, m).astype(float)
    assert mean_cost(cost.astype(float), m) == pytest.approx(physical.mean(), abs=1e-12)


def test_no_rows_have_no_cost():
    refused("no cost", mean_cost, np.zeros(0), error=ValueError)


WITH_CUT_OFF = ("ndcg", "precision", "ap", "leading_run_precision", "err", "mrr")


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("ndcg@5(ties=expected)", "ndcg@5"),
        ("ndcg@5(ties=stable,empty=skip)", "ndcg@5(empty=skip,ties=stable)"),
        ("  ndcg@5( ties = stable , empty=0 )", "ndcg@5(ties=stable)"),
        ("ndcg@05", "ndcg@5"),
        ("ndcg()", "ndcg"),
        ("precision@5(relevant=3)", "precision@5(relevant=3)"),
        ("precision@5(relevant=3.0)", "precision@5(relevant=3)"),
        ("precision@5(relevant=1)", "precision@5"),
        ("ap@10(relevant=0.1)", "ap@10(relevant=0.1)"),
        ("mrr(empty=1)", "mrr(empty=1)"),
        ("err@5(top=2)", "err@5(top=2)"),
        ("ndcg@5(gain=linear)", "ndcg@5(gain=linear)"),
        *((name, name) for name in ("ndcg", "ap", "err", "mrr", *WITHOUT)),
        *((f"{family}@1000", f"{family}@1000") for family in WITH_CUT_OFF),
    ],
)
def test_there_is_one_canonical_spelling(written, canonical):
    metric = parse_metric(written)
    assert metric.name == canonical
    assert parse_metric(canonical) == metric
    assert hash(parse_metric(canonical)) == hash(metric)


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("", "write it as"),
        ("ndcg@5(", "write it as"),
        ("ndcg@5 @6", "write it as"),
        ("ncdg@5", "did you mean ndcg"),
        ("ndcg@", "write it as"),
        ("ndcg@0", "whole number from 1"),
        ("ndcg@-1", "whole number from 1"),
        ("ndcg@five", "whole number from 1"),
        ("ndcg@1.5", "whole number from 1"),
        pytest.param("ndcg@" + "9" * 5000, "whole number from 1", id="ndcg@999..."),
        ("precision", "needs a cut-off, such as precision@5"),
        ("leading_run_precision", "needs a cut-off"),
        ("accuracy@5", "accuracy has no cut-off"),
        ("ndcg@5(tie=stable)", "write 'tie=stable' as option=value"),
        ("ndcg@5(tie=stable)", "known: empty, gain, ties"),
        ("accuracy(ties=stable)", "known: none"),
        ("ndcg@5(k=3)", "'k=3'"),
        ("ndcg@5(ties=random)", "ties=random must be expected or stable"),
        ("ndcg@5(ties=stable,ties=stable)", "each option once"),
        ("ndcg@5(ties)", "write 'ties' as option=value"),
        ("ndcg@5(ties=stable,)", "write '' as option=value"),
        ("precision@5(relevant=many)", "relevant=many could not convert"),
        ("precision@5(relevant=0)", "must be a number above 0"),
        ("precision@5(relevant=nan)", "must be a number above 0"),
        ("precision@5(relevant=inf)", "must be a number above 0"),
    ],
)
def test_a_wrong_spelling_is_one_clear_line(written, told):
    with pytest.raises(UsageError) as error:
        parse_metric(written)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@given(st.text(max_size=30) | st.from_regex(r"ndcg(@[0-9a-z.]+)?(\([a-z=,0-9]*\))?"))
def test_arbitrary_text_is_a_metric_or_one_line(text):
    try:
        told = parse_metric(text).name
    except UsageError as error:
        told = str(error)
    assert len(told.splitlines()) == 1


def test_lower_is_better_for_losses_alone():
    losses = {"log_loss", "mse", "mae", "regret"}
    assert {m.name for m in bench_metrics() if not m.higher_is_better} == losses


def test_the_plugin_registers_cut_offs_5_and_10_and_no_name_twice():
    names = [m.name for m in bench_metrics()]
    assert len(set(names)) == len(names)
    for family in WITH_CUT_OFF:
        assert {f"{family}@5", f"{family}@10"} <= set(names)
    assert set(WITHOUT) <= set(names)
    assert set(families()) == {*WITH_CUT_OFF, *WITHOUT, "total_cost"}


def test_a_total_cost_is_that_of_purchases_and_of_the_answer_of_least_cost():
    errors = ErrorCosts(np.array([[0.0, 1.0], [9.0, 0.0]]), np.full((2, 2), -1))
    y, copies = np.array([0.0, 1, 1, 0]), np.array([1, 2, 1, 4])
    # answers above a probability of .1: 1, 0, 1, 0
    scores = np.log(np.array([0.2, 0.09, 0.9, 0.05])) - np.log1p(-np.array([0.2, 0.09, 0.9, 0.05]))
    labels = Labels(y, None, copies, errors)
    metric = parse_metric("total_cost")
    spent = np.array([5.0, 0.0, 2.0, 1.0])
    values = evaluate([metric], scores, labels, spent)["total_cost"]
    assert values.values.tolist() == [5 + 1, 0 + 9, 2 + 0, 1 + 0]
    assert values.mean == (6 + 2 * 9 + 2 + 4 * 1) / 8
    refused("needs costs of errors: error_costs='500'", metric.values, scores, y)


@pytest.mark.parametrize(
    ("task", "name"),
    [("ranking", "ndcg@5"), ("regression", "mse"), ("binary", "accuracy"),
     ("multiclass", "accuracy"), ("choice", "score")],
)  # fmt: skip
def test_every_task_has_a_default_metric_that_suits_it(task, name):
    metric = default_metric(Task(task))
    assert metric.name == name
    assert task in metric.tasks


def test_a_registered_metric_is_found_by_its_name_before_the_built_in_ones():
    mine, other = object(), object()
    registered = {"mine@3": mine, "mse": other}
    assert parse_metric("mine@3", registered) is mine
    assert parse_metric("mse", registered) is other
    assert parse_metric("auc", registered) == parse_metric("auc")


def test_parsing_metrics_loads_no_heavy_library():
    code = (
        "import sys; from bench_core.planning.shipped import bench_metrics; bench_metrics();"
        "print(sorted({'numba', 'scipy', 'pandas', 'sklearn'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
