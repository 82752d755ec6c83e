from __future__ import annotations

import sys
import time
import types
from io import StringIO

import pytest
from rich.console import Console

from bench_core.execution.events import Event
from bench_core.execution.failures import CUT
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
    Event(
        "finish",
        key="fit:a",
        title="gbrt on letters",
        activity="fit",
        status="ok",
        seconds=2.25,
        jobs_done=1,
        jobs_total=12,
    ),
    Event(
        "finish",
        message="no\nluck",
        key="fit:b",
        title="miser on letters",
        activity="fit",
        status="failed",
        seconds=0.5,
        jobs_done=2,
        jobs_total=12,
        trace=f"File mine.py\nno luck\n{CUT}\nFile worker.py\n",
        output="epoch 1\n\x1b[2J",
    ),
)


def test_lines_tell_counts_and_seconds_of_every_job(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines(jobs=True, verbose=False) as told:
        for event in RUN:
            told(event)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "reading letters",
        "warning: yahoo is not here",
        "every feature costs 1",
        "run letters-1: 12 jobs to do, 3 of 5 trials are there already",
        "[ 1/12] ok fit gbrt on letters (2.2 s)",
        "[ 2/12] failed fit miser on letters (0.5 s): no luck",
    ]


DETAILS = ["File mine.py", "no luck", CUT, "File worker.py", "output:", "epoch 1", " [2J"]


def test_verbose_lines_show_traceback_and_output_of_a_job(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Lines(jobs=True, verbose=True) as told:
        told(RUN[-1])
    assert capsys.readouterr().err.splitlines()[1:] == [f"    {line}" for line in DETAILS]


def test_verbose_bars_show_traceback_and_output_of_a_job() -> None:
    screen = StringIO()
    console = Console(file=screen, width=200, force_terminal=True, color_system=None)
    with Bars(verbose=True, console=console) as told:
        told(RUN[-1])
    text = screen.getvalue()
    places = [text.find(f"    {line}") for line in DETAILS]
    assert places[0] > -1
    assert places == sorted(places)


def test_a_count_is_a_line_now_and_then_and_none_where_quiet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_core.terminal.progress.LINE_EVERY", 0.0)
    for quiet, noun in ((True, "timings"), (False, "timings"), (False, "bytes")):
        with counting(quiet, noun) as move:
            move(3 << 20, 6 << 20)
    assert capsys.readouterr().err.splitlines() == [
        "3145728 of 6291456 timings",
        "3.0 of 6.0 MiB",
    ]


def test_what_is_prepared_is_said_after_a_moment(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines(jobs=True, verbose=False, moment=0.0) as told:
        told(RUN[0])
        until = time.monotonic() + 30
        said = ""
        while not said and time.monotonic() < until:
            said += capsys.readouterr().err
    assert said == "reading letters\n"


def test_what_is_refused_at_once_is_not_announced(capsys: pytest.CaptureFixture[str]) -> None:
    told = Lines(jobs=True, verbose=False, moment=30.0)
    told(RUN[0])
    told.__exit__(ValueError, ValueError(), None)
    assert capsys.readouterr().err == ""


def test_without_progress_notes_remain(capsys: pytest.CaptureFixture[str]) -> None:
    with Lines(jobs=False, verbose=False) as told:
        for event in RUN:
            told(event)
    assert capsys.readouterr().err.splitlines() == [
        "warning: yahoo is not here",
        "every feature costs 1",
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(quiet=True, bars=True, verbose=True) as told:
        for event in RUN:
            told(event)
    assert capsys.readouterr() == ("", "")


def test_the_display_suits_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(progress(quiet=False, bars=True, verbose=False), Lines)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert isinstance(progress(quiet=False, bars=True, verbose=False), Bars)
    assert isinstance(progress(quiet=False, bars=False, verbose=False), Lines)


def bars(width: int, events: tuple[Event, ...] = RUN) -> tuple[Bars, StringIO]:
    screen = StringIO()
    console = Console(file=screen, width=width, force_terminal=True, color_system=None)
    return Bars(verbose=False, console=console), screen


def test_bars_show_the_share_of_all_jobs_with_the_running_one_counted_in() -> None:
    told, _ = bars(80)
    with told:
        for event in RUN[:-2]:
            told(event)
        overall = told.tasks["all jobs"]
        assert overall.total == 12
        assert overall.completed == 0.5  # 30 of 60 trees of one job
        assert told.tasks["  fit gbrt on letters"].completed == 30


def test_a_finished_job_gives_up_its_bar() -> None:
    told, _ = bars(80)
    with told:
        for event in RUN:
            told(event)
        assert set(told.tasks) == {"all jobs"}
        assert told.tasks["all jobs"].completed == 2


def test_failures_stay_on_the_screen_and_successes_do_not() -> None:
    told, screen = bars(100)
    with told:
        for event in RUN:
            told(event)
    assert "failed fit miser on letters (0.5 s): no luck" in screen.getvalue()
    assert "ok fit gbrt" not in screen.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80])
def test_bars_survive_a_narrow_terminal(width: int) -> None:
    told, screen = bars(width)
    with told:
        for event in RUN:
            told(event)
    assert "yahoo" in screen.getvalue()


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
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_a_notebook_with_widgets_has_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench_core.terminal.progress.find_spec", lambda name: name == "ipywidgets")
    assert isinstance(progress(quiet=False, bars=True, verbose=False), Lines)
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    assert isinstance(progress(quiet=False, bars=True, verbose=False), Bars)
    assert isinstance(progress(quiet=False, bars=False, verbose=False), Lines)
