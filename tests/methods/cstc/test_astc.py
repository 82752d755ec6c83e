"""The greedy tree: columns by gain per cost, budgets, halves."""

import numpy as np
import pytest
from bench_methods.cstc.astc import ASTC, Paid, Rule, greedy_tree, moments, pick
from bench_methods.cstc.tree import Shape
from bench_models.problem import Problem
from helpers.cstc_cases import cost_and_error, learned, problem, synthetic
from hypothesis import given, settings
from hypothesis import strategies as st

few = settings(max_examples=25, deadline=None)


def nothing(p):
    return Paid(np.zeros(p.trees, dtype=bool), np.zeros(len(p.sensor_cost), dtype=bool))


def explained(p, rows, chosen, constant):
    """The loss on these rows of the best linear combination of columns, and its weights."""
    root = np.sqrt(p.share[rows])
    A = p.columns[chosen][:, rows].T.astype(float)
    if constant:
        A = np.column_stack([A, np.ones(len(rows))])
    A, y = A * root[:, None], p.y[rows] * root
    if A.shape[1] == 0:
        return 0.5 * float(y @ y), np.zeros(0)
    weights = np.linalg.lstsq(A, y, rcond=None)[0]
    return 0.5 * float(((y - A @ weights) ** 2).sum()), weights


def price(p, trees, sensors, t):
    fresh = {int(s) for s in np.flatnonzero(p.needs[:, t])} - sensors
    return float(sum(p.sensor_cost[s] for s in fresh) + (0 if t in trees else p.tree_cost[t]))


def naive_pick(p, rows, rule, constant, trees, sensors):
    """The same by fitting every candidate set from scratch; ``trees``, ``sensors`` are paid."""
    chosen = []
    now, _ = explained(p, rows, chosen, constant)
    least, spent, mass = rule.tolerance * now, 0.0, float(p.share[rows].sum())
    while True:
        best, rate = None, (-1.0, -1.0)
        for t in set(range(p.trees)) - set(chosen):
            gain = now - explained(p, rows, [*chosen, t], constant)[0]
            cost = price(p, trees, sensors, t)
            if gain <= least or gain < rule.tau * mass * cost or spent + cost > rule.budget:
                continue
            worth = (np.inf, gain) if cost == 0 else (gain / cost, 0.0)
            if worth > rate:
                best, rate = t, worth
        if best is None:
            return chosen
        spent += price(p, trees, sensors, best)
        chosen.append(best)
        trees, sensors = (
            trees | {best},
            sensors | {int(s) for s in np.flatnonzero(p.needs[:, best])},
        )
        now, _ = explained(p, rows, chosen, constant)


@few
@given(
    seed=st.integers(0, 10**6),
    tau=st.sampled_from([0.0, 1e-3, 1e-2]),
    budget=st.sampled_from([3.0, 20.0, np.inf]),
    constant=st.booleans(),
)
def test_columns_are_picked_as_by_trying_all_of_them(seed, tau, budget, constant):
    p = problem(seed, n=50)
    rule = Rule(tau, budget, 1e-3)
    rows = np.flatnonzero(np.random.default_rng(seed).random(50) < 0.7)
    weights, bias, after = pick(p, moments(p, rows, 1), nothing(p), rule, constant=constant)
    chosen = naive_pick(p, rows, rule, constant, set(), set())
    assert set(np.flatnonzero(weights)) == set(chosen)
    _, expected = explained(p, rows, chosen, constant)
    assert weights[chosen] == pytest.approx(expected[: len(chosen)], abs=1e-7)
    assert bias == pytest.approx(expected[-1] if constant else 0.0, abs=1e-7)
    bought = {int(s) for t in chosen for s in np.flatnonzero(p.needs[:, t])}
    assert set(np.flatnonzero(after.sensors)) == bought


@few
@given(seed=st.integers(0, 10**6))
def test_what_the_path_has_paid_is_free(seed):
    p = problem(seed, n=50)
    rule, rows = Rule(5e-3, np.inf, 1e-3), np.arange(50)
    trees, sensors = {0, 1}, {int(s) for s in np.flatnonzero(p.needs[:, :2].any(axis=1))}
    paid = nothing(p).plus(p, 0).plus(p, 1)
    weights, _, _ = pick(p, moments(p, rows, 1), paid, rule, constant=True)
    assert set(np.flatnonzero(weights)) == set(naive_pick(p, rows, rule, True, trees, sensors))


def test_every_gate_halves_its_rows_by_their_scores():
    p = problem(0, n=400, trees=12)
    share = np.full(400, 1 / 400)
    p = Problem(p.columns, p.y, share, share, p.tree_cost, p.sensor_cost, p.needs)
    t = greedy_tree(p, Shape.balanced(3), Rule(0.0, np.inf, 1e-6), constant=True)
    rows = {0: np.arange(400)}
    for k in range(3):
        scores = t.weights[k] @ p.columns[:, rows[k]] + t.bias[k]
        up = scores > t.threshold[k]
        assert up.sum() == len(rows[k]) // 2
        rows[2 * k + 1], rows[2 * k + 2] = rows[k][up], rows[k][~up]
    for k in range(3, 7):  # leaves are least squares on the rows that end there
        chosen = np.flatnonzero(t.weights[k]).tolist()
        _, expected = explained(p, rows[k], chosen, True)
        assert t.weights[k][chosen] == pytest.approx(expected[:-1], abs=1e-6)


@pytest.mark.parametrize("budget", [0.03, 0.1, 0.3, None])
def test_no_row_pays_more_than_the_budget_of_every_classifier_it_meets(budget):
    splits = synthetic(0)
    model = learned(ASTC(base=None, tradeoff=0.0, budget=budget), splits)
    most = 42.0 if budget is None else 3 * budget * 42
    cost, _ = cost_and_error(model, splits)
    assert 0 < cost.max() <= most + 1e-9
