"""Certified stops: the p-value by hand, the guarantee in simulation, the point that is served."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import comb, e, log
from typing import ClassVar

import numpy as np
import pytest
from bench_methods.bayes_cmi import BayesCMI
from bench_methods.cegb import CEGB
from bench_methods.certified_stop import CertifiedStop, certified, p_value
from bench_methods.early_exit import Lear
from bench_methods.gbrt import GBRT

from bench_core import Task, UsageError
from bench_core.conformance import task_splits
from bench_core.conformance.tasks import fit

CHEAP = CEGB(trees=20, tradeoff=0.3, learning_rate=0.3)
SPLITS = cache(lambda task: task_splits(task, 600))


@pytest.mark.parametrize(
    ("wrong", "rows", "alpha"),
    [(0, 30, 0.1), (3, 100, 0.1), (5, 100, 0.1), (2, 500, 0.02), (90, 1000, 0.1), (12, 100, 0.1)],
)
def test_the_p_value_is_the_smaller_of_both_bounds(wrong, rows, alpha):
    risk = wrong / rows
    tail = sum(comb(rows, k) * alpha**k * (1 - alpha) ** (rows - k) for k in range(wrong + 1))
    hoeffding = 1.0
    if risk < alpha:
        first = risk * log(risk / alpha) if wrong else 0.0
        exponent = first + (1 - risk) * log((1 - risk) / (1 - alpha))
        hoeffding = e ** (-rows * exponent)
    assert p_value(risk, rows, alpha) == pytest.approx(min(hoeffding, e * tail))


def test_without_an_error_the_first_bound_is_the_chance_of_none():
    assert p_value(0.0, 20, 0.1) == pytest.approx(0.9**20)
    assert p_value(0.2, 20, 0.1) == 1.0


ROWS, ALPHA, DELTA, DRAWS = 200, 0.1, 0.1, 600
Rule = Callable[[np.ndarray], int]


def by_the_sequence(risks):
    return certified(risks, ROWS, ALPHA, DELTA)


def by_the_mean(risks):
    """Too loose: the last point whose error on these rows is allowed."""
    return int(np.flatnonzero(np.append(True, risks <= ALPHA))[-1])


def out_of_sequence(risks):
    """Too loose: the last point that any test certifies, those before it or not."""
    fine = [p_value(float(r), ROWS, ALPHA) <= DELTA for r in risks]
    return int(np.flatnonzero([True, *fine])[-1])


def share_of_breaches(rule, curve, *, alike):
    """How often the rule deploys a point whose true risk is above alpha. ``alike``: a row that one
    point gets wrong is wrong at all points of higher risk; else points are independent."""
    rng, breaches = np.random.default_rng(0), 0
    for _ in range(DRAWS):
        draw = rng.random((ROWS, 1 if alike else len(curve)))
        count = rule((draw < curve).mean(axis=0))
        breaches += count > 0 and bool(curve[count - 1] > ALPHA)
    return breaches / DRAWS


RISING = np.linspace(0.02, 0.25, 40)
JUST_ABOVE = np.concatenate([[0.03, 0.04], np.full(60, 0.101)])
# chance of the simulation itself, three standard errors
BAR = DELTA + 3 * np.sqrt(DELTA * (1 - DELTA) / DRAWS)


@pytest.mark.parametrize("curve", [RISING, JUST_ABOVE, np.full(5, 0.11)], ids=["a", "b", "c"])
@pytest.mark.parametrize("alike", [True, False])
def test_the_risk_is_above_alpha_in_at_most_a_share_delta_of_draws(curve, alike):
    assert share_of_breaches(by_the_sequence, curve, alike=alike) <= BAR


@pytest.mark.parametrize(("loose", "curve"), [(by_the_mean, RISING), (out_of_sequence, JUST_ABOVE)])
def test_looser_rules_break_the_promise(loose, curve):
    assert share_of_breaches(loose, curve, alike=False) > 2 * DELTA


def test_cheaper_points_are_reached_where_their_risk_is_low():
    counts = [
        by_the_sequence((np.random.default_rng(k).random((ROWS, 1)) < RISING).mean(axis=0))
        for k in range(50)
    ]
    # at 200 rows an error of 6% is certified, one of 9% hardly ever
    assert 0.04 < np.median(RISING[np.array(counts) - 1]) < 0.08


@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS], ids=str)
@pytest.mark.parametrize("base", [CHEAP, BayesCMI(points=12)], ids=lambda b: b.name)
def test_the_point_is_one_of_the_base_s_path_and_as_it_is_there(task, base):
    splits = SPLITS(task)
    model = fit(CertifiedStop(base=base, alpha=0.45), splits)
    alone = [*model.model.predict_path(splits.test.features)]
    (only,) = model.predict_path(splits.test.features)
    same = alone[model.place]
    assert only.point == same.point
    assert np.array_equal(only.scores, same.scores)
    assert np.array_equal(only.bills["path"].acquired.bits, same.bills["path"].acquired.bits)
    assert model.certified
    assert model.marks == ()
    if base is CHEAP:
        assert len(model.program(only.point).features) > 0


def test_more_allowed_error_costs_less():
    splits, costs = SPLITS(Task.BINARY), []
    for alpha in (0.2, 0.25, 0.3, 0.45):
        model = fit(CertifiedStop(base=CHEAP, alpha=alpha), splits)
        (only,) = model.predict_path(splits.test.features)
        bill, n = only.bills["path"], len(splits.test)
        paid = bill.feature_cost(splits.costs, n) + bill.evaluation_cost(splits.costs, n)
        costs.append(paid.mean())
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1]


def test_what_cannot_be_certified_is_marked():
    splits = SPLITS(Task.BINARY)
    model = fit(CertifiedStop(base=CHEAP, alpha=0.001), splits)
    assert model.marks == ("uncertified",)
    (only,) = model.predict_path(splits.test.features)
    alone = [*model.model.predict_path(splits.test.features)]
    n = len(splits.test)
    paid = [p.bills["path"].feature_cost(splits.costs, n).mean() for p in alone]
    assert paid[alone.index(alone[model.place])] > np.median(paid)
    assert only.point == alone[model.place].point


SEEN = []


@dataclass(frozen=True)
class Inner:
    """Trees that remember which validation rows they were shown."""

    name: ClassVar[str] = "inner"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY})

    def fit(self, train, valid, prices, context):
        SEEN.extend([valid, context.splits.valid])
        return GBRT(trees=5).fit(train, valid, prices, context)


@dataclass(frozen=True)
class Outer(Inner):
    """The same, on the fit of another learner."""

    def needs(self):
        return (Inner(),)

    def fit(self, train, valid, prices, context):
        SEEN.append(valid)
        assert context.fitted(Inner()) is context.fitted(Inner())
        return context.fitted(Inner())


def test_the_base_and_what_it_stands_on_never_see_the_rows_that_test():
    splits = SPLITS(Task.BINARY)
    SEEN.clear()
    fit(CertifiedStop(base=Outer(), alpha=0.4), splits)
    shown = {x.tobytes() for part in SEEN for x in part.X}
    assert len(SEEN) == 3
    assert len(shown) == len(splits.valid) // 2


def test_a_base_of_another_task_is_refused():
    with pytest.raises(UsageError, match=r"certified-stop: base 'lear' does no binary tasks"):
        fit(CertifiedStop(base=Lear(base=GBRT(trees=3))), SPLITS(Task.BINARY))
