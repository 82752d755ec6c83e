"""What terminals and shells must not obey: control characters in names, and commands to paste."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from bench_reports.budgets import run_command

from bench_core.planning.invocation import command, shell_line
from bench_core.plugins import load_registry

FILE, LABEL, STORE = "=cmd| calc\x1b[31m!A0.csv", "lab\x1b[31m", "a  b\x07'\u202e\n.db"
REQUEST = {"data": [FILE], "label": LABEL, "learners": ["gbrt"]}
HOSTILE = [*("two  blanks", "", "it's", "\x1b[2J", "\\\x1b'\"$(x)`y`", "\u202eabc")]
HOSTILE += ["a\nb\tc", "é\x07", "!!\x1b", "\x1b1f"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_reads_the_words_that_were_given(shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here")
    line = shell_line(HOSTILE)
    assert line.isprintable()
    script = f"printf '%s\\0' {line}"
    done = subprocess.run([shell, "-c", script], capture_output=True, check=True)
    given = [word.encode("utf-8", "surrogateescape") for word in HOSTILE]
    assert done.stdout.split(b"\0")[:-1] == given


def test_commands_that_are_printed_hold_no_control_characters() -> None:
    store = Path(STORE)
    lines = [
        command(REQUEST),
        run_command(REQUEST, "x", "gbrt", {"trees": 9}, load_registry(), store),
    ]
    for line in lines:
        assert line.isprintable()
        assert r"$'=cmd| calc\x1b[31m!A0.csv'" in line
        assert r"$'lab\x1b[31m'" in line
    for line in lines[1:]:
        assert r"--store $'a  b\x07\'\u202e\n.db'" in line
