"""A table for papers: quality at each budget, with intervals and ties."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.leaderboard.board import Board, Row, Standing, Standings, notes_of, notice
from bench_core.terminal.wording import count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store


@dataclass(frozen=True, slots=True)
class Summary:
    """A data set's board with the standings at its budgets; the last of them has no limit."""

    board: Board
    standings: tuple[Standings, ...]

    def lines(self) -> Iterator[tuple[Row, tuple[Standing, ...]]]:
        """Each learner with its standing at each budget: by quality without a limit, baselines
        below the others."""
        found = [{one.learner: one for one in at.rows} for at in self.standings]
        place = {one.learner: k for k, one in enumerate(self.standings[-1].rows)}
        rows = (row for row in self.board.rows if row.learner in place)
        for row in sorted(rows, key=lambda row: (row.baseline, place[row.learner])):
            yield row, tuple(at[row.learner] for at in found)

    @property
    def saves(self) -> bool:
        """True if some learner has a saving."""
        return any(row.cheap for row in self.board.rows)

    def best(self) -> tuple[float, ...]:
        """The best quality at each budget, of the learners in the first tier."""
        pick = max if self.board.higher_is_better else min
        return tuple(
            pick((one.quality for one in at.rows if one.tier == 1), default=math.nan)
            for at in self.standings
        )

    def notes(self) -> Iterator[str]:
        """One-line notes: on stand-ins, intervals, failures and the data."""
        if words := notice(self.board):
            yield f"{words}; stand-ins settle nothing"
        yield from dict.fromkeys(at.note for at in self.standings if at.note)
        for lost in self.board.failures:
            what = "left out" if lost.status == "skipped" else lost.status
            yield one_line(
                f"{lost.learner}: {what} ({count(lost.trials, 'trial')}; {lost.params}): "
                f"{lost.error}"
            )
        yield from map(one_line, notes_of(self.board))


def summaries(info: RunInfo, frame: pd.DataFrame, store: Store | None) -> list[Summary]:
    """A summary of each data set, in the run's order."""
    from bench_core.leaderboard.certainty import all_certified

    return [
        Summary(board, (*board.standings, board.unlimited or Standings(None, ())))
        for board in all_certified(info, store, frame)
    ]
