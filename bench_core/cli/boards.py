"""From the store to the leaderboard, for the verbs that show one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.store import RunInfo

PAGES = (".html", ".htm")
NO_BOARDS = (".csv", ".tsv", ".json", ".parquet", ".xlsx", ".pdf", ".png", ".svg")


def finished(store: str | Path, run: str) -> tuple[RunInfo, pd.DataFrame]:
    """A run and its finished rows, of which there must be some."""
    from bench_core.results.store import Store

    kept = Store(store)
    info = kept.info(run)
    frame = kept.frame(run)
    if frame.empty:
        raise UsageError(f"run {info.run} in {store} has no finished trials yet: run it again")
    return info, frame


def check_board(output: Path | None) -> None:
    """Refuse a file that cannot be written, or whose suffix promises what a board is not."""
    from bench_core.terminal.tables import check_output

    if output is not None and output.suffix.lower() in NO_BOARDS:
        raise UsageError(
            f"{output}: a board is a page (.html) or plain text (.txt), no {output.suffix}; "
            "'bench export' writes tables"
        )
    check_output(output)


def deliver_board(store: str | Path, run: str, output: Path | None, *, verbose: bool) -> list[str]:
    """The leaderboard on the terminal, or in a file: a page (.html) or plain text.

    Gives the notices that go with it, one for each stand-in.
    """
    from bench_claims.section import summary, verdicts
    from bench_reports.assembly import boards
    from bench_reports.board import notice

    from bench_core.terminal.tables import console, write_text

    info, frame = finished(store, run)
    made = boards(info, frame)
    if output is None:
        from bench_reports.console import show_boards

        claims = summary(info, verdicts(info, frame))
        show_boards(info, made, console(), verbose=verbose, claims=claims)
    elif output.suffix.lower() in PAGES:
        from bench_reports.html import page

        write_text(output, page(info, made, frame))
    else:
        from bench_reports.console import text_boards

        claims = summary(info, verdicts(info, frame))
        write_text(output, text_boards(info, made, verbose=verbose, claims=claims))
    return [f"notice: {notice(board)}" for board in made if board.stand_in]
