"""Exit status and messages, through the real entry point where processes matter."""

import errno
import io
import os
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from helpers.commands import BENCH, QUICK

import bench_core
from bench_core import InputError, UsageError
from bench_core._io import text
from bench_core.cli import app, options
from bench_core.errors import charging
from bench_core.execution.contract import failure, fault_of
from bench_core.results.records import Status
from bench_core.results.store import Store


def test_debug_shows_the_traceback(shell):
    ended = shell("report", "--debug")
    assert ended.status != 0
    assert "Traceback" in ended.err


def test_a_fault_of_the_program_itself_has_a_status_of_its_own(bench, monkeypatch):
    monkeypatch.setattr("bench_core.cli.catalog.deliver", None)
    ended = bench("list", "learners")
    assert ended.status == 3
    assert "internal error (TypeError: 'NoneType' object is not callable)" in ended.err
    assert "Please report it; rerun with --debug" in ended.err


@pytest.mark.parametrize(
    ("module", "answer", "fault"),
    [
        ("odd", "1 / 0", "plugin odd failed (ZeroDivisionError: division by zero, odd.py:4)"),
        ("plain", "'text'", "a section is a Section or None, not 'text'"),
    ],
)
def test_a_section_that_fails_is_a_warning_and_leaves_the_board(
    bench, material, module, answer, fault
):
    (material / f"{module}.py").write_text(
        "import mine\n"
        "from bench_core import hookimpl\n"
        "def section(run, frame):\n"
        f"    return {answer}\n"
        "@hookimpl\n"
        "def bench_report_sections():\n"
        "    return {'odd': section}\n"
    )
    ran = bench("run", *QUICK, "-p", module, "--learners", "toy")
    shown = bench("report", "-p", module)
    written = bench("report", "-p", module, "-o", "board.txt")
    for ended in (ran, shown, written):
        assert ended.status == 0
        assert "warning: no section 'odd': " in ended.err, ended.err
        assert fault in ended.err
    for board in (ran.out, shown.out, (material / "board.txt").read_text()):
        assert any(line.startswith("toy ") for line in board.splitlines())
    with pytest.raises((ZeroDivisionError, TypeError)):
        bench("report", "-p", module, "--debug")


def test_a_fault_of_a_plugin_outside_trials_names_the_plugin(bench, material):
    (material / "poor.py").write_text(
        "from bench_core import hookimpl\n"
        "class Poor:\n"
        "    name, suffixes = 'poor', ('.poor',)\n"
        "    def write(self, run, frame, output, *, sections):\n"
        "        return 1 / 0\n"
        "@hookimpl\n"
        "def bench_reports():\n"
        "    return [Poor()]\n"
    )
    bench("run", *QUICK, "--learners", "toy").ok()
    ended = bench("report", "-p", "poor", "-p", "mine", "-o", "board.poor")
    assert ended.status == 3
    fault = "error: plugin poor failed (ZeroDivisionError: division by zero, poor.py:5); rerun"
    assert ended.err.startswith(fault)


def test_a_refused_audit_is_1_and_leaves_the_ranking(bench, material):
    ended = bench("run", *QUICK, "--learners", "toy,peeking")
    assert ended.status == 1
    assert "1 refused by the audit" in ended.err
    lines = ended.out.splitlines()
    assert [line for line in lines if line.startswith("toy  ")]
    assert not [line for line in lines if line.startswith("peeking  ")]
    assert "failed: peeking: audit failed" in ended.out


def test_a_closed_stdout_is_status_141():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([BENCH, "list", "metrics"], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == b""


def test_closed_streams_are_nowhere_to_write_to(material):
    for words in (f"run {' '.join(QUICK)} -l toy <&- >&- 2>&-", "report -o board.html >&-"):
        done = subprocess.run(f"{BENCH} {words}", shell=True, capture_output=True)
        assert (done.returncode, b"error" in done.stderr) == (0, False)
    assert len(Store("results/bench.db").frame()) > 1
    assert "</html>" in (material / "board.html").read_text()


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_python_runs_without_streams(stream, material, monkeypatch):
    if stream is not None:
        stream.close()
    for name in ("stdin", "stdout", "stderr"):  # as under pythonw
        monkeypatch.setattr(sys, name, stream)
    run = bench_core.run(data="data.csv", label="label", learners=["gbrt"], executor="inline")
    assert run.exit_status == 0


def test_output_that_the_terminal_cannot_show_is_replaced(bench, shell, material):
    bench("run", *QUICK, "-l", "toy").ok()
    ended = shell("report", PYTHONIOENCODING="ascii").ok()
    assert "toy" in ended.out


def test_looking_things_up_leaves_stderr_empty(shell):
    assert shell("list", "plugins").err == ""


def test_memory_that_is_not_there_ends_in_one_line(bench, monkeypatch):
    for said, expected in (
        ("Unable to allocate 11.1 GiB", "error: out of memory (Unable to allocate 11.1 GiB): use"),
        ("", "error: out of memory: use fewer rows or columns"),
    ):

        def fail(arguments, said=said):
            raise MemoryError(said) if said else MemoryError

        monkeypatch.setattr(app, "_invoke", fail)
        ended = bench("plan", "--data", "x.csv")
        assert ended.status == 2
        assert ended.err.startswith(expected)
        assert ended.err.count("\n") == 1
        assert "internal" not in ended.err


def arrow_lacks_memory(monkeypatch, error):
    pa = pytest.importorskip("pyarrow", reason="no pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def fail(path):
        raise pa.lib.ArrowMemoryError("malloc of size 33357376 failed") if error is None else error

    monkeypatch.setattr(pq, "ParquetFile", fail)
    return "rows.parquet"


def pandas_lacks_memory(monkeypatch, error):
    def fail(*given, **options):
        raise error or pd.errors.ParserError("Error tokenizing data. C error: out of memory")

    monkeypatch.setattr(pd, "read_csv", fail)
    return "rows.csv"


def svmlight_lacks_memory(monkeypatch, error):
    return pandas_lacks_memory(monkeypatch, error).replace(".csv", ".svm")


def the_system_lacks_memory(monkeypatch, error):
    def fail(file):
        raise error or OSError(errno.ENOMEM, "Cannot allocate memory", file.name)

    monkeypatch.setattr(text, "nullcontext", fail)
    return "rows.csv"


@pytest.mark.parametrize("error", [None, MemoryError("Unable to allocate 9 GiB")], ids=repr)
@pytest.mark.parametrize(
    "reader",
    [arrow_lacks_memory, pandas_lacks_memory, svmlight_lacks_memory, the_system_lacks_memory],
)
def test_no_reader_calls_a_file_damaged_if_memory_runs_out(
    reader, error, bench, monkeypatch, tmp_path, home
):
    frame = pd.DataFrame({"a": np.arange(40.0), "y": np.arange(40) % 2})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    Path("rows.svm").write_text("0 1:2.5\n1 1:1.5\n" * 20)
    name = reader(monkeypatch, error)
    ended = bench("run", "--data", name, "-l", "gbrt")
    assert ended.status == 2
    line = ended.err.strip().splitlines()[-1]
    assert line.startswith("error: out of memory (")
    assert line.endswith("): use fewer rows or columns, or a larger machine")


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ValueError("std::bad_alloc"),
        RuntimeError("CatBoost: bad allocation"),
        RuntimeError("DataLoader: MemoryError: no"),
    ],
    ids=str,
)
def test_a_library_that_lacks_memory_makes_no_failed_trial(error):
    """The trial is called out of memory, as for MemoryError."""
    status, line, _ = failure(error)
    assert (status, line[:13]) == (Status.OUT_OF_MEMORY, "out of memory")
    with pytest.raises(MemoryError), charging("plugin mine"):
        raise error
    with pytest.raises(InputError, match="plugin mine fails"), charging("plugin mine"):
        raise ValueError("13 memories")


def test_a_notebook_shows_one_line_without_a_traceback():
    interactive = pytest.importorskip("IPython.core.interactiveshell", reason="no IPython")
    shown = []
    shell = interactive.InteractiveShell()
    shell._showtraceback = lambda kind, value, lines: shown.extend(lines)
    shell.showtraceback((UsageError, UsageError("unknown learner 'misr'"), None))
    assert shown == ["UsageError: unknown learner 'misr'"]


@pytest.mark.parametrize(("seconds", "expected"), [(0, "still at it\n"), (600, "")])
def test_long_work_is_announced(seconds, expected, capsys):
    said = ""
    with click.Context(app.bench), options.noted_after(seconds, "still at it"):
        until = time.monotonic() + (30 if expected else 0)
        while not said and time.monotonic() < until:
            said += capsys.readouterr().err
    assert (said or capsys.readouterr().err) == expected


def test_notes_and_errors_break_at_words_on_a_terminal_alone(on_terminal, bench):
    words = "list", "leaners"
    error = bench(*words).err
    assert error.count("\n") == 1
    lines = on_terminal(*words)
    assert " ".join(lines) == error.rstrip()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80


def test_a_stream_without_a_sign_shows_a_plain_one():
    assert "± 3 … 5 ≤ ☃ ──".encode("ascii", app.SIGNS) == b"+/- 3 ... 5 <= ? --"


def test_a_fault_in_compiled_code_of_a_library_is_not_a_plugin():
    """Frames of Cython have a relative file name and the module of their library."""
    source = compile("1 / 0", "neighbors/_tree.pxi", "exec")
    with pytest.raises(ZeroDivisionError) as caught:
        exec(source, {"__name__": "sklearn.neighbors._kd_tree"})
    assert "sklearn" not in fault_of(caught.value)
