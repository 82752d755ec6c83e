import csv
import sys
from io import StringIO
from pathlib import Path

import pytest
from helpers.cli_fixtures import Terminal
from helpers.kit import refused
from rich.console import Console

from bench_core.terminal.tables import (
    Table,
    check_output,
    deliver,
    plain_lines,
    show,
    to_stderr,
    write_text,
)

LONG = "a remark of many words that goes on well beyond the width of any usual terminal, " * 3


def table(remark="short"):
    rows = [("one", "1.5", remark), ("twelve", "120.25", "")]
    titles = ("name", "mean cost", "remark")
    return Table(titles, rows, right=("mean cost",), fold=("remark",))


def shown(what, width, terminal=True):
    to = Console(file=StringIO(), width=width, force_terminal=terminal, color_system=None)
    show(what, to)
    assert isinstance(to.file, StringIO)
    return to.file.getvalue()


def test_plain_columns_are_aligned_two_blanks_apart():
    assert plain_lines(table()) == [
        "name    mean cost  remark",
        "one           1.5  short",
        "twelve     120.25",
    ]


def test_without_a_terminal_a_row_is_one_line_however_long():
    lines = shown(table(LONG), width=40, terminal=False).splitlines()
    assert len(lines) == 3
    assert LONG.strip() in lines[1]


def test_a_line_break_in_a_cell_does_not_break_the_row():
    assert plain_lines(table("two\nlines\x1b[2J"))[1] == r"one           1.5  two lines\x1b[2J"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_on_a_terminal_no_line_is_wider_than_it(width):
    lines = shown(table(LONG), width).splitlines()
    assert max(map(len, lines)) <= width


def test_a_terminal_too_narrow_for_columns_gets_records():
    text = shown(table("several words that need a second line"), width=18)
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[:3] == ["one", "  mean cost: 1.5", "  remark: several"]
    assert [line for line in lines if line and line[0] != " "] == ["one", "twelve"]


def test_lines_on_stderr_keep_their_indentation_and_break_at_words(monkeypatch, capsys):
    line = "  File made-up-name, line 3"
    to_stderr(line, line)
    assert capsys.readouterr().err == f"{line}\n{line}\n"
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", Terminal())
    to_stderr(line)
    assert sys.stderr.getvalue() == "  File made-up-name,\nline 3\n"


def test_no_word_is_cut_where_columns_have_room_for_it():
    path = "a/path/of/forty/characters/that/is/long"
    made = Table(("a", "b", "c"), [(LONG, f"see {path}", LONG)], fold=("a", "b", "c"))
    for width in range(80, 200, 7):
        text = shown(made, width)
        assert path in text
        assert max(map(len, text.splitlines())) <= width


def test_a_csv_file_gets_headings_and_rows_that_a_reader_of_csv_finds(tmp_path):
    deliver(table('one, "two"\nthree'), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["name", "mean cost", "remark"],
            ["one", "1.5", 'one, "two" three'],
            ["twelve", "120.25", ""],
        ]


@pytest.mark.parametrize("name", ["t.json", "t.HTML", "t.parquet", "t.docx", "t.md"])
def test_a_suffix_that_promises_something_else_is_refused(tmp_path, name):
    refused(f"{name}: the output is CSV", deliver, table(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_table_is_its_headings():
    assert plain_lines(Table(("a", "b"), [])) == ["a  b"]
    assert "a" in shown(Table(("a", "b"), []), width=40)


def test_markup_in_a_cell_is_text():
    assert "[red]x[/red]" in shown(table("[red]x[/red]"), width=80)


def test_a_file_is_replaced_as_a_whole_and_leaves_nothing_beside_it(tmp_path):
    file = tmp_path / "new" / "board.txt"
    write_text(file, "first")
    write_text(file, "second")
    assert file.read_text() == "second"
    assert list(file.parent.iterdir()) == [file]


def test_a_dash_is_stdout(capsys):
    write_text(Path("-"), "here\n")
    assert capsys.readouterr().out == "here\n"


def test_a_folder_and_a_file_on_the_way_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "file" / "board.html"):
        refused("cannot write", check_output, place)
        refused("cannot write", write_text, place, "x")
