"""``--keep SHARE`` and ``--quality Q``: the least cost that reaches a quality, in every verb that
chooses a point."""

import json
import math
import re
from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers.commands import QUICK

import bench_core
from bench_core import UsageError
from bench_core.leaderboard import certainty
from bench_core.leaderboard.board import Saved
from bench_core.serving import load
from bench_core.statistics.comparison import Interval

RUN = (*QUICK, "--costs", "costs.csv", "-l", "toy,gbrt", "--reference", "gbrt")
PLAIN = ("--set", "gbrt.trees=8", "--set", "toy.columns=[1,2,3]", "-m", "accuracy,log_loss")


@pytest.fixture
def done(ran):
    ended = ran(*RUN, *PLAIN)
    assert ended.status == 0, ended.err
    return ended


@pytest.fixture
def points(done, bench):
    """The operating points on validation."""
    bench("export", "-o", "all.csv")
    frame = pd.read_csv("all.csv")
    return frame[frame["split"] == "valid"]


def least_cost(points, learner, aim):
    """The cheapest mixture of two points whose quality is at least ``aim``, of all pairs."""
    own = points[points["learner"] == learner]
    found = []
    values = own[["total_cost", "accuracy"]].to_numpy()
    for (cost, good), (other, bad) in product(values, values):
        if bad < aim <= good:
            part = (good - aim) / (good - bad)
            found.append(cost + part * (other - cost))
        elif good >= aim:
            found.append(cost)
    return min(found)


def aim_of(points, share):
    return share * points[points["learner"] == "gbrt"]["accuracy"].max()


def row_of(text, learner):
    (line,) = [line for line in text.splitlines() if re.match(rf"{learner} +\d", line)]
    return line.split()


@pytest.mark.parametrize("share", [0.99, 0.9])
def test_best_is_the_cheapest_that_keeps_the_share(points, bench, share):
    ended = bench("best", "--keep", f"{share:.0%}")
    assert ended.status == 0, ended.err
    assert f"data.csv: least cost with {share:.0%} of gbrt's accuracy" in ended.out
    aim = aim_of(points, share)
    costs = {name: least_cost(points, name, aim) for name in ("toy", "gbrt")}
    first = min(costs, key=costs.get)
    for name, cost in costs.items():
        cells = row_of(ended.out, name)
        assert float(cells[5]) == pytest.approx(cost, abs=0.005)
        assert float(cells[6]) == pytest.approx(aim, abs=5e-5)
    own = points[(points["learner"] == first) & (points["accuracy"] >= aim)]
    one = own.nsmallest(1, "total_cost").iloc[0]  # a single point, which is served
    said = re.search(rf"{first}: accuracy (\S+) on validation, \S+ on test, at", ended.out)
    assert float(said[1]) == pytest.approx(one["accuracy"], abs=5e-5)
    mixed = one["total_cost"] > costs[first] + 1e-9
    assert ("; the table mixes two points at random: accuracy" in ended.out) == mixed
    assert bench("best", "--keep", str(share)).out == ended.out
    if share == 0.99:
        assert bench("best").out == ended.out


def test_the_saving_and_its_interval_are_those_of_the_board(done, bench):
    board = bench("report").out
    cells = row_of(bench("best").out, "toy")
    line = next(line for line in board.splitlines() if re.match(r"data\.csv +toy ", line))
    assert cells[2].rstrip("*") in line.split()
    assert cells[3] in line.split()


def certain(low, high, tier=1, lost=False):
    return Saved(Interval(low, high), Interval(low, high), tier, lost=lost)


@pytest.mark.parametrize(
    ("toy", "cegb", "first", "words"),
    [
        ((0.9, 9.0), (1.2, 2.0), "cegb", []),
        ((1.2, 2.0), (0.9, 9.0), "toy", []),
        ((1.2, 2.0), (1.5, 2.0), "cegb", []),  # as cheap
        ((0.8, 3.0), (0.9, 2.0), "cegb", ["this saving is not significant"]),
        ((1.5, 3.0, 0, True), (0.9, 2.0), "cegb", ["this saving is not significant"]),
        ((1.5, 3.0, 2), (1.2, 2.0), "cegb", []),
    ],
)
def test_every_verb_takes_the_learner_of_the_conclusion(
    ran, bench, monkeypatch, toy, cegb, first, words
):
    few = ("--set", "cegb.trees=20", "--set", "cegb.tradeoff=[0.03,0.1,0.3]")
    prices = ("--costs", "costs.csv", "--reference", "gbrt")
    assert ran(*QUICK, *prices, "-l", "toy,gbrt,cegb", *PLAIN, *few).status == 0
    sure = {"toy": certain(*toy), "cegb": certain(*cegb), "gbrt": certain(1.0, 1.0, 2)}
    monkeypatch.setattr(certainty, "_saved", lambda *given: sure)
    said = bench("best").out
    assert all(float(row_of(said, name)[2].rstrip("x*!")) > 1 for name in ("toy", "cegb"))
    assert f"{first} keeps 99% of gbrt's accuracy" in bench("report").out
    assert re.search(r"^(toy|gbrt|cegb) +\d", said, re.M)[1] == first
    assert [line for line in said.splitlines() if "this saving" in line] == words
    assert f"what {first} buys at 99%" in bench("features").out
    ended = bench("model", "export", "-p", "mine", "-o", "m")
    assert f"\n{first} at " in ended.out or f"error: {first}: its model" in ended.err
    result = bench_core.load_run()
    assert result.best().learner == first
    assert result.features().equals(result.features(first))


def test_best_explains_its_marks(done, bench, monkeypatch):
    lost = {"toy": certain(1.2, 2.0, 0, True), "gbrt": certain(1.0, 1.0)}
    monkeypatch.setattr(certainty, "_saved", lambda *given: lost)
    said = bench("best").out
    assert "!: on test that point is significantly below 98% of gbrt's best accuracy, so" in said
    assert "*: not significantly worse than the largest saving" in said
    assert "significant savings first; points are chosen on validation: a mean" in said


def test_a_quality_is_reached_at_the_least_cost(points, bench):
    aim = float(points[points["learner"] == "toy"]["accuracy"].median())
    ended = bench("best", "--quality", repr(aim))
    assert f"least cost with accuracy {aim:.6g}" in ended.out
    own = points[(points["learner"] == "toy") & (points["accuracy"] >= aim)]
    assert float(row_of(ended.out, "toy")[3]) == pytest.approx(own["total_cost"].min(), abs=0.005)


def test_all_verbs_choose_the_same_point(points, bench):
    said = re.search(r"toy: .* at a cost of (\S+) per row", bench("best", "--keep", "95%").out)
    shown = bench("features", "--keep", "95%", "--learner", "toy").out
    assert "what toy buys at 95% of gbrt's accuracy" in shown
    bought = bench("features", "--keep", "95%", "--learner", "toy", "-o", "toy.csv")
    assert bought.status == 0, bought.err
    frame = pd.read_csv("toy.csv")
    assert float((frame["price"] * frame["share"]).sum()) == pytest.approx(
        float(said[1]), abs=0.006
    )
    ended = bench("model", "export", "--learner", "gbrt", "--keep", "95%", "-o", "model")
    assert ended.status == 0, ended.err
    about, aim = load("model").about, aim_of(points, 0.95)
    assert about["valid"]["quality"] >= aim
    assert bench("model", "check", "model").status == 0


@pytest.mark.parametrize("written", ["c", "folder"])
def test_one_point_is_exported_and_a_line_names_the_boards_mixture(written, points, bench):
    own, aim = points[points["learner"] == "gbrt"], aim_of(points, 0.99)
    reaching = own[own["accuracy"] >= aim].nsmallest(1, "total_cost").iloc[0]
    budget = 0.7 * own["total_cost"].max()  # less than one tree, more than the constant
    within = own[own["total_cost"] <= budget].nlargest(1, "accuracy").iloc[0]
    limits = {("--keep", "99%"): reaching, ("--quality", repr(float(aim))): reaching}
    for limit, one in {**limits, ("--budget", repr(float(budget))): within}.items():
        words = ("--learner", "gbrt", *limit)
        ended = bench("model", "export", *words, "--format", written, "-o", written)
        assert ended.status == 0, ended.err
        figures = f"accuracy {one['accuracy']:.4f} at cost {one['total_cost']:.2f} on validation"
        if limit[0] != "--budget":
            line = (
                f"(the board mixes two points: {aim:.4f} at {least_cost(points, 'gbrt', aim):.2f})"
            )
            assert f"one point is exported: {figures} {line}" in ended.out
        else:
            assert f"one point is exported: {figures} (the board mixes two points: " in ended.out
        trees = json.loads(one["point"]).get("trees")
        assert f"gbrt at {f'trees={trees}' if trees else 'the constant'}, trained" in ended.out


def test_no_line_where_the_board_does_not_mix(points, bench):
    words = ("model", "export", "--learner", "gbrt", "-o", "model")
    assert "one point is exported" not in bench(*words, "--budget", "inf").out
    exact = points[points["learner"] == "gbrt"]["accuracy"].max()
    assert "one point is exported" not in bench(*words, "--quality", repr(float(exact))).out


def test_what_chooses_a_point_has_one_default(points, bench):
    assert bench("features").out == bench("features", "--keep", "99%").out
    assert "buys at 99% of gbrt's accuracy" in bench("features").out
    pair = ("compare", "toy", "gbrt")
    assert bench(*pair).out == bench(*pair, "--keep", "99%").out
    for folder, words in {"usual": (), "asked": ("--keep", "99%")}.items():
        ended = bench("model", "export", "--learner", "gbrt", *words, "-o", folder)
        assert f"wrote {folder}, at 99% of gbrt's accuracy" in ended.out
    assert load("usual").about == load("asked").about
    result = bench_core.load_run()
    assert repr(result.best()) == repr(result.best(keep=0.99))
    assert f" {result.best().learner} at 99% of gbrt's accuracy, " in repr(result.best())
    assert result.features("toy").equals(result.features("toy", keep=0.99))
    assert result.compare("toy", "gbrt").equals(result.compare("toy", "gbrt", keep=0.99))
    assert result.compare("toy", "gbrt")["compared"].tolist() == ["at 99% of gbrt's accuracy"]


def test_an_infinite_budget_is_the_best_at_any_cost(points, bench):
    best = points[points["accuracy"] == points["accuracy"].max()].nsmallest(1, "total_cost")
    found = bench_core.load_run().best(math.inf)
    assert found.valid_quality == pytest.approx(best["accuracy"].iloc[0])
    assert dict(found.point) == json.loads(best["point"].iloc[0])
    ended = bench("best", "--budget", "inf")
    assert "data.csv: best accuracy at any cost" in ended.out
    assert row_of(ended.out, found.learner)[3] == f"{found.cost:.2f}"
    words = ("--learner", "gbrt", "--budget", "inf", "-o", "dearest")
    assert "wrote dearest, at any cost" in bench("model", "export", *words).out
    assert load("dearest").about["budget"] is None
    for verb in ("report", "best"):
        ended = bench(verb, "--budget", "cap inf")
        assert "budget 'cap inf' is not a cost" in ended.err


def test_pairs_are_compared_where_both_keep_the_share(points, bench):
    ended = bench("compare", "toy", "gbrt", "--keep", "95%")
    assert ended.status == 0, ended.err
    rows = bench("best", "--keep", "95%").out
    costs = {name: float(row_of(rows, name)[1]) for name in ("toy", "gbrt")}
    quality = {name: row_of(rows, name)[4] for name in ("toy", "gbrt")}
    assert "accuracy at 95% of gbrt's accuracy, 1 repeat of" in ended.out
    assert f"toy {quality['toy']}" in ended.out
    assert f"gbrt {quality['gbrt']}" in ended.out
    ratio = re.search(
        r"gbrt needs ([\d.]+)x toy's cost for the same quality \(95%: ([\d.]+) to", ended.out
    )
    assert float(ratio[1]) == pytest.approx(costs["gbrt"] / costs["toy"], abs=0.01)
    assert float(ratio[2]) <= float(ratio[1])


def test_python_asks_in_the_same_words(points, bench):
    result = bench_core.load_run()
    best = result.best(keep=0.95)
    said = bench("best", "--keep", "95%").out
    figures = f"{best.valid_quality:.4f} on validation, {best.quality:.4f} on test, at a cost of"
    assert f"{best.learner}: accuracy {figures} {best.cost:.2f} per row" in said
    assert best.valid_quality >= aim_of(points, 0.95)
    assert f"{best.valid_quality:.4f} on validation, {best.quality:.4f} on test" in repr(best)
    assert best.features["cost per row"].sum() == pytest.approx(best.cost)
    assert result.best(quality=best.valid_quality - 1e-9).cost == pytest.approx(best.cost, abs=1e-4)
    pair = result.compare("toy", "gbrt", keep=0.95).iloc[0]
    assert pair["quality a"] == pytest.approx(
        float(row_of(bench("best", "--keep", "95%").out, "toy")[4]), abs=5e-5
    )
    with pytest.raises(UsageError, match=r"^keep: '1\.5' is not a share: write 99% or 0\.99"):
        result.best(keep=1.5)
    with pytest.raises(UsageError, match=r"^budget and keep: give only one of them"):
        result.features(budget=3, keep=0.9)
    with pytest.raises(UsageError, match=r"no point of toy reaches accuracy 2 on validation \(0\."):
        result.features("toy", quality=2)


WRONG = {
    ("best", "--keep", "99%", "--budget", "3"): "--budget and --keep: give only one of them",
    ("best", "--keep", "1", "--quality", "1"): "--keep and --quality: give only one of them",
    ("features", "--keep", "99"): "--keep: '99' is not a share: write 99% or 0.99",
    ("compare", "toy", "gbrt", "--keep", "0%"): "--keep: '0%' is not a share",
    ("compare", "toy", "gbrt", "--quality", "2"): "no result of toy and gbrt at accuracy 2",
    (
        "model",
        "export",
        "--quality",
        "2",
        "-o",
        "m",
    ): "no point of any learner reaches accuracy 2 on",
    ("best", "--quality", "99%"): "--quality '99%' is not a number: for a share of the reference's",
    ("model", "export", "--keep", "x", "-o", "m"): "--keep: 'x' is not a share",
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_what_cannot_be_kept_is_one_line(words, done, bench):
    ended = bench(*words)
    assert WRONG[words] in ended.err + ended.out
    assert ended.status == (0 if "no result" in WRONG[words] else 2)


def test_without_a_reference_a_line_names_the_remedy(bench, material):
    assert bench("run", *QUICK, "-l", "toy").status == 0
    ended = bench("best", "--keep", "99%")
    assert ended.status == 1
    assert "the run has no reference with a result: choose by a budget or a quality" in ended.out
    assert "run it with --reference NAME" in ended.out
    ended = bench("best")
    assert ended.status == 0
    assert "run it with --reference NAME; shown is the best at any cost" in ended.out
    assert ended.out.partition("\n")[2] == bench("best", "--budget", "inf").out
    assert bench("best", "--quality", "0.5").status == 0


def test_a_budget_above_every_point_is_said_to_limit_no_learner(points, bench):
    best = points.sort_values(["accuracy", "total_cost"], ascending=[False, True])
    most = best.groupby("learner", observed=True)["total_cost"].first().max()
    words = "this budget limits no learner"
    assert f"{words}: none costs more than {most:.2f}" in bench("best", "--budget", "1000").out
    assert words not in bench("best", "--budget", str(most - 0.01)).out


def test_a_share_that_the_constant_has_costs_nothing(points, bench):
    share = np.round(0.9 * points["accuracy"].min() / points["accuracy"].max(), 3)
    ended = bench("best", "--keep", str(share))
    assert "the best constant already reaches" in ended.out
    assert "on validation, at no cost" in ended.out


@pytest.mark.parametrize("verb", ["best", "features", "compare", "model export"])
def test_help_shows_an_example(verb, bench):
    text = bench(*verb.split(), "--help").out + bench("model", "--help").out
    assert re.search(rf"bench {verb} .*--keep 9\d%", text)
