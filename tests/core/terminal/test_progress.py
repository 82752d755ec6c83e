import sys
import time
import types
from io import StringIO

import pytest
from rich.console import Console

from bench_core.execution.contract import CUT
from bench_core.planning.plan import Event
from bench_core.terminal.progress import Bars, Lines, counting, progress
from bench_core.terminal.wording import duration

RUN = (
    Event("prepare", message="reading letters", title="letters"),
    Event("prepare", message="reading letters", title="letters"),
    Event("note", message="yahoo is not here", warning=True),
    Event("note", message="every feature costs 1"),
    Event("plan", message="letters-1", done=3, total=5, jobs_total=12),
    Event("start", key="fit:a", title="gbrt on letters", activity="fit"),
    Event("progress", key="fit:a", title="gbrt on letters", activity="fit", done=30, total=60),
    Event("finish", key="fit:a", title="gbrt on letters", activity="fit", status="ok",
        seconds=2.25, jobs_done=1, jobs_total=12),
    Event("finish", message="no\nluck", key="fit:b", title="miser on letters", activity="fit",
        status="failed", seconds=0.5, jobs_done=2, jobs_total=12,
        trace=f"File mine.py\nno luck\n{CUT}\nFile worker.py\n", output="epoch 1\n\x1b[2J"),
)  # fmt: skip


NOTES = ["warning: yahoo is not here", "every feature costs 1"]
JOBS = [
    "run letters-1: 12 jobs to do, 3 of 5 trials already finished",
    "[ 1/12] ok fit gbrt on letters (2.2 s)",
    "[ 2/12] failed fit miser on letters (0.5 s): no luck",
]
DETAILS = ["File mine.py", "no luck", CUT, "File worker.py", "output:", "epoch 1", " [2J"]


@pytest.mark.parametrize(
    ("jobs", "verbose", "lines"),
    [
        (False, False, NOTES),
        (True, False, ["reading letters", *NOTES, *JOBS]),
        (
            True,
            True,
            [
                *("reading letters", *NOTES, JOBS[0], "started fit gbrt on letters", *JOBS[1:]),
                *(f"    {line}" for line in DETAILS),
            ],
        ),
    ],
    ids=["notes", "jobs", "verbose"],
)
def test_lines_are_as_many_as_the_options_ask_for(jobs, verbose, lines, capsys):
    with Lines(jobs=jobs, verbose=verbose) as display:
        for event in RUN:
            display(event)
    seen = capsys.readouterr()
    assert (seen.out, seen.err.splitlines()) == ("", lines)


def test_a_count_is_a_line_now_and_then_and_none_where_quiet(capsys, monkeypatch):
    monkeypatch.setattr("bench_core.terminal.progress.LINE_EVERY", 0.0)
    for quiet, noun in ((True, "timings"), (False, "timings"), (False, "bytes")):
        with counting(quiet, noun) as move:
            move(3 << 20, 6 << 20)
    assert capsys.readouterr().err.splitlines() == [
        "3145728 of 6291456 timings",
        "3.0 of 6.0 MiB",
    ]


def test_a_count_has_no_bar_before_its_first_number(monkeypatch):
    screen = Console(file=StringIO(), width=80, force_terminal=True)
    monkeypatch.setattr("bench_core.terminal.tables.console", lambda stderr: screen)
    with counting(False, "timings") as move:
        assert "━" not in screen.file.getvalue()
        move(5, 5)
    assert "5/5" in screen.file.getvalue()


def test_what_is_prepared_is_said_after_a_moment(capsys):
    with Lines(jobs=True, verbose=False, moment=0.0) as display:
        display(RUN[0])
        until = time.monotonic() + 30
        said = ""
        while not said and time.monotonic() < until:
            said += capsys.readouterr().err
    assert said == "reading letters\n"


def test_what_is_refused_at_once_is_not_announced(capsys):
    display = Lines(jobs=True, verbose=False, moment=30.0)
    display(RUN[0])
    display.__exit__(ValueError, ValueError(), None)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("terminal", "widgets", "kernel", "shows_bars"),
    [
        (False, False, False, False),
        (True, False, False, True),
        (False, True, False, False),
        (False, True, True, True),
    ],
)
def test_bars_are_for_terminals_and_notebooks_with_widgets(
    terminal, widgets, kernel, shows_bars, monkeypatch
):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setattr("bench_core.terminal.progress.find_spec", lambda name: widgets or None)
    if kernel:
        monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    shown = progress(quiet=False, bars=True, verbose=False)
    assert isinstance(shown, Bars if shows_bars else Lines)
    assert isinstance(progress(quiet=False, bars=False, verbose=False), Lines)


def test_notes_in_a_notebook_are_one_block_of_text_that_the_browser_wraps(capsys):
    display, long = Bars(verbose=False, console=Console(force_jupyter=True)), "a note " * 40
    for words in (long, "another"):
        display(Event("note", message=words))
    assert capsys.readouterr().out == f"{long.strip()}\nanother\n"


def bars(width, verbose=False):
    screen = StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    return Bars(verbose=verbose, console=console), screen


def tasks(display):
    """The bars on the screen by their descriptions."""
    return {task.description: task for task in display.bars.tasks}


def test_the_bar_of_all_jobs_counts_the_running_one_in():
    display, _ = bars(80)
    with display:
        for event in RUN[:-2]:
            display(event)
        overall = tasks(display)["all jobs"]
        assert overall.total == 12
        assert overall.completed == 0.5  # 30 of 60 trees of one job
        assert tasks(display)["  fit gbrt on letters"].completed == 30
        for event in RUN[-2:]:
            display(event)
        assert set(tasks(display)) == {"all jobs"}  # a finished job gives up its bar
        assert tasks(display)["all jobs"].completed == 2


def test_nothing_is_drawn_before_the_first_bar():
    display, screen = bars(80)
    with display:
        assert not display.bars.live.is_started
    assert screen.getvalue() == ""
    with display:
        display(RUN[0])
        assert display.bars.live.is_started
    assert not display.bars.live.is_started


@pytest.mark.parametrize("width", [20, 100])
def test_failures_stay_on_the_screen_and_successes_do_not(width):
    display, screen = bars(width)
    with display:
        for event in RUN:
            display(event)
    words = " ".join(screen.getvalue().split())
    assert "yahoo" in words
    assert width < 100 or "failed fit miser on letters (0.5 s): no luck" in words
    assert "ok fit gbrt" not in words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (4.26, "4.3 s"),
        (5, "5 s"),
        (9.99, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (61, "1 min 1 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize("width", [70, 80, 120])
def test_long_settings_are_cut_and_figures_are_not(width):
    console = Console(file=StringIO(), width=width, force_terminal=True, color_system=None)
    display = Bars(verbose=False, console=console)
    display.bars.disable = True  # drawn by the test
    display(Event("plan", message="letters-1", jobs_total=5360))
    title = "random-order trees=141 learning_rate=0.253 min_rows=13 leaves=32 on letters-26"
    display(Event("progress", key="a", title=title, activity="fit", done=536, total=1000))
    with console.capture() as drawn:
        console.print(display.bars.get_renderable())
    overall, job = drawn.get().splitlines()
    assert overall.rstrip().endswith("0/5360 0:00")
    assert job.rstrip().endswith("536/1000 0:00")
    assert ("…" in job, "on letters-26" in job) == (True, True)


def test_a_job_has_its_name_at_once_and_a_count_where_there_is_one(monkeypatch):
    clock = [0.0]
    display, _ = bars(100)
    display.bars.disable = True
    display.bars.get_time = lambda: clock[0]
    drawn = []
    monkeypatch.setattr(
        display.bars, "update", lambda *_, **__: drawn.append(display.bars.get_renderable())
    )
    display(Event("start", key="fit:a", title="gbrt on letters", activity="fit"))
    console = Console(file=StringIO(), width=100, color_system=None)
    console.print(drawn[0])
    assert "fit gbrt on letters" in console.file.getvalue()
    assert "?" not in console.file.getvalue()
    monkeypatch.undo()
    for clock[0], done in ((0.0, 0), (10.0, 100), (20.0, 200)):
        display(Event("progress", "", "fit:a", "gbrt on letters", "fit", done=done, total=8000))
    with console.capture() as shown:
        console.print(display.bars.get_renderable())
    # 7800 more at 10 a second: 13 minutes
    assert shown.get().split()[-4:] == ["200/8000", "0:20", "13:00", "left"]
