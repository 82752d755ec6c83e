"""The known optimum on a board: of mean costs and of caps, and what learners lack to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from bench_optimum import optimum_within

import bench_core
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.columns import budget_columns, columns
from bench_core.plugins import load_registry
from bench_core.results.budgets import Budget

CORNERS = ((1.0, 0.5), (3.0, 0.9))


def test_mean_costs_mix_corners_and_caps_do_not() -> None:
    for cost, quality in ((1, 0.5), (2, 0.7), (3, 0.9), (50, 0.9)):
        assert optimum_within(Budget(cost), CORNERS) == pytest.approx(quality)
    caps = ((1.0, 0.4), (2.0, 0.7))
    for cap, quality in ((1, 0.4), (1.9, 0.4), (2, 0.7), (9, 0.7)):
        assert optimum_within(Budget(cap, "cap"), caps) == quality
    unknown = (Budget(0.9), CORNERS), (Budget(0.9, "cap"), caps), (Budget(1), ())
    assert np.isnan([optimum_within(*one) for one in unknown]).all()


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
    budgets = Budget(0.5), Budget(2), Budget(1, "cap"), Budget(2, "cap")
    uses = tuple(replace(use, budgets=tuple(map(str, budgets))) for use in run.info.datasets)
    info = replace(run.info, datasets=uses)
    (board,) = boards(info, run._rows)
    known = {column.title: column for column in columns(board, load_registry())}
    reached = {column.title: column for column in budget_columns(board)}
    for title, most in (("<= 2", 0.95), ("cap 1", 0.6), ("cap 2", 0.95)):
        for row in board.rows:
            lacks = known[f"to optimum {title}"].value(row)
            assert lacks + reached[title].value(row) == pytest.approx(most)
    told, buys_nothing = board.rows
    assert abs(known["to optimum <= 2"].value(told)) < 0.05  # 2000 rows, four standard errors
    lacks = known["to optimum <= 0.5"].value(buys_nothing)
    assert lacks == pytest.approx(0.5 + 0.45 / 4 - buys_nothing.best.quality)
