"""Errors and notes as lines on a terminal."""

from __future__ import annotations

import pytest

from bench_core.datasets.user_files import FileData
from bench_core.errors import one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("class ±1 – 雪", "class ±1 – 雪"),
        ("one\n two\tthree\r\n", "one two three"),
        ("\x1b]0;owned\x07\x1b[2Jyes", r"\x1b]0;owned\x07\x1b[2Jyes"),
        ("right\u202eleft", r"right\u202eleft"),
        ("caf\udce9.csv", r"caf\udce9.csv"),
    ],
)
def test_what_could_act_on_a_terminal_is_shown_escaped(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_line_is_cut_to_a_length() -> None:
    assert one_line("abcdef", 4) == "abc…"
    assert one_line("abcd", 4) == "abcd"


def test_a_file_whose_name_is_no_text_has_a_name_that_can_be_written() -> None:
    data = FileData("some/caf\udce9.csv", test="te\x1bst.csv")
    assert data.name.encode() == rb"caf\udce9.csv"
    assert data.title.encode() == rb"caf\udce9.csv, te\x1bst.csv"
