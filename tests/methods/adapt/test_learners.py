"""The four ADAPT learners: the paper's exact tests, odd data, promises, refused values."""

from dataclasses import replace

import numpy as np
import pytest
from bench_datasets.adapt_synthetic import AdaptSynthetic1, AdaptSynthetic2
from bench_methods.adapt import AdaptGBRT, AdaptL1, AdaptLin, AdaptLstsq
from bench_methods.gbrt import GBRT
from bench_methods.linear.svm import RBFSVM
from bench_methods.services import BestSingle
from bench_models.large_model import GatedModel, LargeModel
from bench_models.staged import Point, Stage, StagedModel
from helpers.adapt_cases import QUICK, SMALL, Rule, cheapest, fitted, noisy
from helpers.boosted_cases import curve

from bench_core import DiscountGroup, Features, Task, price_list
from bench_core.conformance.cases import with_learners
from bench_core.execution.fitting import fit_in_process
from bench_core.metrics import parse_metric

SVM = RBFSVM(C=10.0, gamma=1.0)


def learners(some=QUICK):
    return pytest.mark.parametrize("learner", some, ids=lambda one: one.name)


def synthetic_2(seed):
    splits = AdaptSynthetic2().prepare(None, "quick", 0, seed)
    return splits.complete(Task.BINARY)


@learners([AdaptLin(f0=SMALL, tradeoff=0.1), AdaptLstsq(f0=SMALL, tradeoff=0.1)])
def test_pairs_of_other_settings_with_equal_features_change_no_model(learner):
    splits, kept = synthetic_2(0), {}
    facts = splits, parse_metric("accuracy"), 0, 1
    for other in (replace(learner, tradeoff=1e-3), replace(learner, p_full=0.2)):
        fit_in_process(other, *facts, kept)
    after, alone = (fit_in_process(learner, *facts, known) for known in (kept, {}))
    paths = [model.predict_path(splits.test.features) for model in (after, alone)]
    for a, b in zip(*paths, strict=True):
        assert a.point == b.point
        assert a.scores.tolist() == b.scores.tolist()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("p_full", [0.4, 0.5, 0.6])
def test_adapt_lin_solves_synthetic_2_at_exactly_one_and_a_half(seed, p_full):
    model = fitted(AdaptLin(f0=SVM, p_full=p_full, gates=0), synthetic_2(seed))
    assert cheapest(model, synthetic_2(seed)) == (1.5, 1.0, 2.0)


@pytest.mark.parametrize("seed", range(5))
def test_adapt_l1_takes_the_other_feature_and_ends_at_one_and_three_quarters(seed):
    model = fitted(AdaptL1(f0=SVM), synthetic_2(seed))
    assert features_of(model.gated[0]) == 1
    assert cheapest(model, synthetic_2(seed)) == (1.75, 1.0, 2.0)


def test_no_setting_of_algorithm_1_as_printed_gets_below_one_and_three_quarters():
    splits, found = synthetic_2(0), set()
    for tradeoff in (0.003, 0.03, 0.3):
        for p_full in (0.4, 0.6):
            learner = AdaptLin(f0=SVM, tradeoff=tradeoff, p_full=p_full, restart=False)
            found.add(cheapest(fitted(learner, splits), splits))
    assert min(found) == (1.75, 1.0, 2.0)


def test_on_synthetic_1_the_gate_learns_where_the_border_waves():
    """Sixty percent of the rows lie where no linear classifier is right."""
    splits = AdaptSynthetic1().prepare(None, "quick", 0, 0)
    splits = splits.complete(Task.BINARY)
    f0 = RBFSVM(C=100.0, gamma=3.0)
    learner = AdaptLin(f0=f0, tradeoff=0.0, p_full=0.6, gates=0, restart=False, iterations=10)
    model = fitted(learner, splits)
    points, accuracy, _ = curve(model, splits.test, splits.prices)
    assert points[0]["sent"] == pytest.approx(0.6, abs=0.1)
    assert accuracy[0] > accuracy[-1] - 0.02
    gated = next(iter(model.predict_path(splits.test.features)))
    right = splits.test.X[:, 0] > -0.2
    own = list(model.large.predict_path(splits.test.features))[-1].scores
    sent = gated.scores == own
    assert np.mean(sent[right]) > 0.75
    assert np.mean(sent[~right]) < 0.15


def test_one_fit_offers_each_set_of_features_at_its_gates_and_then_f0():
    splits = noisy(300)
    points, _, cost = curve(
        fitted(AdaptLin(f0=GBRT(trees=20), gates=2, p_full=0.5), splits), splits.test, splits.prices
    )
    assert points[-1] == {"features": 0, "sent": 1.0}
    assert [p["features"] for p in points[:-1]] == sorted(p["features"] for p in points[:-1])
    assert {p["features"] for p in points} <= {0, 1, 2, 3, 4}
    assert len(points) <= 4 * 3 + 1
    assert len({tuple(p.items()) for p in points}) == len(points)
    assert cost[0] < cost[-1]


@learners()
def test_paths_never_have_more_than_a_hundred_points(learner):
    splits = noisy(150, 60)
    most = replace(learner, gates=40, **({"supports": 60} if hasattr(learner, "supports") else {}))
    points, _, _ = curve(fitted(most, splits), splits.test, splits.prices)
    assert len(points) <= 100


@pytest.mark.parametrize("tradeoff", [0.0, 0.3])
@pytest.mark.parametrize("kind", [AdaptGBRT, AdaptLin, AdaptLstsq])
def test_without_a_limit_the_price_of_f0_decides(kind, tradeoff):
    splits = noisy(400)
    learner = kind(f0=GBRT(trees=20, l2=0.0), p_full=None, tradeoff=tradeoff, iterations=3, gates=0)
    model = fitted(learner, splits)
    shares = [share for pair in model.gated for _, share in pair.cuts[0]]
    assert all(0 <= s <= 1 for s in shares)
    expensive = replace(learner, tradeoff=50.0)
    dear = [pair for pair in fitted(expensive, splits).gated if features_of(pair) < 4]
    sent = [s for pair in dear for _, s in pair.cuts[0]]  # after all four f0 is free
    assert max(sent) == 0  # nothing is worth its price


@learners()
def test_a_large_model_of_other_tasks_is_refused(learner):
    with pytest.raises(ValueError, match="f0 = best-single does no binary or ranking tasks"):
        with_learners(replace(learner, f0=BestSingle()))


PRICES = price_list(
    np.array([1.0, 2.0, 4.0, 7.0, 6.0]),
    discounted=[DiscountGroup((3, 4), (5.0, 4.0))],
    split=0.5,
    tree=0.25,
)


def features_of(pair):
    return pair.model.points[0].values["features"]


def linear(weights):
    stage = Stage(np.array([*weights]), np.array([*weights.values()]), np.zeros(1))
    return StagedModel([stage], [Point(0, {"features": 2})], PRICES)


def model():
    """The gate reads feature 0, f1 features 0 and 3, f0 features 1 and 4."""
    large = Rule(np.array([0, 1.0, 0, 0, 1.0]), PRICES, splits=3.0, trees=2.0)
    cuts = [[(2.5, 0.25), (0.0, 0.5)]]
    pair = GatedModel(linear({0: 1.0, 3: 10.0}), linear({0: 1.0}), cuts)
    everything = {"features": 0, "sent": 1.0}
    return LargeModel("adapt", [pair], large, everything, PRICES, ungated="adapt-released")


X = np.array([[1, 5, 0, 0, 7], [3, 5, 0, 0, 8], [-1, 5, 0, 2, 9]], dtype=np.float32)


def test_a_row_pays_for_the_gate_and_for_the_model_that_answers():
    first, _, last = (p.bills["path"] for p in model().predict_path(Features(X)))
    # kept: feature 0 and, of the group, what is common (2) and its own 5; sent: 0, 1 and 2 + 4
    assert first.feature_cost(PRICES, 3).tolist() == [1 + 7, 1 + 2 + 6, 1 + 7]
    assert first.evaluation_cost(PRICES, 3).tolist() == [0, 3 * 0.5 + 2 * 0.25, 0]
    assert last.feature_cost(PRICES, 3).tolist() == [2 + 6] * 3
    assert last.evaluation_cost(PRICES, 3).tolist() == [2.0] * 3


def test_the_released_bill_charges_rows_that_are_sent_for_f0_alone():
    first, _, last = (p.bills["adapt-released"] for p in model().predict_path(Features(X)))
    assert first.feature_cost(PRICES, 3).tolist() == [8, 8, 8]
    assert first.evaluation_cost(PRICES, 3).tolist() == [0, 2, 0]
    assert last.feature_cost(PRICES, 3).tolist() == [8, 8, 8]
