"""Choosing on validation and reporting on test, on frames small enough to check by eye."""

import numpy as np
import pandas as pd
import pytest
from helpers import example

from bench_core import UsageError
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget, Target
from bench_core.results.operating_points import Criterion, criterion, operating_points, over_repeats

HIGHER = {"ndcg@5": True, "mse": False}


def best_points(data, metric):
    return selection.best_points(operating_points(data, metric), HIGHER[metric])


def under_budget(data, metric, budget, cost="total_cost"):
    return selection.under_budget(operating_points(data, metric, cost), HIGHER[metric], budget)


def curve(data, metric, learner):
    points = operating_points(data, metric)
    return selection.curve(points[points["learner"] == learner], HIGHER[metric])


def mean_curve(data, metric, learner):
    return selection.mean_path(curve(data, metric, learner))[0]


def savings(data, metric, reference, share=0.99):
    points = operating_points(data, metric)
    return selection.savings(points, HIGHER[metric], reference, share)


def rows(learner, points, *, seed=0, fold=0, dataset="yahoo", metric="ndcg@5", **more):
    """Points given as (trees, cost, validation quality, test quality); test cost is 10 more."""
    out = []
    for trees, cost, valid, test in points:
        for split, quality, charged in (("valid", valid, cost), ("test", test, cost + 10)):
            row = {
                "suite": "s", "profile": "quick", "dataset": dataset, "accounting": "path",
                "fold": fold, "learner": learner, "params": '{"depth": 4}', "seed": seed,
                "point": f'{{"trees": {trees}}}', "split": split, "status": "ok",
                metric: quality, "feature_cost": charged - 1.0, "total_cost": float(charged),
                "cost_max": float(charged), "features_used": trees,
                "audit": "verified", "unit": "cost",
            }  # fmt: skip
            out.append(row | more)
    return out


def frame(*parts):
    return pd.DataFrame([row for part in parts for row in part])


CEGB = rows("cegb", [(1, 10, 0.5, 0.40), (2, 20, 0.7, 0.60), (3, 30, 0.6, 0.90)])
GBRT = rows("gbrt", [(1, 40, 0.60, 0.55), (2, 90, 0.705, 0.65)])


def test_a_budget_for_95_percent_of_rows_bounds_what_they_cost_on_validation():
    data = frame(
        rows("cegb", [(1, 10, 0.5, 0.4)], cost_p95=30.0),
        rows("cegb", [(2, 5, 0.7, 0.6)], cost_p95=90.0),
    )
    points = operating_points(data, "ndcg@5")
    for budget, quality in ((Budget(90, "p95"), 0.6), (Budget(89, "p95"), 0.4), (12, 0.6)):
        assert selection.under_budget(points, True, budget)["test_quality"].tolist() == [quality]
    assert selection.under_budget(points, True, Budget(29, "p95")).empty
    # what rows cost on test decides nothing
    data.loc[data["split"] == "test", "cost_p95"] = 1.0
    assert selection.under_budget(operating_points(data, "ndcg@5"), True, Budget(29, "p95")).empty


@pytest.mark.parametrize("audits", [("sampled", "verified"), ("verified", "sampled")])
def test_of_a_mixture_the_weaker_audit_stands(audits):
    cheap, dear = (
        rows(
            "cegb",
            [(k, 10 * k, 0.5 + k / 10, 0.5)],
            params=f'{{"depth": {k}}}',
            audit=audits[k - 1],
        )
        for k in (1, 2)
    )
    found = {b: under_budget(frame(cheap, dear), "ndcg@5", b)["audit"].tolist() for b in (15, 20)}
    assert found == {15: ["sampled"], 20: [audits[1]]}


CAPPED = [
    *rows("cegb", [(7, 5, 0.9, 0.85)], cap=6.0, cost_max=6.0),
    *rows("cegb", [(8, 9, 0.95, 0.86)], cap=20.0, cost_max=19.0),
    *rows("cegb", [(9, 4, 0.92, 0.83)], cap=6.0, cost_max=5.0, params='{"depth": 5}'),
]


def test_under_a_cap_the_best_of_what_was_measured_under_it_is_taken():
    data = frame(CEGB, GBRT, CAPPED)
    assert selection.caps_of(data) == [6.0, 20.0]
    found = selection.points_within(data, Criterion("ndcg@5", True), Budget(6, "cap"))
    assert found["test_quality"].tolist() == [0.83]  # of learners without figures there are none
    assert selection.points_within(data, Criterion("ndcg@5", True), Budget(7, "cap")).empty
    assert selection.caps_of(frame(CEGB)) == []


def test_points_at_which_no_row_costs_more_are_candidates_under_a_cap():
    def within(cap, *parts):
        return selection.points_within(frame(*parts), Criterion("ndcg@5", True), Budget(cap, "cap"))

    assert within(19, CEGB).empty  # the cheapest point costs 10, on test 20
    assert within(20, CEGB)["test_quality"].tolist() == [0.4]
    assert within(35, CEGB, CAPPED)["test_quality"].tolist() == [0.6]  # 35 was not measured
    assert within(20, CEGB, CAPPED)["test_quality"].tolist() == [0.86]
    cheap = rows("cegb", [(5, 2, 0.97, 0.5)])
    assert within(20, cheap, CAPPED)["test_quality"].tolist() == [0.5]


def test_what_was_measured_under_caps_changes_nothing_else():
    data, plain = frame(CEGB, GBRT, CAPPED), frame(CEGB, GBRT)
    for budget in (15, 25, 1e9):
        a, b = (under_budget(one, "ndcg@5", budget) for one in (data, plain))
        assert a["test_quality"].tolist() == b["test_quality"].tolist()
    assert len(operating_points(data, "ndcg@5")) == len(operating_points(plain, "ndcg@5"))
    assert len(curve(data, "ndcg@5", "cegb")) == len(curve(plain, "ndcg@5", "cegb"))
    saved = [savings(one, "ndcg@5", "gbrt")["saving"].tolist() for one in (data, plain)]
    assert saved[0] == saved[1]


def test_the_best_point_is_chosen_on_validation_and_reported_on_test():
    found = best_points(frame(CEGB, GBRT), "ndcg@5").set_index("learner")
    assert found.loc["cegb", "point"] == '{"trees": 2}'  # not trees 3, the best on test
    assert found.loc["cegb", ["valid_quality", "test_quality"]].tolist() == [0.7, 0.6]
    assert found.loc["cegb", ["valid_cost", "test_cost"]].tolist() == [20, 30]
    assert found.loc["gbrt", "test_quality"] == 0.65


def test_a_mean_budget_is_met_on_validation_by_mixing_two_points_for_all_learners_alike():
    found = under_budget(frame(CEGB, GBRT), "ndcg@5", 19.0)
    assert found["learner"].tolist() == ["cegb"]  # gbrt costs 40 at least
    assert found["point"].tolist() == ['{"trees": 2}']
    assert found["cheaper_point"].tolist() == ['{"trees": 1}']
    assert found["part"].tolist() == pytest.approx([0.1])
    shown = ["valid_quality", "valid_cost", "test_quality", "test_cost", "feature_cost"]
    assert found.loc[0, shown].tolist() == pytest.approx([0.68, 19, 0.58, 29, 28])
    assert found.loc[0, "features_used"] == 2  # the larger: no mean of numbers of features
    single = under_budget(frame(CEGB, GBRT), "ndcg@5", 10.0)
    assert single[["point", "part"]].to_numpy().tolist() == [['{"trees": 1}', 0.0]]


def test_without_mixtures_the_best_point_within_a_mean_budget_is_chosen():
    for budget, point in ((19.0, 1), (20.0, 2), (np.inf, 2)):
        points = operating_points(frame(CEGB), "ndcg@5")
        (found,) = selection.under_budget(points, True, budget, mixes=False).itertuples()
        assert (found.point, found.part) == (f'{{"trees": {point}}}', 0)
    assert selection.under_budget(points, True, 9.0, mixes=False).empty


def test_a_mixture_has_the_marks_of_both_models():
    cheap = rows("cegb", [(1, 10, 0.5, 0.4)], params="{}", marks="diverged, at edge")
    large = rows("cegb", [(2, 20, 0.7, 0.6)], marks="at edge, late")
    found = [under_budget(frame(cheap, large), "ndcg@5", budget) for budget in (19.0, 20.0, 10.0)]
    marks = [one["marks"].tolist() for one in found]
    assert marks == [["at edge, late, diverged"], ["at edge, late"], ["diverged, at edge"]]
    # a column from a store is categorical, and may lack the category ""
    kept = frame(cheap, large).assign(marks=lambda data: data["marks"].astype("category"))
    kept.loc[kept["marks"] == "at edge, late", "marks"] = None
    kept["marks"] = kept["marks"].cat.remove_unused_categories()
    assert under_budget(kept, "ndcg@5", 19.0)["marks"].tolist() == ["diverged, at edge"]


def test_a_budget_for_95_percent_of_rows_mixes_nothing():
    data = frame(rows("cegb", [(1, 10, 0.5, 0.4), (2, 20, 0.7, 0.6)]))
    data = data.assign(cost_p95=data["total_cost"])
    points = operating_points(data, "ndcg@5")
    found = selection.under_budget(points, True, Budget(19, "p95"))
    assert found[["point", "part"]].to_numpy().tolist() == [['{"trees": 1}', 0.0]]


def test_of_equals_the_cheapest_is_chosen():
    found = best_points(frame(rows("a", [(2, 20, 0.5, 0.1), (1, 10, 0.5, 0.2)])), "ndcg@5")
    assert found["point"].tolist() == ['{"trees": 1}']


def test_the_curve_is_the_validation_frontier_with_its_test_values():
    found = curve(frame(CEGB, GBRT), "ndcg@5", "cegb")
    assert found["valid_cost"].tolist() == [10, 20]
    assert found["test_quality"].tolist() == [0.4, 0.6]
    assert found["test_cost"].tolist() == [20, 30]


def test_each_seed_and_fold_chooses_for_itself_and_the_mean_is_over_all():
    other = [(1, 10, 0.9, 0.2), (2, 20, 0.7, 0.6)]
    data = frame(CEGB, rows("cegb", other, seed=1), rows("cegb", other, fold=1))
    found = best_points(data, "ndcg@5")
    assert len(found) == 3
    total = over_repeats(found).iloc[0]
    assert total["repeats"] == 3
    assert total["test_quality"] == pytest.approx(np.mean([0.6, 0.2, 0.2]))
    assert total["test_quality_std"] == pytest.approx(np.std([0.6, 0.2, 0.2], ddof=1))
    assert total["test_cost"] == pytest.approx(np.mean([30, 20, 20]))


def test_points_are_told_apart_by_parameters():
    deep = rows("cegb", [(2, 20, 0.8, 0.1)], params='{"depth": 9}')
    found = best_points(frame(CEGB, deep), "ndcg@5")
    assert found["params"].tolist() == ['{"depth": 9}']


def test_trials_that_failed_take_no_part():
    bad = rows("cegb", [(9, 5, 0.99, 0.99)], status="timeout")
    assert best_points(frame(CEGB, bad), "ndcg@5")["test_quality"].tolist() == [0.6]


def test_trials_that_failed_the_audit_take_no_part():
    bad = rows("cheat", [(9, 5, 0.99, 0.99)], audit="failed")
    data = frame(CEGB, bad)
    assert set(best_points(data, "ndcg@5")["learner"]) == {"cegb"}


def test_a_point_without_a_validation_value_is_not_chosen():
    data = frame(CEGB, rows("cegb", [(7, 5, np.nan, 0.99)]))
    assert best_points(data, "ndcg@5")["test_quality"].tolist() == [0.6]


def test_another_cost_column_may_be_held_to_the_budget():
    found = under_budget(frame(CEGB), "ndcg@5", 19.0, cost="feature_cost")
    assert found["point"].tolist() == ['{"trees": 2}']  # its feature cost is 19, its total 20
    assert found["part"].tolist() == [0.0]


def test_savings_compare_test_costs_of_just_99_percent_of_the_references_validation_quality():
    """.69795 lies between two points of each, whose costs are mixed;
    test costs are 10 above those of validation."""
    found = savings(frame(CEGB, GBRT), "ndcg@5", "gbrt").set_index("learner")
    assert found.loc["cegb", "target"] == pytest.approx(0.705 * 0.99)
    assert bool(found.loc["cegb", "reached"])
    assert found.loc["cegb", "test_cost"] == pytest.approx(30 - 10 * 0.00205 / 0.2)
    own, whole = 30 - 10 * 0.00205 / 0.2, 100 - 50 * 0.00705 / 0.105
    assert found.loc["cegb", "saving"] == pytest.approx(whole / own)
    assert found.loc["gbrt", "saving"] == 1
    assert found.loc["cegb", ["reference_quality", "reference_cost"]].tolist() == [0.65, 100]


def test_a_cheapest_point_pays_its_own_cost_for_a_quality_that_it_exceeds():
    found = savings(frame(CEGB, GBRT), "ndcg@5", "gbrt", share=0.7).set_index("learner")
    assert found.loc["cegb", "saving"] == 50 / 20


def test_what_costs_nothing_saves_without_end_in_every_repeat():
    free = [rows("cegb", [(1, -10, 0.8, 0.8)], seed=seed) for seed in (0, 1)]  # 0 on test
    whole = [rows("gbrt", [(1, 40, 0.8, 0.8)], seed=seed) for seed in (0, 1)]
    found = over_repeats(savings(frame(*free, *whole), "ndcg@5", "gbrt")).set_index("learner")
    assert found.loc["cegb", "saving"] == np.inf
    assert np.isnan(found.loc["cegb", "saving_std"])


def test_a_learner_that_never_reaches_the_target_saves_nan():
    weak = rows("weak", [(1, 1, 0.2, 0.99)])
    found = savings(frame(weak, GBRT), "ndcg@5", "gbrt").set_index("learner")
    assert not found.loc["weak", "reached"]
    assert np.isnan(found.loc["weak", "saving"])
    assert found.loc["weak", ["test_quality", "test_cost", "total_cost"]].isna().all()


@pytest.mark.parametrize(
    ("reference", "cost", "saving"),
    [(3, 0.5, 6.0), (0.5, 1, 0.5), (4, 0, np.inf), (0.5, 0, np.inf), (0, 0, 1.0), (0, 2, 0.0)],
)
def test_what_costs_nothing_saves_all_unless_the_reference_costs_nothing_too(
    reference, cost, saving
):
    """On test, where the data's rows cost 10 more than on validation."""
    data = frame(
        rows("gbrt", [(1, reference - 10, 0.7, 0.6)]), rows("cheap", [(1, cost - 10, 0.7, 0.6)])
    )
    found = savings(data, "ndcg@5", "gbrt").set_index("learner")
    assert found.loc["cheap", ["test_cost", "saving"]].tolist() == [cost, saving]
    assert found.loc["gbrt", "saving"] == 1


def test_savings_for_a_loss_allow_one_over_the_share():
    data = frame(
        rows("gbrt", [(1, 100, 0.99, 1.0)], metric="mse"),
        rows("near", [(1, 10, 1.0, 1.0)], metric="mse"),
        rows("far", [(1, 10, 1.01, 1.0)], metric="mse"),
    )
    found = savings(data, "mse", "gbrt").set_index("learner")
    assert found["reached"].to_dict() == {"far": False, "gbrt": True, "near": True}


def test_a_missing_reference_saves_nobody_anything():
    found = savings(frame(CEGB), "ndcg@5", "gbrt")
    assert found["reached"].tolist() == [False]
    assert np.isnan(found["saving"].iloc[0])


def test_nothing_is_measured_against_a_reference_that_diverged():
    broken = rows("gbrt", [(1, 40, 0.60, 0.55), (2, 90, 0.705, 0.65)], marks="diverged")
    found = savings(frame(rows("cegb", [(1, 10, 0.9, 0.9)], marks=""), broken), "ndcg@5", "gbrt")
    assert found["reached"].tolist() == [False, False]
    assert found["saving"].isna().all()


def test_of_a_model_trained_elsewhere_the_cost_of_all_its_trees_is_saved():
    given = rows("gbrt", [(1, 40, 0.60, 0.55), (2, 90, 0.705, 0.65)], marks="trained elsewhere")
    found = savings(frame(rows("cegb", [(2, 20, 0.7, 0.6)], marks=""), given), "ndcg@5", "gbrt")
    saving = found.set_index("learner")["saving"]
    assert saving["cegb"] == pytest.approx(100 / 30)
    assert saving["gbrt"] == pytest.approx(100 / (100 - 50 * 0.00705 / 0.105))


def test_of_several_fits_of_the_reference_those_that_did_not_diverge_are_measured_against():
    sound = rows("gbrt", [(2, 90, 0.705, 0.65)], params="{}", marks="")
    broken = rows("gbrt", [(1, 900, 0.99, 0.9)], params='{"l2": 0}', marks="at edge, diverged")
    cegb = rows("cegb", [(2, 20, 0.7, 0.60)], marks="diverged")
    found = savings(frame(cegb, sound, broken), "ndcg@5", "gbrt").set_index("learner")
    assert found.loc["cegb", "saving"] == pytest.approx(100 / 30)


def test_the_mean_saving_is_nan_unless_every_repeat_reached_the_target():
    data = frame(CEGB, GBRT, rows("cegb", [(1, 10, 0.1, 0.4)], seed=1), rows(
        "gbrt", [(2, 90, 0.705, 0.65)], seed=1
    ))  # fmt: skip
    total = over_repeats(savings(data, "ndcg@5", "gbrt")).set_index("learner")
    assert total.loc["cegb", ["reached", "repeats"]].tolist() == [1, 2]
    assert np.isnan(total.loc["cegb", "saving"])
    assert total.loc["gbrt", "saving"] == 1


def test_the_mean_curve_averages_what_each_repeat_can_afford():
    data = frame(
        rows("a", [(1, 10, 0.5, 0.1), (2, 20, 0.6, 0.3)]),
        rows("a", [(1, 15, 0.5, 0.2), (2, 30, 0.6, 0.5)], seed=1),
    )
    found = mean_curve(data, "ndcg@5", "a")
    assert found["budget"].tolist() == [15, 20, 30]
    # at 15 half of the first repeat's rows, at 20 two thirds of the second's at the cheaper point
    assert found["test_quality"].tolist() == pytest.approx([0.2, 0.3, 0.4])
    assert found["test_cost"].tolist() == pytest.approx([25, 30, 35])
    assert found["test_quality_std"].tolist() == pytest.approx([0, 0, np.std([0.3, 0.5], ddof=1)])
    steps, held = selection.mean_path(curve(data, "ndcg@5", "a"), mixes=False)
    assert steps["test_quality"].tolist() == pytest.approx([0.15, 0.25, 0.4])
    assert not held.part.any()


@pytest.mark.parametrize("select", [best_points, lambda f, m: under_budget(f, m, 5.0)])
def test_a_metric_that_was_not_measured_is_one_clear_line(select):
    with pytest.raises(UsageError, match=r"no column 'ndcg@7'; metrics: ndcg@5$"):
        select(frame(CEGB), "ndcg@7")


def test_the_direction_of_a_metric_is_that_of_its_run_and_upwards_where_it_has_none():
    assert criterion(example.info(), "mse") == Criterion("mse", False)
    assert criterion(example.info(), "accuracy") == Criterion("accuracy", True)
    assert criterion(example.info(), "unheard-of") == Criterion("unheard-of", True)


def test_nothing_finished_selects_nothing():
    data = frame(rows("a", [(1, 1, 0.5, 0.5)], status="failed"))
    assert len(best_points(data, "ndcg@5")) == 0
    assert len(over_repeats(best_points(data, "ndcg@5"))) == 0
    assert len(savings(data, "ndcg@5", "a")) == 0


def test_points_are_matched_in_whatever_order_the_rows_stand():
    data = frame(CEGB, GBRT)
    mixed = data.sample(frac=1, random_state=0, ignore_index=True)
    order = ["learner", "point"]
    found, plain = (operating_points(one, "ndcg@5").sort_values(order) for one in (mixed, data))
    assert mixed["split"].tolist() != data["split"].tolist()
    pd.testing.assert_frame_equal(found.reset_index(drop=True), plain.reset_index(drop=True))


@pytest.mark.parametrize("metric", ["ndcg@5", "mse"])
@pytest.mark.parametrize(("quality", "saves"), [(0.936, False), (0.94, False), (0.97, True)])
def test_no_saving_is_measured_where_the_constant_reaches_the_target(metric, quality, saves):
    higher = metric == "ndcg@5"  # 99% of .94 is .9306, of .97 .9603
    points = {"constant": (0, 0.936), "gbrt": (100, quality), "near": (10, quality)}
    data = frame(
        *(
            rows(
                name,
                [(1, cost, own if higher else 1 - own, 0.9)],
                metric=metric,
                point='{"constant": 1}' if name == "constant" else '{"trees": 1}',
            )
            for name, (cost, own) in points.items()
        )
    )
    if not higher and quality == 0.94:  # .0600 / .99 is less than .064
        saves = True
    found = savings(data, metric, "gbrt").set_index("learner")
    assert bool(found.loc["near", "reached"]) is saves
    assert np.isnan(found.loc["near", "saving"]) != saves
    assert np.isnan(found.loc["gbrt", "target"]) != saves
    # what features that are free reach is a saving
    free = data[data["learner"] != "constant"].assign(
        total_cost=lambda t: t["total_cost"].where(t["learner"] != "near", 0.0)
    )
    assert savings(free, metric, "gbrt").set_index("learner").loc["near", "reached"]


def test_over_repeats_the_reason_names_the_mean_of_the_best():
    points = pd.DataFrame(
        {"learner": "a", "fold": 0, "seed": [0, 0, 1], "valid_quality": [0.5, 0.7, 0.8]}
    )
    said = selection.why_not_reached(
        points, Criterion("accuracy", True), Target(0.9, "quality"), "", "a"
    )
    assert said.endswith("in every repeat (0.75 is the mean of the best)")
