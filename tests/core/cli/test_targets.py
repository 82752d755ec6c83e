"""``--keep SHARE`` and ``--quality Q``: the least cost that reaches a quality, in every verb that
chooses a point."""

import json
import math
import re
from pathlib import Path
from statistics import NormalDist

import pandas as pd
import pytest
from helpers.commands import QUICK

import bench_core
from bench_core.leaderboard import assembly, selection
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import Saved
from bench_core.leaderboard.certainty import savings
from bench_core.results.store import Store
from bench_core.serving import load
from bench_core.statistics.comparison import Interval

RUN = (*QUICK, "--costs", "costs.csv", "-l", "toy,gbrt", "--reference", "gbrt")
PLAIN = ("--set", "gbrt.trees=8", "--set", "toy.columns=[1,2,3]", "-m", "accuracy,log_loss")


@pytest.fixture
def done(ran):
    return ran(*RUN, *PLAIN).ok()


@pytest.fixture
def points(done, bench):
    """The operating points on validation."""
    bench("export", "-o", "all.csv")
    frame = pd.read_csv("all.csv")
    return frame[frame["split"] == "valid"]


def sure(share=None, quality=0.0):
    """The cheapest point of each learner whose mean on validation exceeds the target by 1.645
    standard errors, row by row: (cost, accuracy, point)."""
    points = []
    for one in Store("results/bench.db").values("last", split="valid"):
        for k, point in enumerate(one.settings):
            right, cost = one.metric[k].astype(float), float(one.cost[k].mean())
            points.append((one.trial.learner, cost, right, dict(point)))
    of_reference = [one for one in points if one[0] == "gbrt"]
    best = max(of_reference, key=lambda one: (one[2].mean(), -one[1]))[2]
    found = {}
    for learner, cost, right, point in sorted(points, key=lambda one: one[1]):
        beyond = right - (quality if share is None else share * best)
        if beyond.mean() >= 1.645 * beyond.std(ddof=1) / math.sqrt(len(beyond)):
            found.setdefault(learner, (cost, right.mean(), point))
    return found


def row_of(text, learner):
    (line,) = [line for line in text.splitlines() if re.match(rf"{learner} +\d", line)]
    return re.split(r" {2,}", line)


@pytest.mark.parametrize("share", [0.99, 0.9])
def test_best_is_the_cheapest_that_is_sure_to_keep_the_share(done, bench, share):
    ended = bench("best", "--keep", f"{share:.0%}").ok()
    title = f"data.csv: least cost that is sure to keep {share:.0%} of gbrt's accuracy"
    assert title in ended.out
    found = sure(share)
    assert set(found) == {"toy", "gbrt"}
    for name, (cost, accuracy, _) in found.items():
        cells = row_of(ended.out, name)
        assert float(cells[5]) == pytest.approx(cost, abs=0.005)
        assert float(cells[6]) == pytest.approx(accuracy, abs=5e-5)
    first = min(found, key=found.get)
    said = re.search(rf"{first}: accuracy (\S+) on validation, \S+ on test, at", ended.out)
    assert float(said[1]) == pytest.approx(found[first][1], abs=5e-5)
    assert bench("best", "--keep", str(share)).out == ended.out
    if share == 0.99:
        assert bench("best").out == ended.out


def test_another_share_has_the_same_sentence_everywhere(bench):
    run = ("run", "--data", "breast-cancer", "-l", "cegb,gbrt", "--executor", "inline")
    run = (*run, "--set", "gbrt.trees=20", "--set", "cegb.trees=20")
    bench(*run).ok()
    usual, asked = bench("report").words, bench("report", "--keep", "90%").words
    sentence = re.search(r"cegb reads [\d.]+ .*?\.(?= )", asked)[0]
    assert sentence not in usual
    best = bench_core.load_run().best(keep="90%")
    assert f" {best.cost:.2f} " in sentence
    assert "95% sure to have at least 90% of gbrt's best accuracy" in asked
    for verb in ("best", "features"):
        assert sentence in bench(verb, "--keep", "90%").words
    bench("report", "--keep", "90%", "-o", "board.html").ok()
    page = Path("board.html").read_text(encoding="utf-8")
    assert sentence.partition(", ")[0] in page
    assert "--keep 0.9 " in page  # the command that writes it
    first = bench_core.load_run()
    bench(*run, "--keep", "90%").ok()
    assert sentence in bench("report").words
    assert sentence not in bench("report", "1").words  # the first run has its own share
    assert sentence not in first.conclusion
    assert bench("best").out == bench("best", "--keep", "90%").out
    result = bench_core.load_run()
    assert repr(result.best()) == repr(best)
    assert result.compare("cegb", "gbrt")["compared"].tolist() == ["at 90% of gbrt's accuracy"]


@pytest.fixture
def lost(monkeypatch):
    """All savings are refuted on test."""
    saved = Saved(Interval(1.2, 2.0), Interval(1.1, 2.1), lost=True)

    def refuted(draws, *given):
        found = zip(draws.names, savings(draws, *given), strict=True)
        return [(saving, saved if name == "toy" else Saved()) for name, (saving, _) in found]

    for module in (assembly, selection):
        monkeypatch.setattr(module, "savings", refuted)


def of_every_verb(bench):
    said = bench("best").out
    result = bench_core.load_run()
    best = result.best()
    assert result.features().equals(result.features(best.learner))
    assert f"what {best.learner} buys at 99%" in bench("features").out
    ended = bench("model", "export", "-p", "mine", "-o", "m")
    exported = re.search(r"(?:error: |\n)(\w+)(?:: its model| at )", ended.err + ended.out)[1]
    first = re.search(r"^(toy|gbrt) +\d", said, re.M)[1]
    assert exported == first == best.learner
    return first, said, ended, best


def test_every_verb_takes_the_model_of_the_conclusion(done, bench):
    first, said, _, best = of_every_verb(bench)
    assert first == "toy"
    assert best.reason == ""
    assert "no learner is sure" not in said
    store = Store("results/bench.db")
    (board,) = boards(store.info("last"), store.frame("last"), store)
    assert (board.answer.learner, board.answer.cheap.cost) == ("toy", best.cost)


def test_where_no_learner_saves_every_verb_takes_the_reference_and_says_so(done, bench, lost):
    why = "no learner is sure to keep 99% of gbrt's accuracy for less than gbrt"
    first, said, ended, best = of_every_verb(bench)
    assert first == "gbrt"
    assert f"\ndata.csv: {why}\n" in said
    assert why in ended.out
    assert why in bench("features").err
    assert best.reason == why
    _, accuracy, point = sure(0.99)["gbrt"]
    assert (best.valid_quality, best.setting.point) == (pytest.approx(accuracy), point)


def test_best_explains_its_marks(done, bench, lost):
    said = bench("best").out
    assert "!: on test that point is significantly below 98% of gbrt's best accuracy, so" in said
    assert "*:" not in said


def test_a_learner_that_is_not_sure_is_likely(done, bench):
    said = bench("best", "--quality", "0.85").out
    assert "% sure: the probability that the likeliest model will reach it" in said
    assert row_of(said, "toy")[2] == "yes"
    *_, chance, _, _, accuracy = row_of(said, "gbrt")[:6]
    n = len(next(Store("results/bench.db").values("last", split="valid")).weights)
    error = math.sqrt(float(accuracy) * (1 - float(accuracy)) / (n - 1))
    beyond = NormalDist().cdf((float(accuracy) - 0.85) / error)
    assert chance == f"{math.floor(100 * beyond)}% sure"
    assert set(sure(quality=0.85)) == {"toy"}


@pytest.mark.parametrize("words", [("--keep", "99%"), ("--budget", "16")])
def test_one_answer_has_one_cost_everywhere(words, done, bench):
    """On the board, of ``best``, ``features``, an export replayed on test rows, and Python."""
    kind, amount = words[0].strip("-"), words[1]
    result = bench_core.load_run()
    best = result.best(learner="gbrt", **{kind: amount if kind == "keep" else float(amount)})
    store = Store("results/bench.db")
    (board,) = boards(store.info("last"), store.frame("last"), store)
    (row,) = (one for one in board.rows if one.learner == "gbrt")
    if kind == "keep":
        assert (best.cost, best.quality) == (row.cheap.cost, row.cheap.quality)
    if kind == "budget":
        step = [one for one in row.curve if one.budget <= 16][-1]
        assert (best.cost, best.quality) == (step.pick.cost, step.pick.quality)
    shown = row_of(bench("best", *words).out, "gbrt")
    assert f"{best.cost:.2f}" in shown
    assert f"{best.quality:.4f}" in [cell.rstrip("*") for cell in shown]
    gbrt = ("--learner", "gbrt")
    bench("features", *gbrt, *words, "-o", "bought.csv").ok()
    bought = pd.read_csv("bought.csv")
    assert (bought["price"] * bought["share"]).sum() == pytest.approx(best.cost, rel=1e-5)
    for written in ("c", "folder"):
        bench("model", "export", *gbrt, *words, "--format", written, "-o", written).ok()
    about = load("folder").about
    assert about["point"] == dict(best.setting.point)
    assert about["test"]["cost"] == pytest.approx(best.cost, rel=1e-12)
    assert (about["test"]["quality"], about["valid"]["quality"]) == (
        pytest.approx(best.quality),
        pytest.approx(best.valid_quality),
    )
    assert about["reference"] == {
        "learner": "gbrt",
        "quality": pytest.approx(row.best.quality),
        "cost": pytest.approx(row.best.cost),
    }
    assert "the same as when exported" in bench("model", "check", "folder").out


def test_what_chooses_a_point_has_one_default(points, bench):
    at_target = bench("features", "--keep", "99%").out
    assert bench("features").out == at_target
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
    best = points[points["accuracy"] == points["accuracy"].max()].nsmallest(1, "cost")
    found = bench_core.load_run().best(math.inf)
    assert found.valid_quality == pytest.approx(best["accuracy"].iloc[0])
    assert dict(found.setting.point) == json.loads(best["point"].iloc[0])
    ended = bench("best", "--budget", "inf")
    assert "data.csv: best accuracy at any cost" in ended.out
    assert row_of(ended.out, found.learner)[3] == f"{found.cost:.2f}"
    words = ("--learner", "gbrt", "--budget", "inf", "-o", "dearest")
    assert "wrote dearest, at any cost" in bench("model", "export", *words).out
    assert load("dearest").about["budget"] is None
    ended = bench("compare", "toy", "gbrt", "--quality", "2")
    assert (ended.status, "toy and gbrt are not sure to reach accuracy 2" in ended.out) == (0, True)


def test_pairs_are_compared_where_both_keep_the_share(points, bench):
    ended = bench("compare", "toy", "gbrt", "--keep", "95%").ok()
    rows = bench("best", "--keep", "95%").out
    costs = {name: float(row_of(rows, name)[1]) for name in ("toy", "gbrt")}
    quality = {name: row_of(rows, name)[4] for name in ("toy", "gbrt")}
    assert "accuracy at 95% of gbrt's accuracy, 1 repeat of" in ended.out
    assert f"toy {quality['toy']}" in ended.out
    assert f"gbrt {quality['gbrt']}" in ended.out
    ratio = re.search(
        r"gbrt needs ([\d.]+)x toy's cost for the same quality \(95%: ([\d.]+)x to", ended.out
    )
    assert float(ratio[1]) == pytest.approx(costs["gbrt"] / costs["toy"], abs=0.06)
    assert float(ratio[2]) <= float(ratio[1])


def test_without_a_reference_a_line_names_the_remedy(bench, material):
    bench("run", *QUICK, "-l", "toy").ok()
    ended = bench("best", "--keep", "99%")
    assert ended.status == 1
    assert "the run has no reference with a result: choose by a budget or a quality" in ended.out
    assert "run it with --reference NAME" in ended.out
    ended = bench("best").ok()
    assert "run it with --reference NAME; shown is the best at any cost" in ended.out
    assert ended.out.endswith(bench("best", "--budget", "inf").out)
    bench("best", "--quality", "0.5").ok()


def test_a_budget_above_every_point_is_said_to_limit_no_learner(points, bench):
    best = points.sort_values(["accuracy", "cost"], ascending=[False, True])
    most = best.groupby("learner", observed=True)["cost"].first().max()
    words = "this budget limits no learner"
    assert f"{words}: none costs more than {most:.2f}" in bench("best", "--budget", "1000").out
    assert words not in bench("best", "--budget", str(most - 0.01)).out


def test_best_shows_the_model_of_a_named_learner(done, bench):
    limits = [(("--keep", "90%"), {"keep": 0.9}), (("--budget", "inf"), {"budget": "inf"})]
    for words, call in limits:
        ended = bench("best", "--learner", "gbrt", *words)
        best = bench_core.load_run().best(learner="gbrt", **call)
        cells = row_of(ended.out, "gbrt")
        assert f"{best.cost:.2f}" in [cell.rstrip("*") for cell in cells]
        assert f"gbrt: accuracy {best.valid_quality:.4f} on validation" in ended.out
        assert "toy " not in ended.out
    unknown = bench("best", "--learner", "gbtr")
    assert (unknown.status, "did you mean gbrt?" in unknown.err) == (2, True)


def test_a_metric_that_the_run_lacks_is_named_with_the_command_that_adds_it(done, bench):
    ended = bench("best", "--metric", "auc")
    assert ended.status == 2
    words = " ".join(ended.err.split())
    assert "the run has no auc, only accuracy, log_loss; without training: bench run " in words
    assert "--metric accuracy,log_loss,auc" in words
    second = bench("best", "--metric", "log_loss", "--budget", "inf").words
    assert "values per query or row of its first metric only, accuracy; for those of" in second
    assert "--metric log_loss,accuracy" in second


def test_a_quality_beyond_the_metric_is_named_as_such(done, bench):
    said = bench("best", "--quality", "85").out
    assert "accuracy 85 is out of reach: it is at most 1; did you mean 0.85?" in said
    assert "at most" not in bench("best", "--quality", "85", "--metric", "log_loss").out
