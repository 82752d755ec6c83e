"""The tutorial runs as it stands, and prints on a terminal what it shows."""

import re
import shlex
import sys
from contextlib import redirect_stdout
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest
from helpers.cli_fixtures import Terminal

from bench_core.cli import main

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.compile(r"```(python|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.S)


def bench(line):
    words = shlex.split(line)
    assert words.pop(0) == "bench"
    words += ["--executor", "inline"] if words[0] == "run" else []
    with pytest.raises(SystemExit) as end:
        main(tuple(words))
    assert end.value.code in (0, None), line


def printed(kind, code, names):
    with redirect_stdout(Terminal()) as out:
        if kind == "python":
            exec(compile(code, "docs/tutorial.md", "exec"), names)
        else:
            for line in code.splitlines():
                bench(line)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()).rstrip("\n") + "\n"


@pytest.fixture
def sections(tmp_path, monkeypatch):
    """What each section of the page holds; everything happens in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("BENCH_STORE", "BENCH_DATA", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    yield re.split(r"^## \d\. ", PAGE, flags=re.M)[1:]
    sys.modules.pop("nearest", None)


def follow(parts):
    """Do what these sections show, and compare."""
    names = {"__name__": "page"}
    for part in parts:
        for kind, code, shown in BLOCKS.findall(part):
            got = printed(kind, code, names)
            if shown:
                same = OutputChecker().check_output(shown, got, ELLIPSIS)
                assert same, f"{code}\n{got}"


def test_the_tutorial_does_what_it_shows(sections, tmp_path):
    assert len(sections) == 7
    follow(sections[:6])
    assert "booktabs" in (tmp_path / "pairs.tex").read_text()
    assert {"board.html", "board.tex", "rows.csv", "model"} <= {p.name for p in tmp_path.iterdir()}


@pytest.mark.slow
def test_a_learner_of_ones_own_joins_the_board(sections, tmp_path, capsys):
    follow([*sections[:2], sections[6]])
    assert "nearest" in capsys.readouterr().err
    (template,) = re.findall(r"a learner of (\d+) lines", sections[6])
    lines = (tmp_path / "nearest.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) <= int(template)
