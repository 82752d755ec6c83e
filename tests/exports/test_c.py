"""Programs as C99: compiled by what is there, they serve as the predictor does."""

from dataclasses import replace

import numpy as np
import pytest
from bench_c.source import FULL, header
from helpers.compiled_c import COMPILERS, SAFE, assert_same, served, write_c
from helpers.flat_costs_plugin import VisitFee
from helpers.kit import refused
from helpers.policy_cases import policy_folder, random_policy, rows_for
from helpers.program_cases import PROGRAMS, X, folder_of, prices

from bench_core import Sequential, UsageError
from bench_core.costs.by_row import ByRow
from bench_core.costs.shipped import PerQueryPrices
from bench_core.serving import Finish, Predictor

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no gcc or clang")


def checked(folder, place, cap=None, rows=X, prices=None, flags=SAFE):
    """What the compiled folder serves, which is the same as by the predictor."""
    found = served(folder, place, flags, COMPILERS[0], cap or 0.0, rows, prices)
    assert_same(folder, found, cap, rows, prices)
    return found


@pytest.mark.parametrize("name", ["gated", "vectors", "support", "constant"])
def test_c_serves_as_the_predictor_does(name, tmp_path):
    checked(folder_of(PROGRAMS[name]), tmp_path)


def test_a_price_per_query_is_paid_in_full_and_the_header_says_so(tmp_path):
    folder = folder_of(PROGRAMS["chain"])
    assert FULL not in header(folder)
    shared = PerQueryPrices.of(folder.costs, np.ones(folder.costs.sensors, dtype=bool))
    found = served(replace(folder, costs=shared), tmp_path, SAFE, COMPILERS[0])
    assert np.allclose(found[:, -3], Predictor(folder).predict_rows(X).spent, rtol=1e-9)
    assert f"   {FULL}. */" in (tmp_path / "c" / "bench_model.h").read_text()


def test_a_cap_is_kept_by_the_caller_or_by_the_export(tmp_path):
    program = PROGRAMS["chain"]
    cap = float(np.median(Predictor(folder_of(program)).predict_rows(X).spent))
    asked = checked(folder_of(program), tmp_path, cap)
    assert 0.2 < (asked[:, -2] == 2).mean() < 0.8
    own = folder_of(program, budget={"kind": "cap", "amount": cap})
    assert served(own, tmp_path, ("-O2",), COMPILERS[0]).tobytes() == asked.tobytes()


def test_a_cap_that_is_no_number_buys_nothing(tmp_path):
    folder = folder_of(PROGRAMS["chain"])
    found = served(folder, tmp_path, SAFE, COMPILERS[0], float("nan"))
    assert (found[:, -2] == 2).all()
    assert not found[:, [-3, -1]].any()


def test_a_low_cap_forbids_a_purchase_with_its_splits(tmp_path):
    checked(folder_of(PROGRAMS["gated"]), tmp_path, 5.0)


def test_a_cap_below_the_price_of_any_answer_buys_nothing(tmp_path):
    folder = folder_of(PROGRAMS["outputs"])
    cap = 0.99 * Predictor(folder).least_cap
    found = checked(folder, tmp_path, cap)
    assert cap > 11
    assert not found[:, [-3, -1]].any()


@pytest.mark.slow
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_compiler_gives_the_same(name, compiler, tmp_path):
    folder = folder_of(PROGRAMS[name])
    for flags in (SAFE if compiler == "gcc" else ("-O0",), ("-O3",)):
        assert_same(folder, served(folder, tmp_path, flags, compiler))


@pytest.mark.parametrize("link", ["exp", "probability"])
@pytest.mark.parametrize("name", ["vectors", "chain"])
def test_links_are_those_of_the_predictor(name, link, tmp_path):
    program = PROGRAMS[name]
    finish = Finish((0.3,) * program.outputs, rounds=20.0, link=link)
    steps = [replace(step, finish=finish) for step in program.steps]
    folder = folder_of(replace(program, steps=steps))
    scores = Predictor(folder).predict_rows(X).scores
    assert len(np.unique(scores)) > 20
    checked(folder, tmp_path)


def test_gates_of_probabilities(tmp_path):
    program = PROGRAMS["outputs"]
    finish = Finish((0.4, 0.3, 0.3), rounds=40.0, link="probability")
    steps = [replace(s, gate="class", value=0.9, finish=finish) for s in program.steps]
    folder = folder_of(replace(program, steps=steps, stops=[]))
    assert len(np.unique(Predictor(folder).predict_rows(X).step)) > 1
    checked(folder, tmp_path)


SEEDS = range(3)


def exported_policy(seed):
    """The folder of a random policy, and rows for it."""
    policy = random_policy(seed, evaluation=seed % 2 == 1)
    folder = policy_folder(policy, Sequential(policy, policy.prices).program({"at": 1.0}))
    return folder, rows_for(policy, seed)


@pytest.mark.parametrize(
    "seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 8))]
)
def test_a_policy_in_c_serves_as_the_predictor_does(seed, tmp_path):
    folder, rows = exported_policy(seed)
    checked(folder, tmp_path, None, rows)
    for share in (0.05, 0.5):
        cap = share * folder.costs.everything
        found = checked(folder, tmp_path, cap, rows, flags=("-O2",))
    own = replace(folder, about={"budget": {"kind": "cap", "amount": cap}})
    assert served(own, tmp_path, ("-O2",), COMPILERS[0], 0.0, rows).tobytes() == found.tobytes()


def test_policies_of_all_kinds_are_compiled():
    policies = [random_policy(seed) for seed in SEEDS]
    for name in ("rule", "skip"):
        assert len({getattr(p, name) for p in policies}) == 2
    assert any(len(p.marked) for p in policies)
    assert any((np.diff(p.prices.start) > 1).any() for p in policies)
    assert any(trees.vectors is not None for p in policies for trees in p.values)


def test_what_compares_documents_or_shares_prices_is_refused(tmp_path):
    program = PROGRAMS["chain"]
    ranked = [replace(program.steps[0], gate="rank", value=3.0), *program.steps[1:]]
    for folder, words in (
        (folder_of(replace(program, steps=ranked)), "compares the documents of a query"),
        (folder_of(program, VisitFee(prices(), 1.0)), "'visit-fee' are not a sum of prices"),
    ):
        refused(words, write_c, tmp_path / "c", folder, error=UsageError)


def with_prices_by_row(folder, rng, rows):
    """A folder in which three sensors have prices by row, and these, some of them unknown."""
    sensors = np.sort(rng.choice(folder.costs.sensors, 3, replace=False))
    costs = ByRow(folder.costs, sensors, np.array([2, 0, 3]), np.array([True, False, False]))
    about = {**folder.about, "price_columns": ("a", "b", 'c "d"', "e")}
    paid = rng.gamma(0.5, 4.0, (rows, 4))
    paid[rng.random(paid.shape) < 0.1] = np.nan
    return replace(folder, costs=costs, about=about), paid


@pytest.mark.parametrize("name", ["gated", "outputs", "chosen"])
def test_rows_pay_their_own_prices_in_c(name, tmp_path):
    folder = folder_of(PROGRAMS[name], replace(prices(), split=0.001))
    folder, paid = with_prices_by_row(folder, np.random.default_rng(3), len(X))
    found = checked(folder, tmp_path, prices=paid)
    checked(folder, tmp_path)  # at the means
    replayed = Predictor(folder).replay(X, prices=paid)  # and row by row in Python
    assert np.allclose(found[:, -3], replayed.spent, rtol=1e-9, atol=1e-9)
    assert np.allclose(found[:, :-3], replayed.scores.reshape(len(X), -1), rtol=1e-9, atol=1e-9)
    for cap in np.quantile(found[:, -3], [0.1, 0.4]).tolist():
        capped = checked(folder, tmp_path, cap, prices=paid)
        assert 0 < (capped[:, -2] == 2).mean() < 1
        assert (capped[:, -3] > cap).any()  # by the last purchase, at a metered price


@pytest.mark.parametrize("seed", range(3))
def test_a_policy_pays_its_rows_own_prices_in_c(seed, tmp_path):
    folder, rows = exported_policy(seed)
    folder, paid = with_prices_by_row(folder, np.random.default_rng(seed), len(rows))
    found = checked(folder, tmp_path, None, rows, paid)
    for cap in np.quantile(found[:, -3], [0.3, 0.7]).tolist():
        checked(folder, tmp_path, cap, rows, paid)
