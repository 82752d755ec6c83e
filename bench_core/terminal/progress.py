"""Progress on stderr: bars with time left on a terminal and in notebooks, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib.util import find_spec
from threading import Timer
from typing import TYPE_CHECKING, Any, Self

from bench_core.errors import one_line, printable
from bench_core.terminal.wording import count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Task, TaskID

    from bench_core.execution.events import Event, OnEvent

MOMENT = 2.0
"""Seconds by which the "preparing" line is delayed."""
LINE_EVERY = 10.0
DRAW_EVERY = 0.2
"""Seconds between two lines, or two drawings of a bar, of ``counting``."""
MIB = 1 << 20


def progress(*, quiet: bool, bars: bool, verbose: bool) -> AbstractContextManager[OnEvent]:
    """The display that suits stderr, or a notebook, and the options."""
    if quiet:
        return nullcontext(lambda event: None)
    if bars and in_notebook():
        from rich.console import Console

        return Bars(verbose=verbose, console=Console())
    if bars and sys.stderr.isatty():
        return Bars(verbose=verbose)
    return Lines(jobs=bars, verbose=verbose)


def in_notebook() -> bool:
    """True in a notebook that can show bars: rich draws them as widgets."""
    return "ipykernel" in sys.modules and find_spec("ipywidgets") is not None


class Lines(AbstractContextManager["Lines"]):
    """A line per note, per data set and, with ``jobs``, per finished job.

    The "preparing" line is delayed, so that an immediate input error is printed alone.
    """

    def __init__(self, *, jobs: bool, verbose: bool, moment: float = MOMENT) -> None:
        self._jobs, self._verbose, self._moment = jobs, verbose, moment
        self._prepared = ""
        self._delayed: list[str] = []
        self._timer = Timer(0, lambda: None)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._delayed.clear()

    def __call__(self, event: Event) -> None:
        """Write what is worth a line."""
        if event.kind == "prepare":
            self._prepare(event.message)
        elif lines := self._lines(event):
            self._release()
            _write(*lines)

    def _prepare(self, message: str) -> None:
        if self._jobs and message and message != self._prepared:
            self._release()
            self._prepared, self._delayed = message, [message]
            self._timer = Timer(self._moment, self._release)
            self._timer.daemon = True
            self._timer.start()

    def _release(self) -> None:
        self._timer.cancel()
        with suppress(IndexError):  # pop is atomic: the line is written once
            _write(self._delayed.pop())

    def _lines(self, event: Event) -> list[str]:
        if event.kind == "note":
            return [note_line(event)]
        if not self._jobs:
            return []
        if event.kind == "plan":
            return [plan_line(event)]
        if event.kind == "start" and self._verbose:
            return [one_line(f"started {event.activity} {event.title}")]
        if event.kind != "finish":
            return []
        details = detail_lines(event.trace, event.output) if self._verbose else []
        return [finish_line(event), *(line for line, _ in details)]


def _write(*lines: str) -> None:
    print(*lines, sep="\n", file=sys.stderr, flush=True)


class Bars:
    """An overall bar and one for each running job, with notes and failures above them."""

    def __init__(self, *, verbose: bool, console: Console | None = None) -> None:
        from rich import progress as rich
        from rich.table import Column

        from bench_core.terminal import tables

        self._verbose = verbose
        cut = Column(no_wrap=True, overflow="ellipsis")
        self._bars = rich.Progress(
            rich.SpinnerColumn(),
            rich.TextColumn("{task.description}", markup=False, table_column=cut),
            rich.BarColumn(bar_width=20),
            rich.MofNCompleteColumn(),
            rich.TimeElapsedColumn(),
            rich.TimeRemainingColumn(),
            console=console or tables.console(stderr=True),
            transient=True,
            speed_estimate_period=300,
        )
        self._overall: TaskID | None = None
        self._jobs: dict[str, TaskID] = {}
        self._finished = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def __call__(self, event: Event) -> None:
        """Move the bars."""
        getattr(self, f"_on_{event.kind}")(event)

    def _on_note(self, event: Event) -> None:
        self._print(note_line(event), "yellow" if event.warning else "")

    def _on_prepare(self, event: Event) -> None:
        key = f"prepare {event.title}"
        for other in [k for k in self._jobs if k != key]:  # data sets are prepared one by one
            self._drop(other)
        bar = self._bar(key, event.message or f"preparing {event.title}", event.total)
        self._bars.update(bar, completed=event.done, description=printable(event.message))

    def _on_plan(self, event: Event) -> None:
        for key in list(self._jobs):
            self._drop(key)
        self._finished = event.jobs_done
        if event.jobs_total:
            self._overall = self._bars.add_task("all jobs", total=event.jobs_total)
        self._print(plan_line(event), "dim")

    def _on_progress(self, event: Event) -> None:
        bar = self._bar(event.key, f"  {event.activity} {event.title}", event.total)
        self._bars.update(bar, completed=event.done, total=event.total or None)
        self._move_overall()

    _on_start = _on_progress

    def _on_finish(self, event: Event) -> None:
        self._drop(event.key)
        self._finished = event.jobs_done or self._finished + 1
        self._move_overall()
        if event.status != "ok" or self._verbose:
            self._print(finish_line(event), "" if event.status == "ok" else "red")
        if self._verbose:
            for line, style in detail_lines(event.trace, event.output):
                self._print(line, style)

    @property
    def tasks(self) -> dict[str, Task]:
        """The bars on the screen by their descriptions."""
        return {task.description: task for task in self._bars.tasks}

    def _bar(self, key: str, description: str, total: int) -> TaskID:
        if key not in self._jobs:
            self._jobs[key] = self._bars.add_task(printable(description), total=total or None)
        return self._jobs[key]

    def _drop(self, key: str) -> None:
        if key in self._jobs:
            self._bars.remove_task(self._jobs.pop(key))

    def _move_overall(self) -> None:
        if self._overall is not None:
            jobs = self._jobs.values()
            begun = sum(task.percentage for task in self._bars.tasks if task.id in jobs) / 100
            self._bars.update(self._overall, completed=round(self._finished + begun, 2))

    def _print(self, line: str, style: str) -> None:
        from rich.text import Text

        self._bars.console.print(Text(line, style=style))


@contextmanager
def counting(quiet: bool, noun: str) -> Iterator[Callable[[int, int], None]]:
    """A display of one long count, called with what is done and the total (0: not known), often.

    ``noun`` is the unit, such as ``timings``; ``bytes`` are shown as MiB. Drawn within the calls,
    by no thread of its own: what is timed between them is not disturbed.
    """
    from rich import progress as rich

    from bench_core.terminal import tables

    screen, last = tables.console(stderr=True), time.monotonic()
    counted: Any = rich.DownloadColumn(True) if noun == "bytes" else rich.MofNCompleteColumn()
    columns = (rich.BarColumn(), counted, rich.TimeRemainingColumn())
    bars = rich.Progress(*columns, console=screen, transient=True, auto_refresh=False)
    bar = bars.add_task("", total=None)

    def move(done: int, total: int) -> None:
        nonlocal last
        due = time.monotonic() - last >= (DRAW_EVERY if screen.is_terminal else LINE_EVERY)
        if quiet or not (due or (screen.is_terminal and done == total)):
            return
        last = time.monotonic()
        if screen.is_terminal:
            bars.update(bar, completed=done, total=total or None, refresh=True)
        else:
            _write(_count_line(done, total, noun))

    with bars if screen.is_terminal and not quiet else nullcontext():
        yield move


def _count_line(done: int, total: int, noun: str) -> str:
    if noun != "bytes":
        return f"{done} of {total} {noun}"
    return f"{done / MIB:.1f} of {total / MIB:.1f} MiB" if total else f"{done / MIB:.1f} MiB"


def note_line(event: Event) -> str:
    """A note, marked if it is a warning."""
    return one_line(f"warning: {event.message}" if event.warning else event.message)


def plan_line(event: Event) -> str:
    """The name of the run, how many jobs are to do, and how many trials are finished."""
    before = f", {event.done} of {event.total} trials are there already" if event.done else ""
    return f"run {one_line(event.message)}: {count(event.jobs_total, 'job')} to do{before}"


def finish_line(event: Event) -> str:
    """One finished job: number, status, title, seconds, and the error if it failed."""
    width = len(str(event.jobs_total))
    number = f"[{event.jobs_done:>{width}}/{event.jobs_total}]"
    error = f": {one_line(event.message)}" if event.message else ""
    title = one_line(event.title)
    return f"{number} {event.status} {event.activity} {title} ({event.seconds:.1f} s){error}"


def detail_lines(trace: str, output: str) -> list[tuple[str, str]]:
    """Traceback and output of a job, indented, each line with its style on a terminal: dim from
    where the plugin's frames end."""
    from bench_core.execution.failures import CUT

    own, cut, whole = trace.partition(CUT)
    own, whole = (own, f"{cut}{whole}") if cut else ("", trace)
    parts = [(own, ""), (whole, "dim"), (f"output:\n{output}" if output.strip() else "", "")]
    return [
        ("    " + "".join(c if c.isprintable() else " " for c in line).rstrip(), style)
        for text, style in parts
        for line in text.splitlines()
    ]
