"""Budgets of all kinds on the command line, and caps from the run to the answer."""

import re
import shlex
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from helpers.commands import QUICK

TOYS = (*QUICK, "--costs", "costs.csv", "--learners", "toy", "--set", "toy.columns=[1,2,3]")


@pytest.fixture
def done(ran):
    return ran(*TOYS, "--caps", "12,6").ok()


def test_the_next_commands_name_a_measured_cap(done):
    assert "next: bench report -o board.html; bench best --budget 'cap 6'; bench f" in done.err


def test_a_cap_is_in_the_export_and_no_row_exceeds_it(done, bench):
    frame = pd.read_csv(StringIO(bench("export").out))
    capped = frame.dropna(subset="cap")
    assert set(capped["cap"]) == {6.0, 12.0}
    assert len(capped[capped["split"] != "train"]) == 3 * 2 * 2  # settings, caps, splits
    plain = frame[frame["cap"].isna() & (frame["split"] != "train")]
    assert len(plain) == (3 + 4 + 5) * 2  # a path begins with the constant and with no column
    assert (capped["cost_max"] <= capped["cap"]).all()
    assert set(capped["audit"]) == {"sampled"}  # a plugin's learner, inline
    assert not capped["chosen"].notna().any()
    bills_are_what_is_bought(frame, pd.read_csv(StringIO(bench("export", "--features").out)))


def bills_are_what_is_bought(frame, bought):
    """Each kept point's share of rows by sensor gives its cost on test, those under caps too."""
    test = frame[frame["split"] == "test"].set_index(["trial", "point"])
    paid = (bought["price"] * bought["share"]).groupby([bought["trial"], bought["point"]]).sum()
    assert {*test["learner"].loc[paid.index]} == {*test["learner"]}
    assert paid.to_numpy() == pytest.approx(test["feature_cost"].loc[paid.index].to_numpy())
    shares = {word: {*part["share"]} for word, part in bought.groupby("bought")}
    assert (shares["never"], shares["for every row"]) == ({0.0}, {1.0})


def test_best_within_a_cap_trains_it_under_that_cap(done, bench):
    ended = bench("best", "--budget", "12", "--budget-kind", "cap").ok()
    assert "data.csv: best accuracy within 12 for every row" in ended.out
    assert "toy: best at columns=1 with columns=1" in ended.out  # two of them cost 15
    (command,) = [line for line in ended.out.splitlines() if line.startswith("bench run ")]
    assert "--caps 12" in command
    bench(*shlex.split(command)[1:]).ok()


def test_where_a_cap_was_not_measured_a_line_says_what_takes_part_and_what_measures_it(done, bench):
    ended = bench("best", "-b", "cap 7").ok()
    (line,) = [x for x in ended.out.splitlines() if "not measured" in x]
    told, command = line.split("without training: ")
    assert told.startswith(
        "cap 7.00: not measured; only points at which no row costs more take part"
    )
    again = bench(*shlex.split(command)[1:]).ok()
    assert "fit toy" not in again.err
    assert "not measured" not in bench("best", "-b", "cap 7").out


def test_several_budgets_have_a_row_each(done, bench):
    ended = bench("best", "--budget", "11,cap 6,100,cap 7").ok()
    rows = [line.split()[:2] for line in ended.out.splitlines()[2:6]]
    assert rows == [["11", "toy"], ["cap", "6"], ["100", "toy"], ["cap", "7"]]
    assert "cap 7.00: not measured; only points" in ended.out


def test_the_report_shows_the_budgets_asked_for(done, bench):
    lines = bench("report", "--budget", "10,cap 12").out.splitlines()
    at = lines.index("accuracy within a cost per row of:")
    head, row = (re.split("  +", line) for line in lines[at + 1 : at + 3])
    assert head[1:] == ["<= 10", "cap 12"]
    assert row[1] == row[2]  # one column costs 10, under both


def test_compare_takes_several_budgets_of_a_kind(bench, material):
    two = (*QUICK, "--costs", "costs.csv", "-l", "toy,gbrt", "--set", "gbrt.trees=3")
    bench("run", *two, "--caps", "11,20").ok()
    ended = bench("compare", "toy", "gbrt", "--budget", "11,13,20", "--budget-kind", "cap").ok()
    titles = [line for line in ended.out.splitlines() if line.startswith("data.csv: ")]
    assert titles[0].startswith("data.csv: accuracy at a cost of 11 for every row, 1 repeat of")
    assert titles[1].startswith("data.csv: accuracy at a cost of 13 for every row, 1 repeat of")
    assert titles[2].startswith("data.csv: accuracy at a cost of 20 for every row, 1 repeat of")
    repeated = ("--budget", "11", "-b", "13,20", "--budget-kind", "cap")
    assert bench("compare", "toy", "gbrt", *repeated).out == ended.out
    ended = bench("compare", "toy", "gbrt", "--budget", "9.99")
    assert "data.csv: accuracy at a cost of 9.99 on average" in ended.out
    assert "toy and gbrt show no difference" in ended.out  # both constant: a purchase costs 10


def test_caps_under_other_costs_are_those_asked_for(done, bench):
    Path("new.csv").write_text("a,1\nb,2\nc,30\n")
    words = ("reprice", "--costs", "new.csv", "-p", "mine", "--executor", "inline")
    bench(*words).ok()
    assert pd.read_csv(StringIO(bench("export").out))["cap"].isna().all()
    bench(*words[:1], "1", *words[1:], "--caps", "2").ok()
    again = pd.read_csv(StringIO(bench("export").out)).dropna(subset="cap")
    assert set(again["cap"]) == {2.0}
    assert (again["cost_max"] <= 2).all()
