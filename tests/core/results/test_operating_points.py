"""Choosing on validation and reporting on test, on frames small enough to check by eye."""

import numpy as np
import pandas as pd
import pytest
from helpers import example
from helpers.kit import refused
from helpers.points import frame, rows

from bench_core.results import operating_points as selection
from bench_core.results.operating_points import Criterion, criterion, operating_points

HIGHER = {"ndcg@5": True, "mse": False}


def best_points(data, metric):
    return selection.best_points(operating_points(data, metric), HIGHER[metric])


def under_budget(data, metric, budget, cost="cost"):
    return selection.best_points(operating_points(data, metric, cost), HIGHER[metric], budget)


CEGB = rows("cegb", [(1, 10, 0.5, 0.40), (2, 20, 0.7, 0.60), (3, 30, 0.6, 0.90)])
GBRT = rows("gbrt", [(1, 40, 0.60, 0.55), (2, 90, 0.705, 0.65)])


CAPPED = [
    *rows("cegb", [(7, 5, 0.9, 0.85)], cap=6.0, cost_max=6.0),
    *rows("cegb", [(8, 9, 0.95, 0.86)], cap=20.0, cost_max=19.0),
    *rows("cegb", [(9, 4, 0.92, 0.83)], cap=6.0, cost_max=5.0, params='{"depth": 5}'),
]


def within_cap(cap, *parts):
    points = operating_points(frame(*parts), "ndcg@5", cap=cap)
    return selection.best_points(points, True)


def test_under_a_cap_the_best_of_what_was_measured_under_it_is_taken():
    assert selection.caps_of(frame(CEGB, GBRT, CAPPED)) == [6.0, 20.0]
    found = within_cap(6.0, CEGB, GBRT, CAPPED)
    assert found["test_quality"].tolist() == [0.83]  # of learners without figures there are none
    assert within_cap(7.0, CEGB, GBRT, CAPPED).empty
    assert selection.caps_of(frame(CEGB)) == []


def test_points_at_which_no_row_costs_more_are_candidates_under_a_cap():
    assert within_cap(19, CEGB).empty  # the cheapest point costs 10, on test 20
    assert within_cap(20, CEGB)["test_quality"].tolist() == [0.4]
    assert within_cap(35, CEGB, CAPPED)["test_quality"].tolist() == [0.6]  # 35 was not measured
    assert within_cap(20, CEGB, CAPPED)["test_quality"].tolist() == [0.86]
    cheap = rows("cegb", [(5, 2, 0.97, 0.5)])
    assert within_cap(20, cheap, CAPPED)["test_quality"].tolist() == [0.5]


def test_what_was_measured_under_caps_changes_nothing_else():
    data, plain = frame(CEGB, GBRT, CAPPED), frame(CEGB, GBRT)
    for budget in (15, 25, 1e9):
        a, b = (under_budget(one, "ndcg@5", budget) for one in (data, plain))
        assert a["test_quality"].tolist() == b["test_quality"].tolist()
    assert len(operating_points(data, "ndcg@5")) == len(operating_points(plain, "ndcg@5"))


def test_within_a_mean_budget_the_best_single_point_is_chosen():
    for budget, trees in ((19.0, 1), (20.0, 2), (np.inf, 2)):
        found = under_budget(frame(CEGB, GBRT), "ndcg@5", budget).set_index("learner")
        assert found.loc["cegb", "point"] == f'{{"trees": {trees}}}'
        assert ("gbrt" in found.index) == (budget > 40)
    assert under_budget(frame(CEGB), "ndcg@5", 9.0).empty


def test_the_best_point_is_chosen_on_validation_and_reported_on_test():
    found = best_points(frame(CEGB, GBRT), "ndcg@5").set_index("learner")
    assert found.loc["cegb", "point"] == '{"trees": 2}'  # not trees 3, the best on test
    assert found.loc["cegb", ["valid_quality", "test_quality"]].tolist() == [0.7, 0.6]
    assert found.loc["cegb", ["valid_cost", "test_cost"]].tolist() == [20, 30]
    assert found.loc["gbrt", "test_quality"] == 0.65


def test_of_equals_the_cheapest_is_chosen():
    found = best_points(frame(rows("a", [(2, 20, 0.5, 0.1), (1, 10, 0.5, 0.2)])), "ndcg@5")
    assert found["point"].tolist() == ['{"trees": 1}']


def test_each_seed_and_fold_chooses_for_itself():
    other = [(1, 10, 0.9, 0.2), (2, 20, 0.7, 0.6)]
    data = frame(CEGB, rows("cegb", other, seed=1), rows("cegb", other, fold=1))
    found = best_points(data, "ndcg@5")
    chosen = found.set_index(["fold", "seed"])["test_quality"].to_dict()
    assert chosen == {(0, 0): 0.6, (0, 1): 0.2, (1, 0): 0.2}


def test_points_are_told_apart_by_parameters():
    deep = rows("cegb", [(2, 20, 0.8, 0.1)], params='{"depth": 9}')
    found = best_points(frame(CEGB, deep), "ndcg@5")
    assert found["params"].tolist() == ['{"depth": 9}']


@pytest.mark.parametrize(
    ("valid", "status"), [(0.99, "timeout"), (np.nan, "ok")], ids=["failed", "no validation"]
)
def test_what_failed_or_has_no_validation_value_is_not_chosen(valid, status):
    bad = rows("cegb", [(9, 5, valid, 0.99)], status=status)
    assert best_points(frame(CEGB, bad), "ndcg@5")["test_quality"].tolist() == [0.6]


def test_another_cost_column_may_be_held_to_the_budget():
    found = under_budget(frame(CEGB), "ndcg@5", 19.0, cost="feature_cost")
    assert found["point"].tolist() == ['{"trees": 2}']  # its feature cost is 19, its total 20


@pytest.mark.parametrize("select", [best_points, lambda f, m: under_budget(f, m, 5.0)])
def test_a_metric_that_was_not_measured_is_one_clear_line(select):
    refused("no column 'ndcg@7'; metrics: ndcg@5", select, frame(CEGB), "ndcg@7")


def test_constants_and_marks_are_found_in_the_rows():
    constant = rows("a", [(0, 0, 0.5, 0.5)], point='{"constant": 1}', marks="at edge, diverged")
    points = operating_points(frame(constant, rows("b", [(1, 5, 0.6, 0.6)], marks="")), "ndcg@5")
    assert selection.constants(points).tolist() == [True, False]
    assert selection.marked(points).tolist() == [True, False]
    assert selection.marked(points, "at edge").tolist() == [True, False]
    assert selection.marked(points, "edge").tolist() == [False, False]
    assert not selection.marked(points.drop(columns="marks")).any()


def test_the_direction_of_a_metric_is_that_of_its_run_and_upwards_where_it_has_none():
    assert criterion(example.info(), "mse") == Criterion("mse", False)
    assert criterion(example.info(), "accuracy") == Criterion("accuracy", True)
    assert criterion(example.info(), "unheard-of") == Criterion("unheard-of", True)


def test_nothing_finished_selects_nothing():
    data = frame(rows("a", [(1, 1, 0.5, 0.5)], status="failed"))
    assert len(best_points(data, "ndcg@5")) == 0


def test_points_are_matched_in_whatever_order_the_rows_stand():
    data = frame(CEGB, GBRT)
    mixed = data.sample(frac=1, random_state=0, ignore_index=True)
    order = ["learner", "point"]
    found, plain = (operating_points(one, "ndcg@5").sort_values(order) for one in (mixed, data))
    assert mixed["split"].tolist() != data["split"].tolist()
    pd.testing.assert_frame_equal(found.reset_index(drop=True), plain.reset_index(drop=True))
