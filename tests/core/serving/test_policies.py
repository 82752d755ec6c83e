"""Policies as programs: what is served equals the benchmark's ``Sequential``."""

import pickle
from dataclasses import fields, replace
from typing import ClassVar

import numpy as np
import pytest
from bench_models.large_model import whole_program
from helpers.flat_costs_plugin import VisitFee
from helpers.kit import refused
from helpers.policy_cases import ROWS, TreePolicy, policy_folder, random_policy, rows_for
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import Examples, Features, Purchases, Sequential
from bench_core.execution.audit import replay
from bench_core.sequential import ROUNDING
from bench_core.serving import Predictor, load, write_folder

EXACT = {"rtol": 1e-9, "atol": 1e-9}
SHARES = (None, 0.0, 0.2, 0.5, 1.0)


def served(policy):
    program = Sequential(policy, policy.prices).program({"at": 1.0})
    return Predictor(policy_folder(policy, program))


def benchmark(policy, X, cap):
    model = Sequential(policy, policy.prices)
    if cap is None:
        (found,) = model.predict_path(Features(X))
        return found
    return model.predict_capped(Features(X), cap, policy.prices)


def one_by_one(model, X, cap):
    """Rows that ask; no feature is asked for twice, and all of a row's at a time."""
    answers = []
    for x in X:
        asked = []

        def acquire(names, x=x, asked=asked):
            assert not {*names} & {*asked}
            asked += names
            return [x[model.names.index(name)] for name in names]

        answers.append(model.predict(acquire, cap=cap))
        assert [*answers[-1].bought] == asked
    return answers


def test_a_policy_is_pickled_after_a_row():
    policy = random_policy(0)
    X, model = rows_for(policy, 0), served(policy)
    first = one_by_one(model, X[:3], None)
    again = one_by_one(pickle.loads(pickle.dumps(model)), X[:3], None)
    assert [a.score for a in again] == [a.score for a in first]
    assert [a.spent for a in again] == [a.spent for a in first]


def assert_served(policy, X, share, model):
    """The benchmark's scores, purchases and bills; with trees that cost something a cap is kept."""
    prices = policy.prices
    cap = None if share is None else share * prices.everything
    expected = benchmark(policy, X, cap)
    bill = expected.bills["path"]
    spent = bill.feature_cost(prices, ROWS) + bill.evaluation_cost(prices, ROWS)
    bought = bill.acquired.unpack()
    many = model.predict_rows(X, cap=cap)
    assert np.allclose(many.scores, expected.scores, **EXACT)
    assert np.allclose(many.spent, spent, **EXACT)
    assert np.array_equal(many.bought, bought)
    assert np.array_equal(many.step, bill.order.max(axis=1, initial=-1))
    one = one_by_one(model, X, cap)
    assert np.allclose(np.array([a.score for a in one]), expected.scores, **EXACT)
    assert np.allclose([a.spent for a in one], spent, **EXACT)
    assert [a.step for a in one] == many.step.tolist()
    assert [a.stopped for a in one] == ["cap" if capped else "end" for capped in many.capped]
    for answer, own, order in zip(one, bought, bill.order, strict=True):
        shown = [
            {*prices.sensors_of(f).tolist()} <= {*np.flatnonzero(own)} for f in range(X.shape[1])
        ]
        bought = [model.names.index(name) for name in answer.bought]
        assert sorted(bought) == np.flatnonzero(shown).tolist()
        rounds = [max([order[s] for s in prices.sensors_of(f)], default=0) for f in bought]
        assert rounds == sorted(rounds)


@given(seed=st.integers(0, 100_000), share=st.sampled_from(SHARES))
@settings(max_examples=15, deadline=None)
def test_a_policy_serves_as_the_benchmark_does(seed, share):
    policy = random_policy(seed)
    assert_served(policy, rows_for(policy, seed), share, served(policy))


@given(seed=st.integers(0, 100_000))
@settings(max_examples=10, deadline=None)
def test_evaluations_are_billed_and_come_out_of_the_cap(seed):
    policy = random_policy(seed, evaluation=True)
    X, model = rows_for(policy, seed), served(policy)
    assert_served(policy, X, None, model)
    free = model.predict_rows(X)
    for cap in (0.1, *np.quantile(free.spent, [0.3, 1.0]).tolist()):
        found = model.predict_rows(X, cap=cap)
        assert (found.spent <= cap * (1 + 2 * ROUNDING)).all()
        if not policy.skip:  # the same way, to where the cap ends it
            within = free.spent <= cap
            assert np.array_equal(found.capped, ~within)
            assert np.allclose(found.scores[within], free.scores[within], **EXACT)
            assert not (found.bought & ~free.bought).any()
    least = policy.prices.split * 2.5 + policy.prices.tree * 6.0
    assert np.isnan(model.predict_rows(X, cap=0.9 * least).scores).all()
    assert not np.isnan(model.predict_rows(X, cap=1.1 * least).scores).any()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [None, 0.3])
def test_every_purchase_of_a_policy_is_explained(seed, share):
    policy = random_policy(seed, evaluation=seed % 2 > 0)
    model, prices = served(policy), policy.prices
    cap = None if share is None else share * prices.everything
    for x in rows_for(policy, seed)[:5]:
        row = dict(zip(model.names, x.tolist(), strict=True))
        told, answer = model.explain(row, cap=cap), model.predict(row, cap=cap)
        assert (told.answer.bought, told.answer.step) == (answer.bought, answer.step)
        assert np.allclose(told.answer.score, answer.score, equal_nan=True, **EXACT)
        assert sum([own.bought for own in told.steps], ()) == answer.bought
        assert np.isclose(sum(own.cost for own in told.steps), answer.spent, **EXACT)
        if told.steps:
            assert told.steps[-1].step == answer.step
            assert np.allclose(told.steps[-1].score, answer.score, equal_nan=True, **EXACT)
        # the policy's own answer to the cells and purchases of each step
        cells, sensors = np.full((1, len(x)), np.nan, np.float32), set()
        for own in told.steps:
            for column in map(model.names.index, own.bought):
                cells[0, column] = x[column]
                sensors |= {*prices.sensors_of(column).tolist()}
            bought = [{*np.flatnonzero(need)} <= sensors for need in Purchases.of(prices).sets]
            score = policy.predict(cells, np.array([bought]))
            assert np.allclose(own.score, score, equal_nan=True, **EXACT)
        if answer.stopped == "cap":
            assert f"cap of {cap:.6g}" in told.why
        elif len(answer.bought) == len(model.names):
            assert told.why == "everything is bought"
        else:
            assert ("the best action" in told.why) == (policy.rule == "class")
            assert ("the cap" in told.why) == (policy.skip and cap is not None)
            left = Purchases.of(prices).marginal(np.array([bought]))[0][~np.array(bought)]
            assert told.why.endswith(f"; the cheapest one left costs {min(left):.6g}")


def case(accept):
    """The first random policy that will do."""
    for seed in range(200):
        policy = random_policy(seed)
        X = rows_for(policy, seed)
        if accept(policy, served(policy).predict_rows(X)):
            return policy, X
    raise AssertionError("no such policy")


def varied(policy, answers):
    return len(np.unique(answers.bought, axis=0)) > 3 and len(np.unique(answers.scores)) > 3


def test_a_folder_holds_a_policy(tmp_path):
    policy, X = case(varied)
    write_folder(tmp_path / "model", folder(policy))
    assert_served(policy, X, None, load(tmp_path / "model"))


def folder(policy):
    program = Sequential(policy, policy.prices).program({"at": 1.0})
    return policy_folder(policy, program)


def test_what_a_policy_cannot_do_is_refused():
    policy, _ = case(varied)
    base = policy.prices
    together = VisitFee(base, 1.0)
    model = Predictor(replace(folder(policy), costs=together))
    refused("'visit-fee' are not a sum", model.predict, lambda names: [0.0] * len(names), cap=1.0)


class Other(TreePolicy):
    """Its program stops earlier than it does."""

    def program(self, prices, stop):
        return replace(super().program(prices, stop), least=1e9)


def test_an_audit_compares_a_policy_with_its_program():
    policy, _ = case(lambda p, a: p.rule == "rate" and a.scores.ndim == 1 and varied(p, a))
    X = np.concatenate([rows_for(policy, seed) for seed in range(3)])
    examples = Examples(X, np.zeros(len(X)))
    for kind, word in ((TreePolicy, "verified"), (Other, "failed")):
        own = kind(**{f.name: getattr(policy, f.name) for f in fields(policy)})
        found = replay(Sequential(own, own.prices), examples, own.prices, 0, "full")
        assert found.word == word, found.reason
    assert "asked again by its program, it buys other sensors" in found.reason


def test_a_policy_cannot_stand_behind_a_gate():
    policy = random_policy(0)
    model = Sequential(policy, policy.prices)
    refused("f0 is a policy|gate", whole_program, model, policy.prices.features, "f0")


def test_a_policy_without_a_program_is_exported_by_its_class():
    class Bare:
        stops: ClassVar = {"at": (1.0,)}

    model = Sequential(Bare(), random_policy(0).prices)
    refused("Bare|'program'|into a module", model.program, {"at": 1.0})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rule": "worst"}, "has a rule"),
        ({"least": float("nan")}, "has a rule"),
        ({"marked": np.arange(9)}, "differ in their features"),
        ({"outputs": 99}, "do not fit"),
    ],
)
def test_a_program_that_is_none_is_refused(change, says):
    policy, _ = case(varied)
    program = folder(policy).program
    refused(says, replace, program, **change, error=ValueError)
