from __future__ import annotations

import math
from dataclasses import replace
from io import StringIO

import pytest
from bench_reports.console import (
    budget_tables,
    failure_lines,
    legend,
    search_lines,
    show_boards,
    text_boards,
)
from helpers import example
from rich.console import Console

from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import Failure
from bench_core.terminal.wording import cost, quality, settings, times


def text(verbose: bool = False) -> list[str]:
    info = example.info()
    return text_boards(info, boards(info, example.frame()), verbose=verbose).splitlines()


def screen(width: int) -> str:
    to = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    info = example.info()
    show_boards(info, boards(info, example.frame()), to)
    assert isinstance(to.file, StringIO)
    return to.file.getvalue()


def test_a_row_without_a_terminal_names_its_data_set_and_holds_everything() -> None:
    (line, _) = [line for line in text() if line.startswith("yahoo-sim  miser")]
    told = "yahoo-sim miser 0.7990 0.0100 5000 0.7950 3000 3.0x sampled stand-in, not converged"
    assert line.split() == told.split()


def test_the_notice_of_a_stand_in_stands_above_its_rows() -> None:
    lines = text()
    (at,) = [i for i, line in enumerate(lines) if line.startswith("notice: yahoo is not here")]
    (first, _) = [i for i, line in enumerate(lines) if line.startswith("yahoo-sim  miser")]
    assert at < first


def test_below_the_rows_stands_what_each_learner_reaches_within_the_boards_budgets() -> None:
    lines = text()
    at = lines.index("ndcg@5 within a cost per row of:")
    # cegb begins at 500, gbrt's best is at 9000: 500 18^(k/4), rounded up
    assert [" ".join(line.split()) for line in lines[at + 1 : at + 5]] == [
        "data set learner <= 500 <= 1100 <= 2200 <= 4400 <= 9000",
        "yahoo-sim miser - 0.7500 0.7500 0.7950 0.7990",
        "yahoo-sim gbrt - - 0.7000 0.7000 0.8000",
        "yahoo-sim cegb 0.7800 0.7800 0.7800 0.7800 0.7800",
    ]


def test_a_board_without_budgets_has_no_table_of_them() -> None:
    board = boards(example.info(), example.frame())[0]
    assert len(list(budget_tables(board))) == 1
    assert list(budget_tables(replace(board, budgets=()))) == []


def test_a_failed_trial_is_one_line_with_its_error_and_nothing_that_acts_on_a_terminal() -> None:
    (line,) = [line for line in text() if line.startswith(f"failed: {example.HOSTILE}")]
    assert "second line" in line
    assert "\x1b" not in "".join(text())


def test_a_skipped_trial_did_not_fail() -> None:
    failure = Failure("mine", "skipped", "mine does binary, d is multiclass", "scale=1", 1)
    (line,) = failure_lines(
        replace(boards(example.info(), example.frame())[0], failures=(failure,))
    )
    assert line == "skipped: mine (1 trial; scale=1): mine does binary, d is multiclass"


def test_the_legend_has_a_line_for_selection_savings_and_baselines() -> None:
    board = boards(example.info(baselines=("cegb",)), example.frame())[0]
    assert legend(board) == [
        "Points are selected on validation, figures are from test, mean and ± over 3 repeats; "
        "cost: mean per row in units, accounting path.",
        "99%: cheapest point with at least 99% of gbrt's best ndcg@5; "
        "saving = cost of gbrt's best point / cost of that point.",
        "baseline: trivial methods, listed for comparison.",
    ]
    assert "no reference learner" in legend(replace(board, reference=""))[1]
    assert len(legend(boards(example.info(), example.frame())[0])) == 2


def test_verbose_adds_the_settings_of_every_row() -> None:
    assert "miser: best at trees=300 with trees=300, tradeoff=0.1" in text(verbose=True)
    assert not any(line.startswith("miser: ") for line in text())


@pytest.mark.parametrize("width", [40, 80, 120])
def test_on_a_terminal_nothing_is_wider_than_it(width: int) -> None:
    assert max(map(len, screen(width).splitlines())) <= width


def test_eighty_columns_hold_the_table_and_forty_the_same_as_records() -> None:
    assert any(line.split()[:2] == ["miser", "0.7990"] for line in screen(80).splitlines())
    assert "  saving: 3.0x" in screen(40).splitlines()


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.79904, "0.7990"), (-1.5, "-1.5000"), (123.456, "123.5"), (math.nan, "-")],
)
def test_qualities_in_words(value: float, words: str) -> None:
    assert quality(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (16948.2, "16948"),
        (99.994, "99.99"),
        (0.0, "0.00"),
        (0.00123, "0.0012"),
        (math.nan, "-"),
    ],
)
def test_costs_in_words(value: float, words: str) -> None:
    assert cost(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(3.44, "3.4x"), (250.4, "250x"), (math.inf, "free"), (math.nan, "-")],
)
def test_savings_in_words(value: float, words: str) -> None:
    assert times(value) == words


def test_settings_in_words_with_a_learner_inside() -> None:
    given = {"trees": 3, "rate": 0.1, "base": {"learner": "gbrt", "trees": 40}}
    assert settings(given) == "trees=3, rate=0.1, base=(learner=gbrt, trees=40)"


def test_a_line_below_the_table_tells_how_far_each_learner_was_searched() -> None:
    board = boards(example.info(), example.frame())[0]
    rows = tuple(replace(r, fits=4, seconds=32.0) for r in board.rows if r.learner == "miser")
    (line,) = search_lines(replace(board, rows=rows))
    assert line == "settings tried, and their training: miser 4 in 32 s"
    some_alike = tuple(replace(r, alike=3) for r in rows)
    (line,) = search_lines(replace(board, rows=some_alike))
    assert line == "settings tried, and their training: miser 4 (1 different) in 32 s"
    baselines = tuple(replace(r, baseline=True) for r in rows)
    assert search_lines(replace(board, rows=baselines)) == []


def test_baselines_are_dim_on_a_terminal() -> None:
    to = Console(file=StringIO(), width=200, force_terminal=True, color_system="standard")
    info = example.info(baselines=("cegb",))
    made = boards(info, example.frame())
    show_boards(info, made, to)
    assert isinstance(to.file, StringIO)
    lines = to.file.getvalue().splitlines()
    (baseline,) = [line for line in lines if "cegb" in line and "stand-in" in line]
    (other,) = [line for line in lines if "miser" in line and "stand-in" in line]
    assert "baseline" in baseline
    assert "\x1b[2m" in baseline or "\x1b[1;2m" in baseline
    assert ";2m" not in other
