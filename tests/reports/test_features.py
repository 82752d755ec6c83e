"""``bench features`` and what ``bench best`` says of purchases, through the command line."""

import json
import math
import re
import shlex
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench_reports.features import shaded
from helpers.commands import QUICK

from bench_core import Features, load_run
from bench_core.datasets.cache import open_prepared
from bench_core.leaderboard.bought_sensors import Purchase, named, natural
from bench_core.results.budgets import Budget, Target
from bench_core.results.store import Store
from bench_core.results.store_files import load_model

RUN = (*QUICK, "--costs", "costs.csv", "-l", "toy,cegb", "--set", "cegb.trees=20", "-m", "accuracy")


@pytest.fixture
def done(ran, material):
    asked = ("--set", "cegb.tradeoff=0.3", "--set", "cegb.depth=3", "--set", "cegb.min_rows=2")
    assert ran(*RUN, *asked).status == 0
    return material


def orders(model, point, X):
    """What each row buys, one sensor after the other, by the stored policy."""
    path = load_model(model).predict_path(Features(X.astype(np.float32)))
    (order,) = (p.bills["path"].order for p in path if dict(p.point) == point)
    return [[int(j) for j in np.argsort(row) if row[j] >= 0] for row in order]


def test_the_order_of_purchases_is_that_of_the_policy(material, bench):
    assert bench("new", "policy", "stepwise").status == 0
    sys.modules.pop("stepwise", None)
    asked = (*QUICK, "-p", "stepwise", "--costs", "costs.csv", "-l", "stepwise", "-m", "accuracy")
    assert bench("run", *asked, "--caps", "6").status == 0
    words = ("features", "--learner", "stepwise", "--order", "-b", "inf")
    table = bench(*words)
    assert table.status == 0, table.err
    assert "steps 1 to " in table.out
    assert bench(*words, "-o", "order.csv").err.endswith(" UTC\nwrote order.csv\n")
    found = pd.read_csv("order.csv").set_index("features")
    # the same from the model itself
    (model,) = Path("results/bench.fits").glob("[0-9a-f][0-9a-f]/*.npz")
    store = Store("results/bench.db")
    (values,) = store.values("last", learner="stepwise")
    points = store.frame("last").query("learner == 'stepwise' and split == 'valid' and cap.isna()")
    best = points.loc[points["accuracy"].idxmax(), "point"]
    X = open_prepared(Path(values.trial.data)).test.X
    own, names = orders(model, json.loads(best), X), values.trial.sensors.names
    assert len({*map(tuple, own)}) > 1
    for j, name in enumerate(names):
        steps = [1 + order.index(j) for order in own if j in order]
        assert (name in found.index) == bool(steps)
        if steps:
            row = found.loc[name]
            assert row["share"] == pytest.approx(len(steps) / len(own), rel=1e-5)
            assert row["step"] == pytest.approx(np.mean(steps), rel=1e-5)
            for k in range(1, 1 + sum(c.startswith("step ") for c in found)):
                assert row[f"step {k}"] == pytest.approx(steps.count(k) / len(own), rel=1e-5)
    in_python = load_run("last").features("stepwise", math.inf).set_index("features")["mean step"]
    assert in_python.dropna().to_dict() == pytest.approx(found["step"].to_dict(), rel=1e-5)


def test_only_policies_have_an_order(done, bench):
    ended = bench("features", "--learner", "cegb", "--order")
    assert (ended.status, ended.out) == (1, "")
    assert "cegb does not record the order of purchases" in ended.err


def test_steps_are_darker_the_more_rows_buy_in_them():
    assert shaded((0.0, 0.001, 0.25, 0.5, 0.75, 1.0)) == "·░▒▓██"


@pytest.mark.parametrize(("learner", "amount"), [("toy", "12"), ("cegb", "inf"), ("cegb", "12")])
def test_shares_times_prices_are_the_feature_cost_of_the_point(learner, amount, done, bench):
    (done / "bought.csv").unlink(missing_ok=True)
    budget = ("--budget", amount)
    ended = bench("features", "--learner", learner, *budget, "-o", "bought.csv")
    assert ended.err.startswith("run 1, data.csv-quick-")
    assert ended.err.endswith(" UTC\nwrote bought.csv\n")
    bought = pd.read_csv(done / "bought.csv")
    assert bought["features"].tolist() != []
    assert bought["share"].between(0, 1).all()
    rows = pd.read_csv(StringIO(bench("export").out))
    mine = rows[(rows["learner"] == learner) & (rows["split"] == "test")]
    paid = float((bought["price"] * bought["share"]).sum())
    assert (mine["feature_cost"] - paid).abs().min() < 1e-4
    used = mine.loc[(mine["feature_cost"] - paid).abs().idxmin(), "features_used"]
    assert (bought["share"] > 0).sum() == used
    never = bought.loc[bought["share"] == 0, "features"]
    said = re.findall(r"can be dropped: (.*)", bench("features", "--learner", learner, *budget).out)
    assert said == ([", ".join(never)] if len(never) else [])


def test_best_says_what_is_bought_and_what_is_saved(done, bench):
    said = bench("best", "--budget", "100").out
    board = load_run().board(columns="all").set_index("learner")
    rows = [line.split() for line in said.splitlines()[2:4]]  # below title and header
    assert {row[0] for row in rows} == {"toy", "cegb"}
    for learner, value, width, *_ in rows:
        own = board.loc[learner]
        assert float(value.rstrip("*")) == pytest.approx(own["accuracy"], abs=5e-5)
        half = (own["high"] - own["low"]) / 2
        ends = (own["low"], own["high"])
        if own["accuracy"] + half > 1:  # uneven: the sides that are not 0
            half = [end - own["accuracy"] for end in ends if abs(end - own["accuracy"]) > 5e-5]
        assert [*map(float, width.split("/"))] == pytest.approx([*np.atleast_1d(half)], abs=1e-4)
        assert value.endswith("*") == (own["tier"] == 1)
    assert "±: half the 95% interval; *: not significantly worse than the best" in said
    parts = dict(re.findall(r"bought (for every row|for some rows|never): (\d) feature", said))
    assert sum(map(int, parts.values())) == 3


@pytest.mark.parametrize("budget", ["0", "0.01"])
def test_best_gives_no_command_for_the_constant(done, bench, budget):
    said = bench("best", "--budget", budget).out
    assert "best at the constant" in said
    assert "run it alone with" not in said


def test_numbers_in_names_are_sorted_by_their_value():
    assert sorted(["f10", "f4", "a", "f11", "f6"], key=natural) == ["a", "f4", "f6", "f10", "f11"]


def test_another_metric_than_the_one_that_points_are_kept_by_is_no_fault(bench, material):
    assert bench("run", *RUN[:-1], "accuracy,log_loss").status == 0
    assert bench("best", "--budget", "100", "-m", "log_loss").status == 0


def test_a_learner_without_a_result_on_one_data_set_is_shown_on_the_others(material, bench):
    plugins = ("-p", "helpers.toys")
    two = ("-d", "toy-rank,toy-binary", "-l", "toy-prefix,bayes-cmi", "--executor", "inline")
    assert bench("run", *two, *plugins).status == 0  # which does no ranking
    words = ("features", *plugins, "--budget", "inf", "--learner")
    ended = bench(*words, "bayes-cmi")
    assert ended.status == 0
    assert "toy-binary: what bayes-cmi buys at any cost" in ended.out
    assert ended.err.splitlines()[:-1] == [
        "toy-rank: no result of bayes-cmi at any cost: bayes-cmi does binary, multiclass; "
        "toy-rank is ranking"
    ]
    assert bench(*words, "bayes-cmi", "-o", "bought.csv").status == 0
    assert set(pd.read_csv("bought.csv")["data set"]) == {"toy-binary"}
    ended = bench(*words, "bayes-cmo")
    assert (ended.status, ended.out) == (2, "")
    assert "unknown learner of this run 'bayes-cmo': did you mean bayes-cmi?" in ended.err


def labelled(bench, weights, *words, rows=2000, trees=30):
    """A run on columns a, b, .., whose label is 1 where their weighted sum is above 0."""
    X = np.random.default_rng(0).normal(size=(rows, len(weights))).round(3)
    frame = pd.DataFrame(X, columns=[*"abcd"[: len(weights)]])
    frame.assign(label=(X @ weights > 0).astype(int)).to_csv("data.csv", index=False)
    own = ("--data", "data.csv", "--label", "label", "--set", f"gbrt.trees={trees}")
    ended = bench("run", *own, "--executor", "inline", *words)
    assert ended.status == 0, ended.err


def test_where_nothing_can_be_dropped_a_lower_quality_is_tried(bench):
    labelled(bench, [1.0, 0.35, 0.25], "-l", "gbrt", "--set", "gbrt.leaves=3")
    never = {}
    for share in ("99%", "95%", "90%"):
        assert bench("features", "--keep", share, "-o", "bought.csv").status == 0
        bought = pd.read_csv("bought.csv")
        never[share] = bought.loc[bought["share"] == 0, "features"].tolist()
    assert never["99%"] == []
    lower = next(share for share in ("95%", "90%") if never[share])
    costs = []
    for share in ("99%", lower):
        said = bench("features", "--keep", share).out
        costs.append(re.search(r"^total .* (\S+)$", said, re.M)[1])
    line = f"at {lower} ({costs[1]} instead of {costs[0]}): {', '.join(never[lower])}"
    said = bench("features").out
    assert f"none can be dropped at 99% of gbrt's accuracy; {line}" in said
    assert "sets of features that suffice for all rows: --learners forward-selection" in said
    named = f"can be dropped: {', '.join(never[lower])}"
    assert named in bench("best", "--keep", lower).out


def test_the_command_that_shows_all_unused_features_shows_those_of_the_same_point(
    bench, monkeypatch
):
    monkeypatch.setattr("bench_core.leaderboard.bought_sensors.NAMED", 0)
    labelled(bench, [1.0, 0.35, 0.25], "-l", "gbrt,cegb", "--set", "cegb.trees=3", trees=3)
    for asked in (("--keep", "90%"), ("--quality", "0.7", "--learner", "cegb")):
        for verb in ("features", "best"):
            said = bench(verb, *asked).words
            number, command = re.search(r"\(all (\d): bench (.*?features\.csv)\)", said).groups()
            assert bench(*shlex.split(command)).status == 0
            bought = pd.read_csv("features.csv")
            unused = bought.loc[bought["share"] == 0, "features"].tolist()
            assert len(unused) == int(number) > 0
            assert all(word in shlex.split(command) for word in asked)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (None, "bench features -o features.csv"),
        (Target(0.99), "bench features --keep 99% -o features.csv"),
        (Target(0.985), "bench features --keep 98.5% -o features.csv"),
        (Budget(2.5), "bench features --budget 2.5 -o features.csv"),
        (Budget(math.inf), "bench features --budget inf -o features.csv"),
        (Budget(3.0, "cap"), "bench features --budget 'cap 3' -o features.csv"),
    ],
)
def test_the_command_that_shows_all_features_repeats_the_limit(limit, words):
    many = [Purchase(f"f{k}", 1.0, 0.0) for k in range(31)]
    assert named(many, limit).endswith(f"f29, ... (all 31: {words})")
    assert named(many[:30], limit).endswith("f29")


def test_another_learner_that_drops_more_at_a_lower_quality_is_named(bench):
    Path("costs.csv").write_text("a,1\nb,5\nc,9\n")
    few = ("--set", "cegb.trees=30", "--set", "cegb.tradeoff=3")
    labelled(bench, [1.0, 0.2, 0.2], "--costs", "costs.csv", "-l", "gbrt,cegb", *few)
    assert "what cegb buys at 90%" in bench("features", "--keep", "90%").out
    usual = bench("features").out
    assert "what gbrt buys at 99%" in usual
    paid = re.search(r"^total .* (\S+)$", usual, re.M)[1]
    found = "none can be dropped at 99% of gbrt's accuracy; at 90% with cegb"
    assert f"{found} (1.00 instead of {paid}): b, c" in usual.splitlines()
    alone = bench("features", "--learner", "gbrt").out
    assert "none can be dropped at 99% of gbrt's accuracy, nor at 95% and 90%" in alone


def test_a_sensor_of_many_columns_is_named_in_full_in_files_and_shortened_on_screens(bench):
    names = [*"abcd"]
    Path("costs.json").write_text(json.dumps({"shared": [names], "costs": dict.fromkeys(names, 2)}))
    labelled(bench, [0.0, 0.0, 0.0, 1.0], "--costs", "costs.json", "-l", "gbrt", rows=300)
    assert bench("features", "-b", "inf", "-o", "bought.csv").status == 0
    assert pd.read_csv("bought.csv")["features"].tolist() == ["a, b, c, d"]
    assert load_run("last").features("gbrt", math.inf)["features"].tolist() == ["a, b, c, d"]
    assert "a, b, c and 1 more " in bench("features", "-b", "inf").out
