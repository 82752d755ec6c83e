"""Commands of a page of the documentation, and what they print on a terminal."""

import shlex
import subprocess
import sys
from contextlib import redirect_stdout

import pytest

from bench_core.cli import main
from helpers.cli_fixtures import Terminal


def alone(tmp_path, monkeypatch):
    """Work in an empty folder, with a terminal of 80 columns and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("BENCH_STORE", "BENCH_DATA", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")


def command(line):
    """Run a command; ``bench`` runs in this process, without workers."""
    words = shlex.split(line)
    if words[0] != "bench":
        line = line.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
        done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        print(done.stdout, end="")
        return
    words += ["--executor", "inline"] if words[1] == "run" else []
    with pytest.raises(SystemExit) as end:
        main(tuple(words[1:]))
    assert end.value.code in (0, None), line


def printed(action, *arguments):
    """What this call prints, without blanks at the ends of lines."""
    with redirect_stdout(Terminal()) as out:
        action(*arguments)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()).rstrip("\n") + "\n"
