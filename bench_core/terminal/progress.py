"""Progress of a run on stderr: bars with time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn, Task, TaskID

    from bench_core.execution.events import Event

MOMENT = 2.0
"""Seconds after which it is worth saying what is being prepared."""


class Progress(Protocol):
    """Shows events while its ``with`` block lasts."""

    def __call__(self, event: Event) -> None:
        """Take one piece of news; cheap."""


def progress(*, quiet: bool, bars: bool, verbose: bool) -> AbstractContextManager[Progress]:
    """The display that suits stderr and the options."""
    if quiet:
        return Silent()
    if not bars:
        return Lines(jobs=False, verbose=verbose, moment=MOMENT)
    if sys.stderr.isatty():
        return Bars(verbose=verbose)
    return Lines(jobs=True, verbose=verbose, moment=MOMENT)


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def __call__(self, event: Event) -> None:
        """Ignore it."""


class Lines:
    """A line per note, per data set and, with ``jobs``, per finished job.

    What is being prepared is said after a moment, or before the next line: where the data are
    refused at once, the fault stands alone.
    """

    def __init__(self, *, jobs: bool, verbose: bool, moment: float = MOMENT) -> None:
        self._jobs = jobs
        self._verbose = verbose
        self._moment = moment
        self._said = ""
        self._held: Held | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._held is not None:
            self._held.drop()

    def __call__(self, event: Event) -> None:
        """Write what is worth a line."""
        line = self._line(event)
        if not line:
            return
        if self._held is not None:
            self._held.write()
            self._held = None
        if event.kind == "prepare":
            self._held = Held(line, self._moment)
        else:
            _write(line)

    def _line(self, event: Event) -> str:
        if event.kind == "note":
            return note_line(event)
        if not self._jobs:
            return ""
        if event.kind == "prepare":
            news = event.message if event.message != self._said else ""
            self._said = event.message
            return news
        if event.kind == "plan":
            return plan_line(event)
        if event.kind == "finish":
            return finish_line(event)
        if event.kind == "start" and self._verbose:
            return f"started {event.activity} {event.title}"
        return ""


class Held:
    """A line that is written after some seconds, unless it was written or dropped before."""

    def __init__(self, line: str, seconds: float) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._timer = threading.Timer(seconds, self.write)
        self._timer.daemon = True
        self._timer.start()

    def write(self) -> None:
        """Write it now, if it is not yet."""
        line = self.drop()
        if line:
            _write(line)

    def drop(self) -> str:
        """Write it no more; gives what was not written yet."""
        self._timer.cancel()
        with self._lock:
            line, self._line = self._line, ""
        return line


def _write(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Bars:
    """An overall bar and one for each running job, with notes and failures above them."""

    def __init__(self, *, verbose: bool, console: Console | None = None) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
        from rich.table import Column

        from bench_core.terminal import tables

        self._verbose = verbose
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis"),
            ),
            BarColumn(bar_width=20),
            _count_column(),
            _time_column(),
            console=console or tables.console(stderr=True),
            transient=True,
            speed_estimate_period=300,
        )
        self._overall: TaskID | None = None
        self._jobs: dict[str, TaskID] = {}
        self._share: dict[str, float] = {}
        self._finished = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def __call__(self, event: Event) -> None:
        """Move the bars."""
        getattr(self, f"_on_{event.kind}")(event)

    def _on_note(self, event: Event) -> None:
        self._say(note_line(event), "yellow" if event.warning else "")

    def _on_prepare(self, event: Event) -> None:
        key = f"prepare {event.title}"
        for other in [k for k in self._jobs if k != key]:  # data sets are prepared one by one
            self._drop(other)
        bar = self._bar(key, event.message or f"preparing {event.title}", event.total)
        self._bars.update(bar, completed=event.done, description=event.message)

    def _on_plan(self, event: Event) -> None:
        for key in list(self._jobs):
            self._drop(key)
        self._finished = event.jobs_done
        if event.jobs_total:
            self._overall = self._bars.add_task("all jobs", total=event.jobs_total)
        self._say(plan_line(event), "dim")

    def _on_start(self, event: Event) -> None:
        self._bar(event.key, f"  {event.activity} {event.title}", event.total)

    def _on_progress(self, event: Event) -> None:
        bar = self._bar(event.key, f"  {event.activity} {event.title}", event.total)
        self._bars.update(bar, completed=event.done, total=event.total or None)
        self._share[event.key] = event.done / event.total if event.total else 0.0
        self._move_overall()

    def _on_finish(self, event: Event) -> None:
        self._drop(event.key)
        self._finished = event.jobs_done or self._finished + 1
        self._move_overall()
        if event.status != "ok" or self._verbose:
            self._say(finish_line(event), "" if event.status == "ok" else "red")

    @property
    def tasks(self) -> dict[str, Task]:
        """The bars on the screen by what they say."""
        return {task.description: task for task in self._bars.tasks}

    def _bar(self, key: str, description: str, total: int) -> TaskID:
        if key not in self._jobs:
            self._jobs[key] = self._bars.add_task(description, total=total or None)
        return self._jobs[key]

    def _drop(self, key: str) -> None:
        self._share.pop(key, None)
        if key in self._jobs:
            self._bars.remove_task(self._jobs.pop(key))

    def _move_overall(self) -> None:
        if self._overall is not None:
            whole = self._finished + sum(self._share.values())
            self._bars.update(self._overall, completed=round(whole, 2))

    def _say(self, line: str, style: str) -> None:
        from rich.text import Text

        self._bars.console.print(Text(line, style=style))


def _count_column() -> ProgressColumn:
    from rich.progress import ProgressColumn
    from rich.text import Text

    class Count(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.completed:.0f}/{task.total:.0f}" if task.total else "")

    return Count()


def _time_column() -> ProgressColumn:
    from rich.progress import ProgressColumn
    from rich.table import Column
    from rich.text import Text

    class Time(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            gone, left = duration(task.elapsed or 0.0), task.time_remaining
            return Text(gone if left is None else f"{gone}, {duration(left)} left", style="cyan")

    return Time(Column(no_wrap=True))


def note_line(event: Event) -> str:
    """A remark, marked where it is a warning."""
    return f"warning: {event.message}" if event.warning else event.message


def plan_line(event: Event) -> str:
    """The run's name, how much there is to do, and how much there was before."""
    jobs = f"{event.jobs_total} job{'' if event.jobs_total == 1 else 's'} to do"
    before = f", {event.done} of {event.total} trials are there already" if event.done else ""
    return f"run {event.message}: {jobs}{before}"


def finish_line(event: Event) -> str:
    """One finished job: count, status, what, seconds, and why it failed."""
    width = len(str(event.jobs_total))
    count = f"[{event.jobs_done:>{width}}/{event.jobs_total}]"
    why = f": {' '.join(event.message.split())}" if event.message else ""
    return f"{count} {event.status} {event.activity} {event.title} ({event.seconds:.1f} s){why}"


def duration(seconds: float) -> str:
    """``45 s``, ``3 min 20 s`` or ``2 h 5 min``."""
    if seconds < 59.5:
        tenths = seconds < 9.95 and seconds != int(seconds)
        return f"{seconds:.1f} s" if tenths else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
