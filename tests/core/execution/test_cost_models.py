"""Runs under cost models: what is billed, trained on, stored and audited, through the command."""

import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from helpers.kit import refused, table

import bench_core
from bench_core import Acquired
from bench_core.costs.cost_file import ASSUMED_COSTS, cost_model, cost_text
from bench_core.costs.shipped import MODELS
from bench_core.data import Queries
from bench_core.datasets.cache import open_prepared
from bench_core.planning.suites import read_suite
from bench_core.plugins import Registry
from bench_core.results.store import Store

TOYS = ("helpers.toys", "helpers.flat_costs_plugin")


def run(**options):
    return bench_core.run(**({"plugins": TOYS, "executor": "inline"} | options))


def suite(folder, costs, extra=""):
    path = folder / "mine.toml"
    path.write_text(
        f'datasets = ["toy-rank"]\nmetrics = ["ndcg@5"]\ncosts = {costs}\n'
        f"[learners.toy-prefix]\ntradeoff = [0.0, 1.0]\n{extra}"
    )
    return str(path)


def test_learners_train_on_the_surrogate_of_a_suites_cost_model_and_the_board_says_so(home):
    path = suite(home, '{model = "per-query", per_query = ["f5", "f6"]}')
    result = run(suite=path)
    assert "costs by model 'per-query'" in " ".join(result.notes)
    frame = result.frame()
    assert frame["surrogate"].all()
    (use,) = Store(result.store).info(result.run).datasets
    splits = open_prepared(Store(result.store).specs(result.run)[0].data)
    share = len(splits.train.queries) / len(splits.train)
    assert use.price_of_everything == pytest.approx(1 + 1 + 2 + 5 + (10 + 20) * share)
    plain = run(data="toy-rank", learners="toy-prefix").frame()
    assert not plain["surrogate"].any()
    assert set(plain["cost_model"]) == {"sensor"}


def last_rows(frame):
    """The last point of each setting on test."""
    test = frame[frame["split"] == "test"]
    return test.groupby("params").tail(1).sort_values("params").reset_index(drop=True)


def test_a_third_partys_cost_model_bills_and_is_audited(home):
    (home / "fee.toml").write_text('model = "visit-fee"\nfee = 7\n')
    asked = {"data": "toy-rank", "learners": "toy-prefix", "settings": "toy-prefix.tradeoff=0.1"}
    plain = run(**asked, audit="off").frame()
    billed = run(**asked, audit="full", executor="local", costs="fee.toml").frame()
    assert set(billed["audit"]) == {"verified"}
    one, two = last_rows(plain), last_rows(billed)
    assert (two["feature_cost"] - one["feature_cost"]).tolist() == pytest.approx([7.0] * len(one))
    assert set(two["evaluation_cost"]) == {0.0}
    assert two["cost_max"].tolist() == [46.0] * len(two)  # 1 + 1 + 2 + 5 + 10 + 20 and the fee
    assert set(billed["cost_model"]) == {"visit-fee"}


def test_a_model_that_reads_what_it_did_not_buy_is_caught_under_any_cost_model(home):
    result = bench_core.run(
        data="toy-binary",
        learners="peeking",
        costs="visit-fee",
        plugins=(*TOYS, "helpers.toy_plugin"),
        executor="inline",
    )
    assert len(result.audit_failures) == 1
    assert set(result.frame()["audit"]) == {"failed"}


def test_costs_that_nobody_gave_are_a_note_until_somebody_does(home):
    table(home / "mine.csv", "a,b,label", [f"{i},{-i},{i % 2}" for i in range(60)])
    asked = {"data": "mine.csv", "label": "label", "task": "binary", "learners": "gbrt"}
    (home / "costs.txt").write_text("1\n2\n")
    quick = {"settings": "gbrt.trees=2"}
    assert f"mine.csv: {ASSUMED_COSTS}" in run(**asked, **quick).notes
    assert ASSUMED_COSTS not in " ".join(run(**asked, **quick, costs="costs.txt").notes)


def test_what_a_third_partys_cost_model_refuses_is_one_line_with_its_place(home):
    (home / "c.json").write_text('{"model": "visit-fee", "fee": "much"}')
    line = "c.json, line 1: fee is 'much'"
    refused(line, run, data="toy-rank", learners="toy-prefix", costs="c.json")


def test_a_suite_names_the_line_of_what_its_costs_get_wrong(home):
    path = suite(home, '{model = "per-query", per_query = ["f9"]}')
    refused("mine.toml, line 3|'f9'", run, suite=path)
    refused("key 'costs'|7", read_suite, Path(suite(home, "7")), Registry())


def test_a_suites_cost_file_lies_beside_it_and_the_option_has_the_last_word(home):
    folder = home / "suites"
    folder.mkdir()
    (folder / "costs.txt").write_text("2\n2\n2\n2\n2\n2\n")
    (home / "other.txt").write_text("3\n3\n3\n3\n3\n3\n")
    path = suite(folder, '"costs.txt"')
    prices = [
        Store(result.store).info(result.run).datasets[0].price_of_everything
        for result in (run(suite=path), run(suite=path, costs="other.txt"))
    ]
    assert prices == [12, 18]


def test_the_model_of_the_page_on_cost_files_works(tmp_path):
    page = (Path(__file__).parents[3] / "docs/guide/cost-files.md").read_text()
    block = re.search(r'^    model = "per-query"\n(?:    .*\n)+', page, flags=re.M)
    assert block
    (tmp_path / "c.toml").write_text(dedent(block[0]))
    names = ("age", "query_length", "query_popularity", "title_match")
    costs = cost_model(cost_text(tmp_path / "c.toml"), names, None, MODELS)
    acquired = Acquired.pack(np.array([[True, True, True, False], [False, True, False, True]]))
    queries = Queries.from_sizes(np.array([2]))
    assert costs.feature_cost(acquired, queries).tolist() == [28.5, 31.5]
    assert costs.unit == "ms"
