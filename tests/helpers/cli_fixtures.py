import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from bench_core.cli import main
from helpers.commands import BENCH, Ended, write_csv


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A separate working folder, with no settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("BENCH_STORE", "BENCH_DATA", "NO_COLOR", "COLUMNS", "_BENCH_COMPLETE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def bench(elsewhere, capsys):
    """The command in this process."""

    def run(*words):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(words)
        said = capsys.readouterr()
        return Ended(int(end.value.code or 0), said.out, said.err)

    return run


class Terminal(StringIO):
    def isatty(self):
        return True


@pytest.fixture
def on_terminal(elsewhere, monkeypatch):
    """The command in this process; returns the lines of a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")

    def run(*words):
        with redirect_stdout(Terminal()) as out, redirect_stderr(out), pytest.raises(SystemExit):
            main(words)
        return out.getvalue().splitlines()

    return run


@pytest.fixture
def shell(elsewhere):
    """The installed command in a separate process."""

    def run(*words, **environment):
        done = subprocess.run(
            [str(BENCH), *words],
            capture_output=True,
            text=True,
            cwd=elsewhere,
            env={**os.environ, **environment},
            timeout=120,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def material(elsewhere):
    """A folder with a plugin module, a data file and a cost file."""
    sys.modules.pop("mine", None)  # another test's
    shutil.copy(Path(__file__).parent / "toy_plugin.py", elsewhere / "mine.py")
    write_csv(elsewhere / "data.csv")
    (elsewhere / "costs.csv").write_text("a,10\nb,5\nc,1\n")
    yield elsewhere
    sys.modules.pop("mine", None)


DONE = {}
"""Finished runs that tests begin with, and the folders they were made in."""


@pytest.fixture
def ran(bench, material, tmp_path_factory):
    """``bench run`` in the folder of material: made once, then copied."""

    def run(*words):
        if words not in DONE:
            kept = tmp_path_factory.mktemp("ran")
            shutil.copytree(material, kept, dirs_exist_ok=True)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(kept)
                patch.setenv("BENCH_CACHE", str(kept / "cache"))
                DONE[words] = bench("run", *words), kept
            sys.modules.pop("mine", None)
        ended, kept = DONE[words]
        shutil.copytree(kept, material, dirs_exist_ok=True)
        return ended

    return run
