"""The shipped suites: those of the papers are there, and their claims can be put to the test."""

import json

import numpy as np
import pandas as pd
import pytest
from bench_claims.claims import read_claims
from bench_datasets.yahoo import YahooSim

from bench_core.api import plan
from bench_core.datasets.data_folder import DataFolder
from bench_core.parameters import as_json
from bench_core.planning.request import PROFILES, RunRequest
from bench_core.planning.resolve_learners import choose_learners
from bench_core.planning.suites import find_suite
from bench_core.plugins import load_registry

OF_PAPERS = ("adapt", "cegb", "cronus-yahoo", "cstc-synthetic", "miser-scene15", "miser-yahoo")
OTHERS = (
    *("afa", "all-real", "apis", "llm-cascade", "llm-routing", "ltr", "medical", "solvers"),
    "total-cost",
)


REGISTRY = load_registry()


def claims_of(name):
    return read_claims(find_suite(name, REGISTRY).extra.get("claims", ()))


def labels(suite):
    """The names of its data sets in results."""
    for entry in suite.datasets:
        inside = ",".join(f"{k}={v}" for k, v in sorted(entry.options.items()))
        yield f"{entry.name}({inside})" if inside else entry.name


@pytest.mark.parametrize("name", [*OF_PAPERS, *OTHERS])
def test_every_suite_has_three_profiles_and_says_what_it_is(name):
    suite = find_suite(name, REGISTRY)
    assert set(PROFILES) <= suite.profiles.keys()
    assert suite.title
    assert suite.paper or suite.description


def test_kernel_machines_that_log_loss_judges_give_log_odds():
    judged = []
    for name in REGISTRY.suite_files.keys() - set(OF_PAPERS):  # whose claims are about accuracy
        suite = find_suite(name, REGISTRY)
        request = RunRequest(suite=name)
        for chosen in choose_learners(request, suite, REGISTRY, ()):
            if "log_loss" in suite.metrics and hasattr(chosen.instances[0], "probability"):
                judged.append(name)
                assert {x.probability for x in chosen.instances} == {"platt"}, (name, chosen.name)
    assert {"letters", "forest", "medical", "thyroid"} <= set(judged)


@pytest.mark.parametrize("name", OF_PAPERS)
def test_every_paper_has_its_claims(name):
    assert any(claim.measure != "none" for claim in claims_of(name))


def test_no_two_claims_of_all_suites_have_one_id():
    ids = [
        claim["id"]
        for name in REGISTRY.suite_files
        for claim in find_suite(name, REGISTRY).extra.get("claims", ())
    ]
    assert len(ids) == len(set(ids)) > 120


@pytest.mark.parametrize("name", [*OF_PAPERS, "afa"])
def test_a_claim_that_is_measured_is_about_a_data_set_of_its_suite(name):
    names = {*labels(find_suite(name, REGISTRY))}
    for claim in claims_of(name):
        if claim.measure != "none":
            for label in (claim.dataset, *(x.dataset for x in claim.learners if x.dataset)):
                assert label in names, claim.id
        assert claim.dataset.partition("(")[0] in REGISTRY.datasets, claim.id


@pytest.mark.parametrize("name", [*OF_PAPERS, "afa"])
@pytest.mark.parametrize("profile", ["standard", "paper"])
def test_what_a_claim_compares_is_in_the_suites_grid(name, profile):
    suite = find_suite(name, REGISTRY)
    frames = {}
    for claim in claims_of(name):
        dataset = claim.dataset.partition("(")[0]
        if dataset not in frames:
            grid = chosen_on(suite, profile, dataset)
            rows = [(one.name, json.dumps(as_json(one))) for one in grid]
            frames[dataset] = pd.DataFrame(rows, columns=["learner", "params"])
        for contender in claim.learners:
            assert len(contender.rows(frames[dataset])) > 0, (claim.id, contender.label)


def chosen_on(suite, profile, dataset):
    """Every setting of every learner that a suite runs on a data set."""
    request = RunRequest(suite=suite.name, profile=profile)
    chosen = choose_learners(request, suite, REGISTRY, (), dataset=dataset)
    return [one for learner in chosen for one in learner.instances]


@pytest.mark.parametrize("profile", PROFILES)
def test_adapt_and_budget_prune_start_from_one_listed_forest_and_prune_tries_its_path(
    profile,
):
    """ADAPT, section 5: "the same RF that BudgetPrune starts with", whose code tries all features;
    savings are measured against it."""
    met = set()
    for suite in (find_suite(name, REGISTRY) for name in REGISTRY.suite_files):
        for dataset in {entry.name for entry in suite.datasets}:
            grid = chosen_on(suite, profile, dataset)
            starts = forests(getattr(one, "f0", None) for one in grid)
            pruned = [one for one in grid if one.name == "budget-prune"]
            assert all(one.tradeoff is None for one in pruned), suite.name  # a path, not a point
            bases = forests(one.base for one in pruned)
            if starts and bases:
                met.add(suite.name)
                assert starts == bases, (suite.name, dataset)
                assert bases <= forests(grid), (suite.name, dataset)
            assert all(f.trees == 40 and f.features == 1.0 for f in starts | bases), suite.name
    assert {"adapt", "forest", "letters"} <= met


def forests(learners):
    return {one for one in learners if getattr(one, "name", "") == "random-forest"}


def test_a_published_percentage_counts_as_met_where_the_measured_one_rounds_to_it():
    for name in OF_PAPERS:
        for claim in claims_of(name):
            if claim.measure == "saving" and claim.published.endswith("%"):
                least = float(claim.holds.removeprefix(">= "))
                assert least == pytest.approx(float(claim.published[:-1]) / 100 - 0.005), claim.id


def test_all_real_takes_nothing_in_place_of_licensed_data(tmp_path):
    made = plan(suite="all-real", data_dir=str(tmp_path), store=str(tmp_path / "x.db"))
    assert {use.name for use in made.datasets} == {"breast-cancer", "digits", "thyroid"}
    assert not any(use.stand_in for use in made.datasets)
    assert {"yahoo", "forest", "mslr-web10k"} <= set(made.absent)


def test_yahoo_may_have_splits_that_cost_nothing():
    free = YahooSim(split=0.0).prepare(DataFolder("."), "quick", 0, 0).prices
    usual = YahooSim().prepare(DataFolder("."), "quick", 0, 0).prices
    assert (free.split, usual.split) == (0.0, 0.25)
    np.testing.assert_array_equal(free.sensor, usual.sensor)
