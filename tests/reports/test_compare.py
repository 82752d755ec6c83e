"""``bench compare`` through the command line."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from bench_reports.compare import FIRST, SHARED, TESTS, TITLES, _sentences, as_latex
from helpers.commands import QUICK

import bench_core
from bench_core import MetricValues, Task
from bench_core.leaderboard.pairs import Pair
from bench_core.results.store import Store
from bench_core.statistics.comparison import Difference, Interval
from bench_core.terminal.tables import Table

RUN = (*QUICK, "--costs", "costs.csv", "-l", "toy,gbrt,miser", "--set", "gbrt.trees=5")


@pytest.fixture
def done(ran, material):
    assert ran(*RUN, "--set", "miser.trees=5", "-m", "accuracy").status == 0
    return material


def rows_of(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_every_pair_has_a_line_and_a_sentence(done, bench):
    ended = bench("compare", "toy", "gbrt", "miser")
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    assert "accuracy at 99% of gbrt's accuracy, 1 repeat of" in lines[0]
    firsts = [tuple(part.split()[0] for part in line.split("  ") if part) for line in lines[2:5]]
    assert [first[:2] for first in firsts] == [("toy", "gbrt"), ("toy", "miser"), ("gbrt", "miser")]
    words = r" needs .*'s cost for the same quality|does not reach the quality"
    assert sum(bool(re.search(words, line)) for line in lines) == 3


def test_against_one_learner_p_is_adjusted_over_its_pairs_only(done, bench):
    """And the probability of being alike does not depend on the other learners."""
    every, mine = done / "every.csv", done / "mine.csv"
    at = ("--budget", "inf", "-o")
    assert bench("compare", "toy", "gbrt", "miser", "--against", "toy", *at, mine).status == 0
    assert bench("compare", "toy", "gbrt", "miser", *at, every).status == 0
    of = {}
    for path in (every, mine):
        rows = rows_of(path)
        of[path] = {(row["a"], row["b"]): row for row in rows}
        assert {int(row["comparisons"]) for row in rows} == {len(rows)}
    assert [*of[mine]] == [("toy", "gbrt"), ("toy", "miser")]
    small, large = sorted(float(row["p"]) for row in of[mine].values())
    expected = [min(1, 2 * small), max(min(1, 2 * small), large)]
    found = sorted(float(row["p adjusted"]) for row in of[mine].values())
    assert found == pytest.approx(expected)
    for pair, row in of[mine].items():
        assert row["p"] == of[every][pair]["p"]
        alone = done / "alone.csv"
        assert bench("compare", *pair, *at, alone).status == 0
        (one,) = rows_of(alone)
        assert one["alike"] == row["alike"] == of[every][pair]["alike"]
    text = bench("compare", "--against", "toy", "--budget", "inf").out
    assert text == bench("compare", "gbrt", "miser", "--against", "toy", "--budget", "inf").out


def test_the_help_explains_what_is_compared_and_a_row(bench):
    shown = bench("compare", "--help").out
    words = " ".join(shown.split())
    assert "Without LEARNERs the first three of the board are compared" in words
    assert "A row of the table is a pair." in words
    _, _, table = shown.partition("A row of 'bench compare budget-boosting cegb', on thyroid:\n")
    titles, row = (re.split("  +", line.strip()) for line in table.splitlines()[:2])
    assert (tuple(titles), len(row), FIRST) == (TITLES, len(TITLES), 3)


def test_without_names_the_first_learners_of_the_board_are_compared(done, bench):
    bench("report", "-o", "board.csv")
    methods = list(dict.fromkeys(row["learner"] for row in rows_of(done / "board.csv")))
    ended = bench("compare")
    assert ended.status == 0
    assert ended.out == bench("compare", *methods[:3]).out
    assert "the first learners of the board: " in ended.err


def test_two_that_cost_nothing_have_no_ratio_of_costs(done, bench):
    ended = bench("compare", "toy", "gbrt", "--budget", "0")
    assert "  toy costs nothing; gbrt needs 0.00 for the same quality\n" in ended.out


TWO = ("toy", "gbrt", "--budget", "inf")


def test_pairs_are_written_for_a_paper(done, bench):
    shown = bench("compare", *TWO).out.splitlines()[2].split("  ")
    p, adjusted = [cell.strip() for cell in shown if cell.strip()][-3:-1]
    for name in ("pairs.tex", "pairs.md", "pairs.csv", "pairs.txt"):
        ended = bench("compare", *TWO, "-o", name)
        assert (ended.status, ended.out) == (0, "")
        run, written = ended.err.splitlines()
        assert run.startswith("run 1, data.csv-quick-")
        assert written == f"wrote {name}"
    table = (done / "pairs.tex").read_text().splitlines()
    row = table[table.index("    \\midrule") + 1]
    assert row.endswith("\\\\")
    cells = [cell.strip() for cell in row.removesuffix("\\\\").split(" & ")]
    assert cells[4:6] == [p, adjusted]
    assert cells[2][0] == cells[2][-1] == "$"
    assert [line for line in table if line.count("&") != 6 and " & " in line] == []
    assert "  \\label{tab:pairs-data-csv-accuracy-at-any-cost}" in table
    (row,) = rows_of(done / "pairs.csv")  # each figure in a cell of its own
    written = f"{float(row['p']):.4f} {float(row['p adjusted']):.4f}"
    assert written == f"{p} {adjusted}".replace("<", "")
    assert (row["dataset"], row["a"], row["b"], row["limit"]) == (
        "data.csv",
        "toy",
        "gbrt",
        "at any cost",
    )
    difference = float(row["quality a"]) - float(row["quality b"])
    assert float(row["difference"]) == pytest.approx(difference, abs=1e-7)
    assert float(row["low"]) <= difference <= float(row["high"])
    assert (done / "pairs.txt").read_text() == bench("compare", *TWO).out
    markdown = (done / "pairs.md").read_text().splitlines()
    assert markdown[0].startswith("data.csv: accuracy at any cost, 1 repeat of ")
    titles, rule, row = (line.strip("| ").split(" | ") for line in markdown[2:5])
    assert (titles[4:6], len(rule)) == (["p", "p adjusted"], len(titles))
    assert [cell.replace("\\", "") for cell in row[4:6]] == [p, adjusted]
    assert markdown[6].startswith("- intervals and p are from")
    assert ".tex, .md, .csv or .txt" in bench("compare", *TWO, "-o", "pairs.doc").err


def test_below_the_first_purchase_learners_are_the_constant(done, bench):
    valid = Store().frame().query("split == 'valid' and cost > 0")
    least = valid.groupby("learner")["cost"].min()
    budget = f"{least.min() / 2:.6g}"
    ended = bench("compare", "toy", "gbrt", "miser", "--budget", budget, "-o", "pairs.tex")
    assert ended.status == 0, ended.err
    text = (done / "pairs.tex").read_text()
    assert "no result of" not in text
    rows = [line for line in text.splitlines() if line.count("&") == 6 and "$" in line]
    assert len(rows) == 3
    assert "gbrt and miser show no difference on these rows" in text


def test_a_learner_ahead_by_far_is_said_to_be_better(done, bench):
    assert bench("run", *RUN[:-4], "-l", "constant,gbrt", "-m", "accuracy").status == 0
    ended = bench("compare", "constant", "gbrt")
    assert "gbrt is better than constant" in ended.out
    assert "constant does not reach" not in ended.out


def test_a_metric_is_named_whole_and_weights_are_not_sizes_of_queries(bench):
    class Within:
        name, higher_is_better, tasks = "within10", True, frozenset({Task.BINARY})

        def values(self, scores, y, queries=None, multiplicity=None):
            return MetricValues(((scores > 0) == y).astype(float), np.ones(len(y)))

    x, names = np.random.default_rng(0).normal(size=(300, 3)), ("toy-prefix", "toy-stacked")
    given = {"sample_weight": 1 + np.arange(300) % 5, "metrics": Within(), "learners": names}
    how = {"plugins": "helpers.toys", "executor": "inline", "reference": names[0]}
    result = bench_core.run(x, x[:, 0] > x[:, 1], **given, **how, progress=False)
    assert "rows of a query" not in " ".join(result.compare(*names, budget=2))
    ended = bench("compare", *names, "--keep", "90%")
    assert "'s within10, " in ended.out, ended
    at = bench("compare", *names, "--budget", "2")
    assert "queries" not in at.out
    assert at.out.startswith("data: within10 at a cost of 2 on average, ")


@pytest.mark.parametrize(
    ("adjusted", "said"),
    [
        (0.04, "a is better than b"),
        (0.13, "a is ahead of b, not significantly: adjusted p is 0.13"),
    ],
)
def test_the_sentence_on_a_pair_goes_by_the_adjusted_p(adjusted, said):
    difference = Difference(0.04, Interval(0.01, 0.07), 0.03, adjusted, 0.0, 1.0)
    pair = Pair("a", "b", (0.97, 0.93), difference, (1.0, 2.0), 2.0, Interval(1.0, 3.0))
    assert next(iter(_sentences(pair, True, "rows"))) == said


def test_the_caption_names_the_test_of_its_repeats():
    for test in TESTS:
        table = Table(("a",), [["1"]], title="t: accuracy")
        (caption,) = [x for x in as_latex([table, test], 0.01).splitlines() if "caption" in x]
        assert [one for one in TESTS if f"{one[1:]}." in caption] == [test]


def test_a_difference_below_what_is_shown_is_signed_in_latex_too():
    table = Table(("a", "b"), [[">-0.0001", "+0.0012"]], title="t: accuracy")
    text = as_latex([table], 0.01)
    assert "\\textgreater{}$-0.0001$ & $+0.0012$" in text


def test_seeds_that_draw_splits_are_judged_by_student(bench):
    run = ("run", "--data", "breast-cancer", "-l", "constant,gbrt", "--set", "gbrt.trees=3")
    assert bench(*run, "--seeds", "0,1").status == 0
    pair = ("compare", "constant", "gbrt", "--budget", "inf")
    assert f"\n{TESTS[2]}\n{SHARED}\n" in bench(*pair).out
    bench(*pair, "-o", "pairs.tex").ok()
    assert f"{SHARED[1:]}." in Path("pairs.tex").read_text()
    assert "note: each seed draws its own rows; those that several share" in bench("report").words
    methods = bench("report", "--methods").out
    assert "Each seed draws its own rows of breast-cancer." in methods
    assert "rows that several seeds share" in methods
