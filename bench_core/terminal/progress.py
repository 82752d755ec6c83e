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
from bench_core.terminal import tables
from bench_core.terminal.wording import count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from bench_core.planning.plan import Event, OnEvent

MOMENT = 2.0  # seconds of delay of the "preparing" line
LINE_EVERY = 10.0  # seconds between two lines of a count
DRAW_EVERY = 0.2  # seconds between two updates of its bar
BAR = 12  # characters of a bar
FIGURES = 48  # width of spinner, bar, count, two durations and gaps
MIB = 1 << 20


def progress(*, quiet: bool, bars: bool, verbose: bool) -> AbstractContextManager[OnEvent]:
    """Return the display for stderr or a notebook under these options."""
    if quiet:
        return nullcontext(lambda event: None)
    # a notebook that can show bars: rich draws them as widgets
    if bars and "ipykernel" in sys.modules and find_spec("ipywidgets") is not None:
        from rich.console import Console

        return Bars(verbose=verbose, console=Console())
    if bars and tables.on_terminal(sys.stderr):
        return Bars(verbose=verbose)
    return Lines(jobs=bars, verbose=verbose)


class Lines(AbstractContextManager["Lines"]):
    """Display of a line per note, per data set and, with ``jobs``, per finished job.

    The "preparing" line is delayed, so that an immediate input error is printed without it.
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
        """Write a line for events that need one."""
        if event.kind == "prepare":
            if self._jobs and event.message not in ("", self._prepared):
                self._release()
                self._prepared, self._delayed = event.message, [event.message]
                self._timer = Timer(self._moment, self._release)
                self._timer.daemon = True
                self._timer.start()
        elif lines := self._lines(event):
            self._release()
            tables.to_stderr(*lines)

    def _release(self) -> None:
        self._timer.cancel()
        with suppress(IndexError):  # pop is atomic: the line is written once
            tables.to_stderr(self._delayed.pop())

    def _lines(self, event: Event) -> list[str]:
        if event.kind == "note":
            return [note_line(event)]
        if event.kind == "plan" and self._jobs:
            return [plan_line(event)]
        if event.kind == "start" and self._jobs and self._verbose:
            return [one_line(f"started {event.activity} {event.title}")]
        if event.kind != "finish" or not self._jobs:
            return []
        details = detail_lines(event.trace, event.output) if self._verbose else []
        return [finish_line(event), *details]


class Bars:
    """Display of an overall bar and one bar per running job, with notes and failures above."""

    def __init__(self, *, verbose: bool, console: Console | None = None) -> None:
        from rich import progress as rich
        from rich.table import Column
        from rich.text import Text

        class Figure(rich.ProgressColumn):
            def __init__(self, words: Callable[[rich.Task], str]) -> None:
                super().__init__(Column(no_wrap=True, justify="right"))
                self.words = words

            def render(self, task: rich.Task) -> Text:
                return Text(self.words(task), style="cyan")

        self._verbose, screen = verbose, console or tables.console(stderr=True)
        self.bars = rich.Progress(
            rich.SpinnerColumn(),
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(bar_width=BAR),
            Figure(lambda task: f"{int(task.completed)}/{task.total}" if task.total else ""),
            Figure(lambda task: _clock(task.elapsed)),
            Figure(lambda task: f"{_clock(left)} left" if (left := task.time_remaining) else ""),
            console=screen,
            # bars vanish at the end, printed lines stay; in a notebook this would print a blank
            transient=not screen.is_jupyter,
            speed_estimate_period=300,
        )
        self._overall: TaskID | None = None  # until there is a plan
        self._jobs: dict[str, TaskID] = {}  # bar of each running job by its key
        self._finished = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()
        if (widget := self.bars.live.ipy_widget) is not None:
            widget.close()

    def __call__(self, event: Event) -> None:
        """Update the bars, which start with the first, and print lines that stay on the screen."""
        if event.kind == "note":
            self._print(note_line(event), "yellow" if event.warning else "")
        elif event.kind == "prepare":
            key = f"prepare {event.title}"
            self._keep_only(key)  # data sets are prepared one by one
            self._move(key, event.message or f"preparing {event.title}", event)
        elif event.kind == "plan":
            self._keep_only()
            self._finished = event.jobs_done
            if event.jobs_total:
                self._overall = self.bars.add_task("all jobs", total=event.jobs_total)
            self._print(plan_line(event), "dim")
        elif event.kind == "finish":
            self._keep_only(*(key for key in self._jobs if key != event.key))
            self._finished = event.jobs_done or self._finished + 1
            if event.status != "ok" or self._verbose:
                self._print(finish_line(event), "" if event.status == "ok" else "red")
            for line in detail_lines(event.trace, event.output) if self._verbose else ():
                self._print(line)
        else:
            self._move(event.key, f"  {event.activity} {event.title}", event)
        if self.bars.tasks:
            self.bars.start()
        if self._overall is not None:
            # a job that is half done counts half
            running = [task for task in self.bars.tasks if task.id in self._jobs.values()]
            done = self._finished + sum(task.percentage for task in running) / 100
            self.bars.update(self._overall, completed=round(done, 2))

    def _move(self, key: str, words: str, event: Event) -> None:
        room = self.bars.console.width - FIGURES
        total, words = event.total or None, shortened(printable(words), room)
        if key not in self._jobs:
            self._jobs[key] = self.bars.add_task(words, total=total)
        self.bars.update(self._jobs[key], description=words, completed=event.done, total=total)

    def _keep_only(self, *keys: str) -> None:
        for key in set(self._jobs) - {*keys}:
            self.bars.remove_task(self._jobs.pop(key))

    def _print(self, line: str, style: str = "") -> None:
        from rich.text import Text

        if self.bars.console.is_jupyter:  # one block of text, which the notebook wraps
            print(line)
        else:
            self.bars.console.print(Text(line, style=style))


@contextmanager
def counting(quiet: bool, noun: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a display of one long count, to be called with the count and the total (0: unknown).

    ``noun`` is the unit, such as ``timings``; ``bytes`` are shown as MiB. It is drawn within the
    calls, without a thread, so that timings between them are not disturbed.
    """
    from rich import progress as rich

    screen, last = tables.console(stderr=True), time.monotonic()
    counted: Any = rich.DownloadColumn(True) if noun == "bytes" else rich.MofNCompleteColumn()
    columns = (rich.BarColumn(), counted, rich.TimeRemainingColumn())
    bars = rich.Progress(*columns, console=screen, transient=True, auto_refresh=False)
    bar = bars.add_task("", total=None, visible=False)

    def move(done: int, total: int) -> None:
        nonlocal last
        due = time.monotonic() - last >= (DRAW_EVERY if screen.is_terminal else LINE_EVERY)
        if quiet or not (due or (screen.is_terminal and done == total)):
            return
        last = time.monotonic()
        if screen.is_terminal:
            bars.update(bar, completed=done, total=total or None, visible=True, refresh=True)
        else:
            known = (done, total) if total else (done,)
            parts = [f"{n / MIB:.1f}" if noun == "bytes" else str(n) for n in known]
            tables.to_stderr(f"{' of '.join(parts)} {'MiB' if noun == 'bytes' else noun}")

    with bars if screen.is_terminal and not quiet else nullcontext():
        yield move


def _clock(seconds: float | None) -> str:
    """Return ``0:48``, or ``1:02:05`` from an hour on."""
    minutes, rest = divmod(int(seconds or 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def shortened(words: str, room: int) -> str:
    """Shorten words to ``room`` characters; the end, which names the data set, is kept."""
    if len(words) <= max(room, 0):
        return words
    begin, on, end = words.rpartition(" on ")
    end = on + end if begin and len(on + end) <= room - 8 else ""
    return words[: max(room - len(end) - 1, 0)] + "…" + end


def note_line(event: Event) -> str:
    """Return a note, marked if it is a warning."""
    return one_line(f"warning: {event.message}" if event.warning else event.message)


def plan_line(event: Event) -> str:
    """Return the name of the run, the number of jobs to do and of finished trials."""
    before = f", {event.done} of {event.total} trials already finished" if event.done else ""
    return f"run {one_line(event.message)}: {count(event.jobs_total, 'job')} to do{before}"


def finish_line(event: Event) -> str:
    """Return a line on a finished job: number, status, title, seconds, and its error if any."""
    width = len(str(event.jobs_total))
    number = f"[{event.jobs_done:>{width}}/{event.jobs_total}]"
    error = f": {one_line(event.message)}" if event.message else ""
    title = one_line(event.title)
    return f"{number} {event.status} {event.activity} {title} ({event.seconds:.1f} s){error}"


def detail_lines(trace: str, output: str) -> list[str]:
    """Return a job's traceback and output, indented."""
    text = f"{trace.rstrip()}\noutput:\n{output}" if output.strip() else trace
    lines = ("".join(c if c.isprintable() else " " for c in line) for line in text.splitlines())
    return [f"    {line}".rstrip() for line in lines]
