"""What a run's result answers, against the store's rows and hand calculations."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench_reports.best import reached
from helpers.kit import refused

import bench_core
from bench_core import Interrupted
from bench_core.leaderboard.board import Pick
from bench_core.leaderboard.reports import ReportRequest, write_report
from bench_core.leaderboard.selection import Selection
from bench_core.plugins import load_registry
from bench_core.results.budgets import Budget
from bench_core.results.operating_points import Criterion

N = 200
RNG = np.random.default_rng(3)
X = pd.DataFrame(RNG.normal(size=(N, 4)), columns=["age", "sex", "scan", "noise"])
Y = (X["age"] + 2 * X["scan"] + 0.5 * RNG.normal(size=N) > 0).astype(int)
COSTS = {"age": 1, "sex": 1, "scan": 20, "noise": 8}
TOYS = {
    "costs": COSTS,
    "learners": {"toy-prefix": {"tradeoff": [0.1, 1.0]}, "toy-stacked": {}},
    "plugins": "helpers.toys",
    "executor": "inline",
    "progress": False,
    "name": "visits",
}


@pytest.fixture(scope="module")
def result(tmp_path_factory, cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(cache))
        return bench_core.run(X, Y, **TOYS, store=tmp_path_factory.mktemp("run") / "bench.db")


def test_it_shows_itself_in_a_few_lines(result):
    lines = repr(result).splitlines()
    assert lines[0] == result.conclusion
    assert lines[0].startswith("visits: toy-")
    assert " is best on only 43 validation rows: accuracy " in lines[0]
    assert lines[1].startswith(f"run {result.run}: 3 ok in ")
    assert len(lines) == 3


def test_the_board_has_a_row_for_each_learner(result):
    board = result.board(columns="all")
    assert set(board["learner"]) == {"toy-prefix", "toy-stacked"}
    rows = result.frame().query("learner == 'toy-stacked'")
    valid, test = (rows[rows["split"] == s].set_index("point") for s in ("valid", "test"))
    top = valid[valid["accuracy"] == valid["accuracy"].max()]["cost"].idxmin()
    own = board.set_index("learner").loc["toy-stacked"]
    assert own["accuracy"] == test.loc[top, "accuracy"]
    assert own["cost"] == test.loc[top, "cost"]
    assert own["low"] <= own["accuracy"] <= own["high"]
    assert min(board["tier"]) == 1
    for name in ("area", "regret"):
        assert (board[f"{name} low"] <= board[f"{name} high"]).all() or board[name].isna().all()
    assert board["sure"].isna().all()  # without a reference
    assert set(board["quality rank"]) <= {"1", "1-2", "2"}
    usual = ["learner", "cost", "cheaper", "cheaper low", "cheaper high", "wrong"]
    assert [*result.board()] == [*usual, "accuracy", "sure", "marks"]
    assert [*result.board(columns=["area", "audit"])] == ["learner", "area", "audit"]


def test_a_metric_that_is_not_defined_on_a_fold_has_no_figure_anywhere(home):
    """Three rows of a class cannot be in the test rows of five folds."""
    heard = []
    rare = (np.arange(N) < 3).astype(int)
    how = {**TOYS, "metrics": "auc", "cv": 5, "on_event": heard.append}
    found = bench_core.run(X, rare, **how)
    notes = [one.message for one in heard if one.kind == "note" and "not defined" in one.message]
    board, name = found.board(columns="all"), "auc is not defined on "
    assert notes
    assert all(f"visits: {name}" in note and "it holds one class" in note for note in notes)
    assert board[["auc", "low", "high", "cheaper", "area"]].isna().all(axis=None)
    assert name in found.report(home / "board.md").read_text()
    for suffix in (".html", ".csv", ".tex"):
        assert found.report(home / f"board{suffix}").stat().st_size
    assert "toy-prefix" in found._repr_html_()
    refused(f"visits: no comparison: {name}", found.compare, "toy-prefix", "toy-stacked")


def test_at_a_budget_only_what_it_affords_counts(result):
    at = result.at([0, 0.5, 1.0, 30])
    assert set(at["budget"]) == {0, 0.5, 1.0, 30.0}
    assert (at["cost"] <= at["budget"]).all()
    rows = result.frame()
    constant = rows[(rows["split"] == "test") & (rows["point"] == '{"constant":1}')]["accuracy"]
    (share,) = {*constant}  # of the most frequent class, for all learners
    assert (at[at["budget"] == 0]["accuracy"] == share).all()
    # no mixture with the constant: a column costs at least 1
    assert (at[at["budget"] == 0.5]["accuracy"] == share).all()


def test_the_best_of_a_learner_is_its_own(result):
    names = [*result.board()["learner"]]
    assert [result.best(math.inf, learner=name).learner for name in names] == names
    refused("'toyy'|known: toy-prefix", result.best, 5, learner="toyy")


def test_the_best_under_a_cap_that_was_not_measured_says_so(result):
    assert "within 5 for every row (a cap that was not measured), " in repr(result.best(5, "cap"))


def test_the_best_within_a_budget_names_setting_and_purchases(result):
    first = result.best(2)  # the points cost 1, 2 more ("sex" is of no use), 21 and more
    assert first.cost == first.features["cost per row"].sum() == 1
    assert first.interval.low < first.quality < first.interval.high
    best = result.best(math.inf)
    assert best.learner in repr(best)
    bought = best.features.set_index("features")
    assert set(bought.index) == set(COSTS)
    assert bought["cost per row"].sum() == pytest.approx(best.cost)
    own = result.at(1000).set_index("learner").loc[best.learner]
    assert tuple(best.interval) == (own["low"], own["high"])
    assert own["low"] < own["high"]
    assert (best.standing.tier, f"(95%: {own['low']:.4f} to " in repr(best)) == (own["tier"], True)
    assert result.best(0).cost == 0  # the constant
    html = best._repr_html_()
    assert html.startswith(f"<p>visits: {best.learner}")
    assert html.count("<tr>") == len(COSTS)


def test_the_best_by_another_metric_of_the_run_is_chosen_by_it(home):
    result = bench_core.run(X, Y, **TOYS, metrics=["accuracy", "log_loss"])
    best, rows = result.best(math.inf, metric="log_loss"), result.frame()
    valid = rows[rows["split"] == "valid"]
    assert best.metric.name == "log_loss"
    assert best.valid_quality == pytest.approx(valid["log_loss"].min())
    assert math.isnan(best.interval.low)
    lacks = "the run has no auc, only accuracy, log_loss; without training: the same call with"
    refused(lacks, result.best, metric="auc")
    refused("unknown metric of this run 'log-loss': did you mean", result.best, metric="log-loss")


def test_the_best_says_that_its_quality_falls_on_test(result, home):
    assert "falls" not in repr(result.best())
    parts = np.repeat(["train", "valid", "test"], [N - 120, 60, 60])
    turned = bench_core.run(X, np.where(parts == "test", 1 - Y, Y), split=parts, **TOYS)
    for best in (turned.best(), turned.best(math.inf)):
        assert f"; {best.learner} falls on test by more than chance" in repr(best)


def test_pairs_and_curves_are_frames(result):
    pair = result.compare("toy-prefix", "toy-stacked", budget=30).iloc[0]
    assert pair["cost ratio low"] <= pair["cost ratio high"]
    assert pair["more data"] > 0
    assert pair["compared"] == "within 30 on average"
    assert result.compare("toy-prefix", "toy-stacked")["compared"].tolist() == ["at any cost"]
    assert pair["difference"] == pytest.approx(pair["quality a"] - pair["quality b"])
    mine = result.compare(against="toy-stacked", budget=30).iloc[0]
    assert (mine["a"], mine["b"]) == ("toy-stacked", "toy-prefix")
    assert mine["difference"] == pytest.approx(-pair["difference"])
    curve = result.curve("toy-prefix")
    assert (curve["low"] < curve["high"]).any()
    assert curve["budget"].is_monotonic_increasing
    assert set(result.curve()["learner"]) == {"toy-prefix", "toy-stacked"}


def test_a_notebook_shows_tables_with_every_text_escaped(home):
    result = bench_core.run(X, Y, **(TOYS | {"name": "<b>visits"}))
    html = result._repr_html_()
    assert html.count("<table") == 1
    assert "<b>" not in html
    assert "<th>cheaper</th>" in html
    assert "in cost" not in html
    assert "&lt;b&gt;visits" in html


def test_figures_and_tables_for_papers(result, home):
    pytest.importorskip("matplotlib")
    figure = result.plot()
    assert "<svg" in figure._repr_svg_()
    assert figure.svg in result._repr_html_()
    assert figure.save(home / "curve.svg").read_text() == figure.svg
    refused("x.csv: a figure is .svg, .pdf or .png", figure.save, "x.csv")
    alone = result.plot(learners="toy-prefix").save(home / "alone.svg").read_text()
    assert "<!-- toy-stacked -->" in figure.svg
    assert "<!-- toy-prefix -->" in alone
    assert "<!-- toy-stacked -->" not in alone
    refused("unknown learner of run 1 'toy':", result.plot, learners=["toy"])
    assert "\\begin{tabular}" in result.to_latex()
    assert result.report(home / "board.html").stat().st_size > 1000
    for path in ("board.doc", "board"):
        refused(f"{path}: no report|known: .csv", result.report, path)


def test_a_finished_run_is_loaded_from_its_store(result):
    loaded = bench_core.load_run(store=result.store)
    assert bench_core.load_run(1, store=result.store).run == result.run
    assert (loaded.run, loaded.counts) == (result.run, {"ok": 3})
    pd.testing.assert_frame_equal(loaded.board(), result.board())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.board(columns="area lo"), "column|'area lo'|did you mean area low"),
        (lambda r: r.board("visit"), "unknown data set of this run 'visit': did you mean visits?"),
        (lambda r: r.curve("toy"), "unknown learner of this run 'toy'"),
        (lambda r: r.features("toy"), "unknown learner of this run 'toy'"),
        (lambda r: r.features(5), "unknown learner of this run 5: known: "),
        (lambda r: r.compare("toy-prefix"), "compare needs two learners"),
        (lambda r: r.best([1, 2]), "budget: give one budget here, such as 1"),
        (lambda r: r.at([]), "budgets is empty: give costs per row"),
        (lambda r: r.best(math.inf).export(__file__), ": a file; name an empty or a new folder"),
        (lambda r: r.best(5, budget_kind="median"), "unknown kind 'median'"),
        (lambda r: r.best(keep=1.5), "keep: '1.5' is not a share: write 99% or 0.99"),
        (lambda r: r.features(budget=3, keep=0.9), "budget and keep: give only one of them"),
        (
            lambda r: r.features("toy-prefix", quality=2),
            "accuracy 2 is out of reach: it is at most",
        ),
        (
            lambda r: r.features("toy-prefix", quality=1),
            "toy-prefix is sure to reach accuracy 1 on",
        ),
    ],
)
def test_what_cannot_be_answered_is_one_line(call, message, result):
    refused(message, call, result)


def test_a_report_takes_learners_as_the_command_does(result, home):
    result.report(home / "b.csv", learners="toy-prefix, toy-stacked")
    rows = pd.read_csv(home / "b.csv")
    assert {*rows["learner"]} == {"toy-prefix", "toy-stacked"}


def test_several_data_sets_are_asked_for_by_name(home, monkeypatch):
    result = bench_core.run(
        **{k: v for k, v in TOYS.items() if k not in ("costs", "name", "learners")},
        learners="toy-prefix",
        settings={"toy-prefix.tradeoff": 0.1},
        data=["toy-rank", "toy-binary"],
    )
    assert list(result.board()["dataset"]) == ["toy-rank", "toy-binary"]
    assert "dataset" not in result.board("toy-rank")
    refused("several data sets: give dataset='toy-rank' or another", result.best, 5)
    with monkeypatch.context() as patched:  # no board of all data sets is needed
        patched.setattr("bench_core.api.result.boards", None)
        fresh = bench_core.load_run()
        assert fresh.best(5, dataset="toy-binary").dataset == "toy-binary"
        assert len(fresh.features("toy-prefix", 5, dataset="toy-rank"))
    asked = ReportRequest(result.store, result.run, home / "b.csv", data=["toy-binary"])
    write_report(load_registry(), asked)
    assert "toy-binary" in (written := (home / "b.csv").read_text())
    assert "toy-rank" not in written


def test_a_run_without_results_says_why(home):
    result = bench_core.run(X, Y, **(TOYS | {"learners": "toy-broken"}))
    assert repr(result).splitlines()[1].startswith("failed: toy-broken on visits: ")
    assert result.conclusion == ""
    assert "<table" not in result._repr_html_()
    refused("no finished trial", result.board)


def test_an_interrupted_cell_keeps_what_was_done_and_the_same_cell_goes_on(home):
    def interrupt(event):
        if event.kind == "finish" and event.activity == "score":
            raise KeyboardInterrupt

    with pytest.raises(
        Interrupted, match=r"1 ok kept in results/bench.db; the same call"
    ) as caught:
        bench_core.run(X, Y, **TOYS, on_event=interrupt)
    kept = caught.value.result
    assert isinstance(kept, bench_core.Result)
    assert len(kept.board()) == 1
    assert "interrupted" in repr(kept)
    again = bench_core.run(X, Y, **TOYS)
    assert (again.run, again.reused, again.counts) == (kept.run, 1, {"ok": 3})


def test_a_cost_under_a_cap_is_an_upper_bound_unless_nothing_is_bought(result):
    pick = Pick(0.9, 0.25, (('{"cap": 0.5}', "{}"),), valid_quality=0.9)
    capped = replace(result.best(math.inf), pick=pick)
    assert "at a cost of at most 0.25 (" in repr(capped)
    assert "at a cost of 0.00 (" in repr(replace(capped, pick=replace(pick, cost=0.0)))
    named = {"dataset": "visits", "learner": "toy", "metric": Criterion("accuracy", True)}
    limit, none = Budget(0.5, "cap"), pd.DataFrame()
    top = Selection(**named, limit=limit, pick=pick, cheap=pick, points=none, audit="", of=1)
    bound = "at a cost of at most 0.25 per row; the exported model may pay less"
    assert reached(top).endswith(bound)
    free = replace(top, pick=replace(pick, cost=0.0))
    assert reached(free).endswith("at a cost of 0.00 per row")
