"""How far one long count is, on stderr: a bar with time left on a terminal, lines elsewhere.

Drawn within the calls that report, by no thread of its own: what is timed between them is not
disturbed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench_core.cli import options

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[int, int], None]
"""Told what is done and what there is in all (0: not known), often."""

LINE_EVERY = 10.0
DRAW_EVERY = 0.2
"""Seconds."""
MIB = 1 << 20


@contextmanager
def counting(quiet: bool, noun: str) -> Iterator[Progress]:
    """A display of so many of ``noun``, such as ``timings``; ``bytes`` are shown as MiB."""
    from bench_core.terminal.tables import console

    screen = console(stderr=True)
    if quiet:
        yield lambda done, total: None
    elif not screen.is_terminal:
        due = _every(LINE_EVERY)
        yield lambda done, total: options.note(_line(done, total, noun)) if due() else None
    else:
        with _bar(screen, noun) as move:
            yield move


@contextmanager
def _bar(screen: Console, noun: str) -> Iterator[Progress]:
    from rich import progress as rich

    counted = rich.DownloadColumn(True) if noun == "bytes" else rich.MofNCompleteColumn()
    columns = (rich.BarColumn(), counted, rich.TimeRemainingColumn())
    with rich.Progress(*columns, console=screen, transient=True, auto_refresh=False) as bars:
        bar, due = bars.add_task("", total=None), _every(DRAW_EVERY)

        def move(done: int, total: int) -> None:
            if due() or done == total:
                bars.update(bar, completed=done, total=total or None, refresh=True)

        yield move


def _line(done: int, total: int, noun: str) -> str:
    if noun != "bytes":
        return f"{done} of {total} {noun}"
    return f"{done / MIB:.1f} of {total / MIB:.1f} MiB" if total else f"{done / MIB:.1f} MiB"


def _every(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have gone since it last said so."""
    last = time.monotonic()

    def due() -> bool:
        nonlocal last
        if time.monotonic() - last < seconds:
            return False
        last = time.monotonic()
        return True

    return due
