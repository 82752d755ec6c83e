"""The tutorial runs as it stands, and prints on a terminal what it shows."""

import re
import sys
from doctest import ELLIPSIS, OutputChecker
from pathlib import Path

import pytest
from helpers.pages import alone, command, printed

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.compile(r"```(python|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.S)


@pytest.fixture
def sections(tmp_path, monkeypatch):
    """What each section of the page holds; everything happens in a folder of its own."""
    alone(tmp_path, monkeypatch)
    yield re.split(r"^## \d\. ", PAGE, flags=re.M)[1:]
    sys.modules.pop("nearest", None)


def follow(parts):
    """Do what these sections show, and compare."""
    names = {"__name__": "page"}
    for part in parts:
        for kind, code, shown in BLOCKS.findall(part):
            if kind == "python":
                got = printed(exec, compile(code, "docs/tutorial.md", "exec"), names)
            else:
                got = "".join(printed(command, line) for line in code.splitlines())
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
