"""Small faults that users met: each is answered in one line that says what to do."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from bench_reports.budgets import run_command
from helpers.commands import Run, write_csv

from bench_core.cli import app
from bench_core.plugins import load_registry


def test_the_command_that_trains_a_setting_again_names_what_is_swept_by_default() -> None:
    request = {"data": ["breast-cancer"]}
    params = {"tradeoff": 0.3, "trees": 300}
    registry = load_registry()
    assert registry.learners["cegb"]().tradeoff == 0.3  # so that it need not differ
    command = run_command(request, "breast-cancer", "cegb", params, registry, Path("x.db"))
    assert "cegb.tradeoff=0.3" in shlex.split(command)
    assert "cegb.trees=300" not in shlex.split(command)


def test_last_is_a_near_match_of_a_run_and_best_writes_only_text(
    tmp_path: Path, bench: Run
) -> None:
    write_csv(tmp_path / "data.csv")
    done = bench("run", "--data", "data.csv", "-l", "constant", "--executor", "inline", "-q")
    assert done.status == 0, done.err
    assert "did you mean last?" in bench("report", "lst").err
    for name in ("best.json", "best.html", "best.tex"):
        ended = bench("best", "--budget", "3", "-o", name)
        assert ended.status == 2
        assert f"{name}: this is written as plain text (.txt)" in ended.err
    assert bench("best", "--budget", "3", "-o", "best.txt").status == 0


@pytest.mark.parametrize("verb", ["data", "model"])
def test_a_verb_of_several_commands_alone_shows_its_help(verb: str, bench: Run) -> None:
    alone = bench(verb)
    assert (alone.status, alone.err, alone.out) == (0, "", bench(verb, "--help").out)


def test_a_report_of_another_ending_is_refused_and_files_are_named_by_theirs(
    tmp_path: Path, bench: Run
) -> None:
    write_csv(tmp_path / "data.csv")
    done = bench("run", "--data", "data.csv", "-l", "constant", "--executor", "inline", "-q")
    assert done.status == 0, done.err
    before = sorted(tmp_path.iterdir())
    for words in (
        ("-o", "noending"),
        ("-o", "board.docx"),
        ("--plot", "c.html"),
        ("-o", "b.md", "--plot", "c.jpg"),
    ):
        ended = bench("report", *words)
        assert ended.status == 2
        assert words[-1] in ended.err
        assert ".tex" in ended.err or ".pdf" in ended.err
    assert sorted(tmp_path.iterdir()) == before
    assert "Budget Bench" in bench("report", "--methods").out
    assert bench("report", "-o", "board.tex", "-q").status == 0
    assert "\\toprule" in (tmp_path / "board.tex").read_text()


def test_memory_that_is_not_there_ends_in_one_line(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said, expected in (
        ("Unable to allocate 11.1 GiB", "error: out of memory (Unable to allocate 11.1 GiB): give"),
        ("", "error: out of memory: give fewer rows or columns"),
    ):

        def fail(arguments: list[str], said: str = said) -> int:
            raise MemoryError(said) if said else MemoryError

        monkeypatch.setattr(app, "_invoke", fail)
        ended = bench("plan", "--data", "x.csv")
        assert ended.status == 2
        assert ended.err.startswith(expected)
        assert ended.err.count("\n") == 1
        assert "internal" not in ended.err
