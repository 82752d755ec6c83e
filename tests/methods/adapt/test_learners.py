"""The four ADAPT learners: the paper's exact tests, odd data, promises, refused values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from bench_datasets.adapt_synthetic import AdaptSynthetic1, AdaptSynthetic2
from bench_methods.adapt import AdaptGBRT, AdaptL1, AdaptLin, AdaptLstsq
from bench_methods.gbrt import GBRT
from bench_methods.linear.svm import RBFSVM
from helpers.adapt_cases import cheapest, curve, fitted, noisy

from bench_core import Splits, Task
from bench_core.conformance.tasks import with_learners

SVM = RBFSVM(C=10.0, gamma=1.0)
SMALL = GBRT(trees=5)
QUICK = [
    AdaptGBRT(f0=SMALL, trees=4, iterations=2, gates=3),
    AdaptLin(f0=SMALL, supports=2, iterations=3, gates=1),
    AdaptLstsq(f0=SMALL, supports=2, iterations=2, gates=1),
    AdaptL1(f0=SMALL, supports=2, gates=2),
]


def learners(some: list[Any] = QUICK) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("learner", some, ids=lambda one: one.name)


def synthetic_2(seed: int) -> Splits:
    splits = AdaptSynthetic2().prepare(None, "quick", 0, seed)  # type: ignore[arg-type]
    return splits.complete(Task.BINARY)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("p_full", [0.4, 0.5, 0.6])
def test_adapt_lin_solves_synthetic_2_at_exactly_one_and_a_half(seed: int, p_full: float) -> None:
    model = fitted(AdaptLin(f0=SVM, p_full=p_full, gates=0), synthetic_2(seed))
    assert cheapest(model, synthetic_2(seed)) == (1.5, 1.0, 2.0)


@pytest.mark.parametrize("seed", range(5))
def test_adapt_l1_takes_the_other_feature_and_ends_at_one_and_three_quarters(seed: int) -> None:
    model = fitted(AdaptL1(f0=SVM), synthetic_2(seed))
    assert model.pairs[0].features == 1
    assert cheapest(model, synthetic_2(seed)) == (1.75, 1.0, 2.0)


def test_no_setting_of_algorithm_1_as_printed_gets_below_one_and_three_quarters() -> None:
    splits, found = synthetic_2(0), set()
    for tradeoff in (0.003, 0.03, 0.3):
        for p_full in (0.4, 0.6):
            learner = AdaptLin(f0=SVM, tradeoff=tradeoff, p_full=p_full, restart=False)
            found.add(cheapest(fitted(learner, splits), splits))
    assert min(found) == (1.75, 1.0, 2.0)


def test_on_synthetic_1_the_gate_learns_where_the_border_waves() -> None:
    """Sixty percent of the rows lie where no linear classifier is right."""
    splits = AdaptSynthetic1().prepare(None, "quick", 0, 0)  # type: ignore[arg-type]
    splits = splits.complete(Task.BINARY)
    f0 = RBFSVM(C=100.0, gamma=3.0)
    learner = AdaptLin(f0=f0, tradeoff=0.0, p_full=0.6, gates=0, restart=False, iterations=10)
    model = fitted(learner, splits)
    points, accuracy, _ = curve(model, splits.test, splits.prices)
    assert points[0]["sent"] == pytest.approx(0.6, abs=0.1)
    assert accuracy[0] > accuracy[-1] - 0.02
    gated = next(iter(model.predict_path(splits.test.features)))
    right = splits.test.X[:, 0] > -0.2
    own = list(model.f0.predict_path(splits.test.features))[-1].scores
    sent = gated.scores == own
    assert np.mean(sent[right]) > 0.75
    assert np.mean(sent[~right]) < 0.15


def test_one_fit_offers_each_set_of_features_at_its_gates_and_then_f0() -> None:
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
def test_paths_never_have_more_than_a_hundred_points(learner: Any) -> None:
    splits = noisy(150, 60)
    most = replace(learner, gates=40, **({"supports": 60} if hasattr(learner, "supports") else {}))
    points, _, _ = curve(fitted(most, splits), splits.test, splits.prices)
    assert len(points) <= 100


@pytest.mark.parametrize("tradeoff", [0.0, 0.3])
@pytest.mark.parametrize("kind", [AdaptGBRT, AdaptLin, AdaptLstsq])
def test_without_a_limit_the_price_of_f0_decides(kind: Any, tradeoff: float) -> None:
    splits = noisy(400)
    learner = kind(f0=GBRT(trees=20, l2=0.0), p_full=None, tradeoff=tradeoff, iterations=3, gates=0)
    model = fitted(learner, splits)
    shares = [share for pair in model.pairs for _, share in pair.gates]
    assert all(0 <= s <= 1 for s in shares)
    expensive = replace(learner, tradeoff=50.0)
    dear = [pair for pair in fitted(expensive, splits).pairs if pair.features < 4]
    sent = [s for pair in dear for _, s in pair.gates]  # after all four f0 is free
    assert max(sent) == 0  # nothing is worth its price


class Regressor(GBRT):
    """A learner of numbers only."""

    name: ClassVar[str] = "regressor"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.REGRESSION})


@learners()
def test_a_large_model_of_other_tasks_is_refused(learner: Any) -> None:
    with pytest.raises(ValueError, match="f0 = regressor does no binary or ranking tasks"):
        with_learners(replace(learner, f0=Regressor()))
