"""``bench features`` and what ``bench best`` says of purchases, through the command line."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from helpers.commands import QUICK, Run

from bench_core.leaderboard.bought_sensors import natural

RUN = (*QUICK, "--costs", "costs.csv", "-l", "toy,cegb", "--set", "cegb.trees=20", "-m", "accuracy")


@pytest.fixture
def done(bench: Run, material: Path) -> Path:
    asked = ("--set", "cegb.tradeoff=0.3", "--set", "cegb.depth=3", "--set", "cegb.min_rows=2")
    assert bench("run", *RUN, *asked).status == 0
    return material


@pytest.mark.parametrize("learner", ["toy", "cegb"])
@pytest.mark.parametrize("budget", [[], ["--budget", "12"]])
def test_shares_times_prices_are_the_feature_cost_of_the_point(
    learner: str, budget: list[str], done: Path, bench: Run
) -> None:
    (done / "bought.csv").unlink(missing_ok=True)
    ended = bench("features", "--learner", learner, *budget, "-o", "bought.csv")
    assert ended.err == "wrote bought.csv\n"
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


def test_best_says_what_is_bought_and_what_is_saved(done: Path, bench: Run) -> None:
    said = bench("best", "--budget", "100").out
    board = bench("report").out.splitlines()
    half = {cells[1]: cells for line in board if len(cells := line.split()) > 6}
    rows = [
        line.split() for line in said.splitlines() if line.split()[:1] and line.split()[0] in half
    ]
    assert {row[0] for row in rows} == {"toy", "cegb"}
    for learner, value, width, *_ in rows:
        low, high = map(float, half[learner][5:7])
        assert float(width) == pytest.approx((high - low) / 2, abs=1e-4)
        assert value.endswith("*") == (half[learner][2] == "1")
    assert "±: half the 95% interval; *: statistically tied for best" in said
    parts = dict(re.findall(r"bought (for every row|for some rows|never): (\d) sensor", said))
    assert sum(map(int, parts.values())) == 3


def test_numbers_in_names_are_sorted_by_their_value() -> None:
    assert sorted(["f10", "f4", "a", "f11", "f6"], key=natural) == ["a", "f4", "f6", "f10", "f11"]


def test_another_metric_than_the_one_that_points_are_kept_by_is_no_fault(
    bench: Run, material: Path
) -> None:
    assert bench("run", *RUN[:-1], "accuracy,log_loss").status == 0
    assert bench("best", "--budget", "100", "-m", "log_loss").status == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--learner", "cegg"], "unknown learner of this run 'cegg': did you mean cegb?"),
        (["-d", "other"], "unknown data set of this run 'other'"),
        (["--budget", "-1"], "-1"),
    ],
)
def test_bad_requests_are_one_line(words: list[str], line: str, done: Path, bench: Run) -> None:
    ended = bench("features", *words)
    assert ended.status == 2
    assert line in ended.err
