"""The known optimum on a board: of mean costs and of caps, and what learners lack to it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from bench_reports import exports
from bench_reports.terminal import optimum_table

import bench_core
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import Optimum
from bench_core.results.budgets import Budget

CORNERS = ((1.0, 0.5), (3.0, 0.9))


def test_mean_costs_mix_corners_and_caps_do_not() -> None:
    known = Optimum(mean=CORNERS, cap=((1.0, 0.4), (2.0, 0.7)))
    for cost, quality in ((1, 0.5), (2, 0.7), (3, 0.9), (50, 0.9)):
        assert known.within(Budget(cost)) == pytest.approx(quality)
    assert known.within(None) == 0.9
    for cap, quality in ((1, 0.4), (1.9, 0.4), (2, 0.7), (9, 0.7)):
        assert known.within(Budget(cap, "cap")) == quality
    unknown = Budget(0.9), Budget(0.9, "cap")
    assert np.isnan([known.within(budget) for budget in unknown]).all()
    assert np.isnan([Optimum().within(budget) for budget in (None, Budget(1))]).all()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> bench_core.Result:
    """A learner that is told the distribution, and one that buys nothing."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(folder / "cache"))
        return bench_core.run(
            data="bayes-net",
            learners=["exact-dp", "constant"],
            reference="exact-dp",
            settings={"bayes-net.problem": "parity-2"},
            caps=[1, 2],
            executor="inline",
            store=folder / "bench.db",
        )


def test_a_board_says_what_each_learner_lacks_at_its_budgets_and_caps(run) -> None:
    """Of parity-2 by hand: at a cap of 1 a decoy is right in .6, at 2 both parts in .95; at mean
    costs up to 2 a share of the rows buys both, the others nothing."""
    (board,) = boards(run.info, run._rows)
    assert board.budgets[-2:] == (Budget(1, "cap"), Budget(2, "cap"))
    assert board.optimum.within(Budget(0.5)) == pytest.approx(0.5 + 0.45 / 4)
    at = run.at([Budget(2), Budget(1, "cap"), Budget(2, "cap")])
    for budget, most in ((2, 0.95), ("cap 1", 0.6), ("cap 2", 0.95)):
        own = at[at["budget"] == budget].set_index("learner")
        assert (own["to optimum"] + own["accuracy"]).to_numpy() == pytest.approx(most)
    told = at[at["learner"] == "exact-dp"]
    assert told["to optimum"].abs().max() < 0.05  # 2000 rows, four standard errors
    assert run.board(columns="all")["to optimum"].notna().all()


def test_the_same_stands_in_every_format(run, tmp_path: Path) -> None:
    (board,) = boards(run.info, run._rows)
    table = optimum_table(board, 200)
    assert table is not None
    assert table.rows[0][0] == "the optimum"
    assert table.rows[0][-2:] == ["0.6000", "0.9500"]
    constant = {row[0]: row for row in table.rows}["constant"]
    quality = {row.learner: row for row in board.rows}["constant"].best.quality
    assert float(constant[-1]) == pytest.approx(0.95 - quality, abs=1e-4)
    for name in ("board.md", "board.html", "board.tex", "board.json", "board.csv"):
        run.report(tmp_path / name)
    for name in ("board.md", "board.html", "board.tex"):
        text = (tmp_path / name).read_text()
        assert "distance to the optimum" in text
        assert "0.9500" in text
    shown = (tmp_path / "board.html").read_text().partition("distance to the optimum")[2]
    lacks = re.findall(r"<td[^>]*>([^<]*)</td>", shown.partition("</table>")[0])
    assert [row[1:] for row in table.rows] == [
        lacks[k : k + len(board.budgets)] for k in range(0, len(lacks), len(board.budgets))
    ]
    assert '"optimum": [' in (tmp_path / "board.json").read_text()
    last = (tmp_path / "board.csv").read_text().splitlines()
    place = exports.TITLES.index("to_optimum")
    found = [line.split(",")[place] for line in last[1:] if ",constant,baseline,cap,2," in line]
    assert [float(one) for one in found] == pytest.approx([0.95 - quality])
