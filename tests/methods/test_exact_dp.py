"""The exact optimum against every policy there is, and the policy that plays it."""

import numpy as np
import pytest
from bench_datasets.acquisition.bayes_net import BINARY, CLASSES, BayesNet, BayesNetClasses
from bench_methods.exact_dp import ExactDP, bins, estimated, known
from helpers.fakes import FakeContext
from helpers.policy_enumeration import Problem, best_mixture

from bench_core import Examples, Features, Prices, Splits, Task, price_list
from bench_core.optimum import optimum_of

BLOCKS = [range(12), pytest.param(range(12, 64), marks=pytest.mark.slow)]


def model_of(problem):
    """Learned from the truth; the rows say nothing."""
    none = Examples(np.zeros((1, problem.table.ndim - 1), np.float32), np.zeros(1))
    task = Task.BINARY if problem.table.shape[-1] == 2 else Task.MULTICLASS
    truth = {"table": problem.table}
    splits = Splits(none, none, none, problem.prices, task, problem.table.shape[-1], truth=truth)
    context = FakeContext(task, splits.classes, splits=splits)
    return ExactDP().fit(none, none, problem.prices, context)


def played(problem, prediction, mass):
    """Mean cost, highest cost and accuracy of a prediction for all cells, by their ``mass``."""
    cost = prediction.bills["path"].feature_cost(problem.prices, len(mass))
    scores = prediction.scores
    label = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    own = mass.sum(axis=1)
    return own @ cost, cost[own > 0].max(), mass[np.arange(len(mass)), label].sum()


@pytest.mark.parametrize("numbers", BLOCKS, ids=str)
def test_it_is_the_best_of_all_policies(numbers):
    for number in numbers:
        problem = Problem(number)
        cost, worst, quality = problem.policies()
        rng = np.random.default_rng(number)
        budgets = [0.0, *rng.uniform(0, cost.max(), 4), cost.max()]
        caps = [*rng.uniform(0.1, worst.max() + 0.1, 3), float(rng.choice(worst)) or 1.0]
        stated = optimum_of({"table": problem.table}, problem.prices, caps)
        corners = np.array(stated["accuracy"])
        for budget in budgets:
            most = best_mixture(cost, quality, budget)
            assert np.interp(budget, *corners.T) == pytest.approx(most, abs=1e-8), number
        for cap, most in stated["accuracy cap"]:
            within = quality[worst <= cap * (1 + 1e-9)].max()
            assert most == pytest.approx(within, abs=1e-9), number

        model, rows = model_of(problem), problem.rows()
        cells = Features(np.array([x for x, _ in rows], dtype=np.float32))
        mass = np.array([p for _, p in rows])
        points = [played(problem, p, mass) for p in model.predict_path(cells)]
        for point, corner in zip(points, corners, strict=True):
            assert (point[0], point[2]) == pytest.approx(tuple(corner), abs=1e-9), number
        for cap, most in stated["accuracy cap"]:
            point = played(problem, model.predict_capped(cells, cap, problem.prices), mass)
            assert point[1] <= cap * (1 + 1e-9)
            assert point[2] == pytest.approx(most, abs=1e-9), number


def test_it_says_that_it_was_told():
    assert model_of(Problem(0)).marks == ("knows the distribution",)


@pytest.mark.parametrize(
    ("problem", "cap", "accuracy"),
    [
        ("naive-4", 1, 0.9),  # the best feature
        ("gate-2x3", 1, 0.7),  # of two groups of features that are wrong once in ten
        ("gate-2x3", 2, 0.9),  # the gate, which tells nothing, then the first of one
        ("parity-3", 2, 0.6),  # two of three parts tell nothing, a decoy is wrong in .4
        ("parity-3", 3, 0.95),
        ("gates-nested", 4, 0.95),  # two gates and a feature of price 2
        ("chain-6", 6, 0.9),  # the feature next to the class
        ("decoys-6", 6, 0.95),
        ("trap-4", 1, 0.8),
        ("trap-4", 2, 0.98),
        ("cancelled-3", 3, 0.9),  # a signal and its noise
        ("gate-4x2", 1, 0.6),  # unconditionally right in .9 / 4 + .5 * 3 / 4
    ],
)
def test_what_can_be_had_by_hand(problem, cap, accuracy):
    splits = BayesNet(problem=problem).prepare(None, "quick", 0, 0)
    stated = optimum_of(splits.truth, splits.prices, [cap])
    assert stated["accuracy cap"] == pytest.approx(np.array([(cap, accuracy)]))


def test_there_are_thirty_problems_and_rows_are_drawn_from_their_tables():
    assert len(BINARY | CLASSES) == 30
    for name in BINARY | CLASSES:
        kind = BayesNet if name in BINARY else BayesNetClasses
        splits = kind(problem=name).prepare(None, "standard", 0, 0)
        table, train = splits.truth["table"], splits.train
        d = table.ndim - 1
        assert table.sum() == pytest.approx(1)
        assert d == splits.prices.features <= 12
        assert (splits.prices.sensor == splits.prices.sensor.round()).all()
        for j in range(d):  # with the class, and with the feature beside it
            pair = np.zeros((table.shape[j], table.shape[-1]))
            np.add.at(pair, (train.X[:, j].astype(int), train.y.astype(int)), 1 / len(train.y))
            others = tuple(axis for axis in range(d) if axis != j)
            assert pair == pytest.approx(table.sum(axis=others), abs=0.025)
            if j:
                pair = np.zeros(table.shape[j - 1 : j + 1])
                beside = train.X[:, j - 1].astype(int), train.X[:, j].astype(int)
                np.add.at(pair, beside, 1 / len(train.y))
                others = tuple(axis for axis in range(d + 1) if axis not in (j - 1, j))
                assert pair == pytest.approx(table.sum(axis=others), abs=0.025)


def test_an_unknown_problem_is_refused():
    with pytest.raises(ValueError, match="problem must be one of naive-4, "):
        BayesNet(problem="gate")


def test_an_estimate_of_many_rows_is_the_truth():
    splits = BayesNet(problem="gate-2x3").prepare(None, "standard", 0, 0)
    told = known(splits.truth["table"], splits.prices)
    assert told is not None
    learned = estimated(splits.train, splits.prices, 2, 3, 10.0)
    assert not learned.told
    assert learned.table.shape == told.table.shape
    assert np.abs(learned.table - told.table).sum() < 0.15
    assert learned.states.solve(cap=2).quality == pytest.approx(0.9, abs=0.02)


def test_bins_stand_between_few_values_and_at_weighted_quantiles_of_many():
    x = np.array([1, 1, 4, 2, np.nan], dtype=np.float32)
    assert bins(x, np.ones(5), 3).tolist() == [1.5, 3.0, np.inf]  # missing cells above it
    x = np.arange(100, dtype=np.float32)
    assert bins(x, np.ones(100), 4).tolist() == [24.5, 49.5, 74.5]
    heavy = np.where(x < 10, 9.0, 1.0)  # the first ten are half of all
    assert bins(x, heavy, 2).tolist() == [9.5]
    assert bins(np.full(3, 7, dtype=np.float32), np.ones(3), 3).tolist() == []


def test_where_a_feature_needs_several_purchases_nothing_is_stated():
    """The third feature is derived from the first two."""
    prices = price_list(np.array([1.0, 1.0, 0.0]), derived={2: [0, 1]})
    truth = {"table": np.full((2, 2, 2, 2), 1 / 16)}
    assert optimum_of(truth, prices, [1.0]) == {}
    assert known(truth["table"], prices) is None
    assert optimum_of({"mean": np.zeros(2)}, Prices.additive(np.ones(2)), []) == {}
