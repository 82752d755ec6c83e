import math
import re
from dataclasses import replace
from functools import cache
from io import StringIO

import numpy as np
import pytest
from bench_reports import page, papers, terminal
from bench_reports.panels import Panel, Panels
from bench_reports.terminal import (
    budget_table,
    failure_lines,
    legend,
    mark_lines,
    screen_table,
    show_boards,
    text_boards,
)
from helpers import example
from helpers.valued_run import ValuedRun, learner_of
from rich.console import Console

from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import NOTHING, Failure, Likely, Saved
from bench_core.leaderboard.columns import Column, columns, filled, shown_rows
from bench_core.leaderboard.conclusion import conclusion, overall_conclusion
from bench_core.planning.suites import find_suite
from bench_core.plugins import load_registry
from bench_core.statistics.comparison import Interval
from bench_core.terminal.tables import TEXT_WIDTH
from bench_core.terminal.wording import settings


def panels_of(*boards):
    return Panels(example.info(), example.frame(), None, boards)


def text_of(board, title, row):
    (column,) = [one for one in columns(board) if one.title == title]
    return column.text(row)


def legend_of(board, every=False):
    everything = Panel("", columns(board), board.rows)
    return legend(board, [everything] if every else panels_of(board).of(board))


@cache
def of_example():
    return boards(example.info(), example.frame())


def asked(board):
    """The board of a run that names its budgets."""
    return replace(board, use=replace(board.use, budgets=tuple(map(str, board.budgets))))


def lines_of():
    return text_boards(panels_of(*of_example())).splitlines()


def shown(*boards, width=80):
    """The lines of a terminal, by default of the example's boards."""
    to = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    show_boards(panels_of(*(boards or of_example())), to)
    return to.file.getvalue().splitlines()


def test_text_has_the_tables_of_a_terminal_of_its_width():
    text, lines = lines_of(), shown(width=TEXT_WIDTH)

    def cells(lines):
        rows = [" ".join(re.split(r" {2,}", line.strip())) for line in lines]
        return [row for row in rows if re.match(r"(miser|gbrt|cegb)\b.*\d", row)]

    assert cells(text) == cells(lines)
    # .99 * .8 = .792: miser has .795 at 3000, gbrt .793 at 6000
    assert "miser 3000 2.0x 0.7950" in cells(text)
    assert max(map(len, text)) <= TEXT_WIDTH


def test_the_reference_has_a_second_row_at_its_best():
    # the cheapest point with .792 is .793 at 6000, the best one .8 at 9000
    rows = [line.split() for line in shown()]
    assert ["gbrt,", "cut", "6000", "1.0x", "0.7930"] in rows
    assert ["gbrt,", "best", "9000", "-", "0.8000"] in rows
    (_, forest) = of_example()
    assert [row.learner for row in shown_rows(forest)] == [
        "miser",
        "gbrt",
    ]  # the same point


def test_wrong_counts_test_rows_of_an_accuracy_alone():
    # 500 test rows: .895 is wrong for 52.5, .9 for 50
    (sim, forest) = of_example()
    assert [text_of(forest, "wrong", row) for row in forest.rows] == ["52", "50"]
    for board in (sim, forest):
        titles = [column.title for column in filled(columns(board), board.rows)]
        assert ("wrong" in titles) == (board is forest)


def test_the_notice_of_a_stand_in_stands_above_its_rows():
    lines = lines_of()
    (at,) = [
        i for i, line in enumerate(lines) if line.startswith("notice: The files of yahoo were not")
    ]
    assert at < min(i for i, line in enumerate(lines) if line.startswith("miser  "))


def test_below_the_rows_stands_what_each_learner_reaches_within_the_boards_budgets():
    lines = text_boards(panels_of(*map(asked, of_example()))).splitlines()
    at = lines.index("ndcg@5 within a cost per row of:")
    # gbrt's best is at 9000: 90 100^(k/4), rounded up; a learner has its best point up to there
    budgets = ["<= 90", "<= 290", "<= 900", "<= 2900", "<= 9000"]
    assert re.split(" {2,}", lines[at + 1])[1:] == budgets
    rows = {line.split()[0]: line.split()[1:] for line in lines[at + 2 : at + 5]}
    assert rows == {
        "miser": ["-", "-", "-", "0.7500", "0.7990"],
        "gbrt": ["-", "-", "-", "0.7000", "0.8000"],
        "cegb": ["-", "-", "0.7800", "0.7800", "0.7800"],
    }


def test_a_failed_trial_is_one_line_with_its_error_and_nothing_that_acts_on_a_terminal():
    failed = [line for board in of_example() for line in failure_lines(board)]
    (line,) = [line for line in failed if line.startswith(f"failed: {example.HOSTILE}")]
    assert "second line" in line
    assert "\x1b" not in "".join(lines_of())


def test_a_skipped_trial_did_not_fail():
    failure = Failure("mine", "skipped", "mine does binary; d is multiclass", "scale=1", 1)
    (line,) = failure_lines(replace(of_example()[0], failures=(failure,)))
    assert line == "skipped: mine (1 trial; scale=1): mine does binary; d is multiclass"


def test_the_legend_explains_selection_columns_missing_figures_and_order():
    board = boards(example.info(baselines=("cegb",)), example.frame())[0]
    assert legend_of(board) == [
        "Each row is one model: the cheapest that has at least 99% of gbrt's best ndcg@5 on "
        "validation; figures are from test, means over 3 repeats. "
        "cost: mean per row in units, for features only; audit: sampled.",
        "cheaper: the cost of gbrt by the same rule divided by this one, the mean of repeats; "
        "-: no model has 99%, its best is shown. "
        "this run stored no values per query or row: no intervals, tiers by quality alone. "
        "Sorted by cost; baselines are last.",
    ]
    assert "without a reference learner" in legend_of(replace(board, reference=""))[1]


def test_the_legend_has_the_number_of_draws_only_if_it_is_low(board):
    few = [line for line in legend_of(board) if "; ±: " in line]
    usual = [line for line in legend_of(replace(board, draws=2000)) if "; ±: " in line]
    assert "; ±: half the 95% interval of 300 draws. " in few[0]
    assert "; ±: half the 95% interval. " in usual[0]


def test_a_model_that_is_sure_by_its_intervals_is_explained_as_such(board):
    rule = "is 95% sure to have at least 99% of gbrt's best accuracy on validation; "
    assert legend_of(board)[0].startswith(f"Each row is one model: the cheapest that {rule}")


def test_a_board_without_savings_explains_no_column_of_them():
    board = of_example()[0]
    rows = tuple(replace(row, cheap=NOTHING, reached=0) for row in board.rows)
    board = replace(board, rows=rows)
    none = "No saving, as a constant, which costs nothing, has at least 99% of gbrt's best"
    assert [line.startswith(none) for line in legend_of(board)].count(True) == 1
    diverged = tuple(replace(row, marks=("diverged",)) for row in rows)
    for one in (board, replace(board, rows=diverged)):
        assert not any("divided by" in line or "one model" in line for line in legend_of(one))


@pytest.mark.parametrize(
    ("paid", "words"), [(0, "for features only"), (1, "for features and trees")]
)
def test_every_format_says_whether_costs_are_of_trees_too(paid, words, tmp_path):
    info, frame = example.info(), example.frame().assign(evaluation_cost=paid)
    terminal.write(info, frame, tmp_path / "b.txt", sections=())
    page.write(info, frame, tmp_path / "b.html", sections=())
    papers.markdown(info, frame, tmp_path / "b.md")
    for kind in ("txt", "html", "md"):
        assert f"per row in units, {words}" in (tmp_path / f"b.{kind}").read_text(), kind


def test_a_column_has_the_setting_of_every_model():
    board = of_example()[0]
    miser = next(row for row in board.rows if row.learner == "miser")
    assert text_of(board, "setting", miser) == miser.model.settings[0].short
    assert "trees=300" in text_of(board, "setting", miser)
    assert "setting" not in {column.title for column in columns(board) if column.usual}


@pytest.mark.parametrize("width", [40, 80, 120])
def test_on_a_terminal_nothing_is_wider_than_it(width):
    assert max(map(len, shown(width=width))) <= width


def test_few_columns_hold_the_table_as_records():
    assert "  cheaper: 2.0x" in shown(width=26)


@pytest.fixture(scope="module")
def board():
    """Two learners that lead alike, one behind, a baseline; a reference ten times as dear."""
    rng = np.random.default_rng(0)
    run = ValuedRun(baselines=("constant",))
    for name, best in (("ahead", 0.9), ("alike", 0.9), ("behind", 0.7)):
        run.add(name, *learner_of(rng, [0.3, 0.5, 0.6, best], [0, 2, 5, 10], 400))
    run.add("gbrt", *learner_of(rng, [0.3, 0.6, 0.9], [0, 40, 100], 400))
    run.add("constant", *learner_of(rng, [0.3], [0], 400))
    (board,) = boards(run.info, run.frame, run, resamples=300)
    return board


def test_baselines_stand_below_a_rule_and_the_order_is_explained(board):
    lines = shown(board)
    lines = lines[[line.startswith("─") for line in lines].index(True) :]
    at = {line.split()[0]: k for k, line in reversed([*enumerate(lines)]) if line.split()}
    assert lines[at["constant"] - 1].startswith("───")
    assert at["constant"] > max(at[name] for name in ("ahead", "alike", "behind", "gbrt"))
    sorted_by = "Sorted by tier of saving, then cost; baselines are last."
    assert any(line.startswith(sorted_by) for line in shown(board))


def test_after_the_legend_the_command_of_another_share_is_named(board):
    assert shown(board)[-1] == "Another share: bench report --keep 95%."
    nothing = [replace(row, cheap=NOTHING) for row in board.rows]
    assert not any("--keep" in line for line in shown(replace(board, rows=tuple(nothing))))


def test_a_board_of_five_learners_has_at_most_thirty_lines_with_its_legend(board):
    lines = shown(board, width=100)
    assert len(lines) <= 30
    assert sum(line.startswith("Each row is one") for line in lines) == 1


def test_a_learner_with_only_a_likeliest_model_shows_its_probability(board):
    pick = replace(board.rows[0].best, cost=3.21, quality=0.8125)
    likely = Likely(pick, 0.714, 2.0)
    rows = [
        replace(row, cheap=NOTHING, saved=Saved(), saving=math.nan, likely=likely)
        if row.learner == "ahead"
        else row
        for row in board.rows
    ]
    lines = shown(replace(board, rows=tuple(rows)))
    (row,) = [line.split() for line in lines if re.match(r"ahead +\d", line)][:1]
    # no interval, and (1 - .8125) * 500 = 93.75 test rows are wrong
    assert row == ["ahead", "3.21", "71%", "sure", "-", "94", "0.8125", "-"]
    words = "% sure: the probability that the likeliest model has 99%; "
    assert words in " ".join(" ".join(lines).split())


def test_learners_that_lead_alike_share_their_ranks_and_first_tier(board):
    found = {
        row.learner: (text_of(board, "quality rank", row), text_of(board, "tier", row))
        for row in board.rows
    }
    assert {name for name, (rank, tier) in found.items() if tier == "1"} == {
        "ahead",
        "alike",
        "gbrt",
    }
    assert [found[name][0] for name in ("ahead", "alike", "gbrt", "behind")] == [*["1-3"] * 3, "4"]


def test_at_the_budgets_ties_are_starred_and_the_best_is_bold(board):
    table = budget_table(panels_of(board).of(asked(board))[1], 80)
    last = {row[0]: row[-1] for row in table.rows}
    assert last["ahead"].endswith("*")
    assert last["alike"].endswith("*")
    assert last["behind"].endswith(" ")
    assert "±." in last["ahead"]
    bold = {(table.rows[i][0], j) for i, j in table.bold_cells}
    assert {j for _, j in bold} == set(range(1, 1 + len(board.budgets)))
    assert {name for name, j in bold if j == len(board.budgets)} <= {"ahead", "alike", "gbrt"}


def test_an_interval_at_a_budget_stays_within_its_range(board):
    at = board.standings[-1]
    rows = tuple(replace(one, quality=0.97, interval=Interval(0.8, 1.0)) for one in at.rows)
    board = asked(replace(board, standings=(*board.standings[:-1], replace(at, rows=rows))))
    table = budget_table(panels_of(board).of(board)[1], 999)
    assert {row[-1].rstrip("* ") for row in table.rows} == {"0.970-.170/+.030"}


def test_next_to_p_no_tie_is_starred_as_it_is_of_another_test(board):
    main, within = panels_of(board).of(asked(board))
    p = Column("p", lambda row: 0.5, lambda row: "0.5")
    tested = within._replace(columns=[*within.columns, p], tested=True)
    assert "*" in str(budget_table(within, 999).rows)
    assert "*" not in str(budget_table(tested, 999).rows)
    assert "*" not in str(screen_table(main).rows)


def test_the_legend_explains_columns_by_the_titles_that_are_shown(board):
    text = " ".join(" ".join(shown(asked(board), width=300)).split())
    for title in ("cost", "cheaper", "±"):
        assert re.search(rf"(?<!\w){re.escape(title)}(, [^:;]*)?: ", text), title
    for title in ("kept", "tier", "cheaper tier", "best cost", "regret"):
        assert not re.search(rf"(?<!\w){title}(, [^:;.]*)?: ", text), title
        assert re.search(rf"(?<!\w){title}(, [^:;.]*)?: ", " ".join(legend_of(board, True)))
    assert "*: not significantly worse" in text


def test_the_conclusion_stands_above_the_table_of_its_data_set():
    made, text = of_example(), " ".join(lines_of())
    for board in made:
        at = text.index(" ".join(conclusion(board)))
        assert text.rindex(board.facts[0], 0, at) < at < text.index("learner ", at)
    whole = " ".join(overall_conclusion(made))
    assert text.index(whole) < text.index(" ".join(conclusion(made[0])))


def test_each_mark_names_its_learners_once_and_what_is_out_of_reach_has_no_tier():
    rng, run = np.random.default_rng(3), ValuedRun(reference="gbrt")
    run.add("gbrt", *learner_of(rng, [0.9], [9], 300), marks="not converged")
    run.add("a", *learner_of(rng, [0.7], [1], 300), marks="at edge: x, not converged")
    (board,) = boards(run.info, run.frame, run, resamples=50)
    assert {line.replace("a, gbrt", "gbrt, a") for line in mark_lines(board)} == {
        "not converged: gbrt, a; more trees would still help",
        "at edge: x: a; the best value ends the range that was tried: try values beyond",
    }
    _, budgets = panels_of(board).of(asked(board))
    (row,) = [row for row in board.rows if row.learner == "gbrt"]
    assert budgets.columns[0].text(row) == "-"  # nothing for the least budget


def test_a_model_that_is_worse_on_test_is_marked_and_the_mark_explained(board):
    first, *others = board.rows
    lost = replace(board, rows=(replace(first, saved=replace(first.saved, lost=True)), *others))
    why = "on test that point is significantly below 98% of gbrt's best accuracy"
    line = f"below 98%: {first.learner}; {why}, so the saving does not count"
    assert line in mark_lines(lost)
    assert not any("below 98%" in line for line in mark_lines(board))


def test_kept_and_the_rule_are_explained_for_errors_as_they_are_computed():
    board = of_example()[0]
    (words,) = [line for line in legend_of(board, every=True) if "kept: " in line]
    assert f"; kept: its test {board.metric} as a share of gbrt's best test " in words
    errors = legend_of(replace(board, higher_is_better=False), every=True)
    (words,) = [line for line in errors if "kept: " in line]
    assert f"; kept: gbrt's best test {board.metric} as a share of its;" in words
    assert f"that has at most gbrt's best {board.metric} / 0.99 on validation; " in errors[0]


def everything(name):
    """Boards of a shipped suite: its learners, each metric, the longest name of a data set."""
    suite = find_suite(name, load_registry())
    names = list(dict.fromkeys([*suite.learners, *suite.baselines, suite.reference]))
    names = [one for one in names if one] or ["gbrt"]
    rng = np.random.default_rng(1)
    run = ValuedRun(reference=suite.reference or names[0], baselines=suite.baselines)
    for k, one in enumerate(names):
        made = learner_of(rng, [0.41, 0.5 + k / 100], [123.4, 16948.2 + k], 30)
        run.add(one, *made, marks="not converged")
    (board,) = boards(run.info, run.frame, run, resamples=50)
    dataset = max((str(entry.name) for entry in suite.datasets), key=len)
    for metric in suite.metrics:
        yield replace(board, metric=metric, dataset=dataset, unit="microseconds")


@pytest.mark.parametrize("name", sorted(load_registry().suite_files))
def test_the_board_of_every_shipped_suite_is_a_table_of_eighty_columns(name):
    made = list(everything(name))
    lines = shown(*made)
    assert max(map(len, lines)) <= 80
    assert not any(line.startswith("  cost: ") for line in lines)  # no records
    table = screen_table(panels_of(made[0]).of(made[0])[0])
    assert [row[0] for row in table.rows] == [row.learner for row in shown_rows(made[0])]
    for row in table.rows:  # each is one line, its figures beside its name
        assert any(line.startswith(row[0]) and row[2].strip() in line for line in lines)


def test_settings_in_words_with_a_learner_inside():
    given = {"trees": 3, "rate": 0.1, "base": {"learner": "gbrt", "trees": 40}}
    assert settings(given) == "trees=3, rate=0.1, base=(learner=gbrt, trees=40)"


def test_a_row_without_a_sure_model_has_its_rule_in_the_legend():
    board = of_example()[0]
    rows = [row for row in board.rows if row.cheap]
    assert "else" not in selection_rule(replace(board, rows=tuple(rows)))
    unsure = replace(rows[0], learner="unsure", cheap=NOTHING, reached=2, repeats=3)
    likely = replace(unsure, likely=Likely(rows[0].cheap, 0.96, 2.0))
    both = replace(board, rows=(*rows, likely))
    assert " on validation, else the likeliest; figures" in selection_rule(both)
    assert text_of(both, "cheaper", likely) == "sure in 2 of 3"
    assert text_of(both, "sure", likely) == "sure in 2 of 3"
    assert "else" not in selection_rule(replace(board, rows=(*rows, unsure)))  # its best is shown


def selection_rule(board):
    return legend_of(board)[0]
