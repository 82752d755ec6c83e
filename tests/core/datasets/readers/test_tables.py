"""CSV and bare number files; more unsound ones are in ``test_malformed``."""

import bz2
import gzip
import lzma

import numpy as np
import pytest
from helpers.kit import refused

from bench_core.datasets.readers.tables import float32_offset, hold_text, read_matrix, read_table


def write(folder, text, name="rows.csv"):
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2.5\n3,\n",
        "a;b\n1;2.5\n3;\n",
        "a\tb\n1\t2.5\n3\t\n",
        "a,b\r\n1,2.5\r\n3,NA\r\n",
        "a,b\r1,2.5\r3,NA\r",
        '"a","b"\n"1","2.5"\n3,?\n',
        "\ufeffa,b\n1,2.5\n\n3,nan\n",
        " a , b \n1,2.5\n3,\n",
    ],
)
def test_separators_quotes_and_missing_cells(text, tmp_path):
    table = read_table(write(tmp_path, text))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.matrix(table.names), [[1, 2.5], [3, np.nan]])


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["rows.csv", "ROWS.CSV.GZ", "rows.csv.xz", "rows"])
def test_packed_tables_are_read_under_any_name(pack, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(pack(b"\xef\xbb\xbfa,b\n1,2\n"))
    np.testing.assert_array_equal(read_table(path).matrix(("b", "a")), [[2, 1]])


@pytest.mark.parametrize(
    "text",
    ["a,b,\n1,2,\n3,4,\n", "a,b\n1,2,\n3,4,\n", "a,b,\n1,2\n3,4\n", "a,,b,,\n1,,2,,\n3,,4,,\n"],
)
def test_columns_without_name_and_cells_are_left_out(text, tmp_path):
    table = read_table(write(tmp_path, text))
    np.testing.assert_array_equal(table.matrix(("a", "b")), [[1, 2], [3, 4]])
    assert table.names == ("a", "b")
    assert table.column("b").cells().tolist() == ["2", "4"]


def test_quoted_names_may_have_blanks_behind_them_and_line_breaks(tmp_path):
    table = read_table(write(tmp_path, '"a b" ;"c\nd" ;y\n1;2;3\n'))
    assert table.names == ("a b", "c d", "y")
    assert table.place(0).endswith("line 3")
    assert read_table(write(tmp_path, '"a;1", "b;1", y\n1, 2, 3\n')).names == ("a;1", "b;1", "y")


def test_quoted_cells_hold_separators_quotes_and_line_breaks(tmp_path):
    text = 'a,b,y\n"x, y" ,"say ""no""",1\n\n "one\ntwo", x ,0\n"",NULL,1\n'
    table = read_table(write(tmp_path, text))
    assert table.column("a").cells().tolist() == ["x, y", "one\ntwo", ""]
    assert table.column("b").cells().tolist() == ['say "no"', "x", ""]
    assert [table.place(row)[-6:] for row in range(3)] == ["line 2", "line 4", "line 6"]


def test_numbers_are_rounded_once_to_the_nearest_float64(tmp_path):
    tokens = ["0.1", "1.7976931348623157e308", "9007199254740993", "123456789.123456789", "1e-310"]
    table = read_table(write(tmp_path, "a,b\n" + "".join(f"{t},0\n" for t in tokens)))
    assert table.numbers("a").tolist() == [float(t) for t in tokens]


def test_places_count_lines_as_an_editor_does(tmp_path):
    path = write(tmp_path, "\na,b\n1,2\n\n\n3,4\n")
    table = read_table(path)
    assert [table.place(row) for row in (0, 1)] == [f"{path}, line 3", f"{path}, line 6"]


def test_text_with_few_bad_cells_is_no_text_column(tmp_path):
    table = read_table(write(tmp_path, "a,b\n1,red\n2,blue\nx,red\n"))
    assert not hold_text([table.column("a")])
    assert hold_text([table.column("b")])


def test_a_matrix_of_white_space_is_read(tmp_path):
    table = read_matrix(write(tmp_path, "1 2 x  \n 3  4 y\n"), 3, separator="", text=(2,))
    np.testing.assert_array_equal(table.matrix(("1", "2")), [[1, 2], [3, 4]])
    assert table.column("3").texts().tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("1,2\n3,\n", "line 2, column '2'"),
        ("1,2\n3,x\n", "line 2, column '2'"),
        ("1\n2\n", "1 cells"),
    ],
)
def test_a_matrix_has_no_missing_cells_and_no_other_width(text, place, tmp_path):
    path = write(tmp_path, text)
    refused(place, lambda: read_matrix(path, 2).matrix(("1", "2")))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Temp, max;Wind, mean, 10 m;y\n0.1;1.2;1\n0.2;1.3;0\n", ("Temp, max", "Wind, mean, 10 m")),
        ('"a, b";"c, d, e";y\n1;2;1\n', ("a, b", "c, d, e")),
        ("name\tcost per 1,000, net\ty\n1\t2\t1\n", ("name", "cost per 1,000, net")),
        ('"a;b;c","d\te\tf",y\n1,2,1\n', ("a;b;c", "d\te\tf")),
        ("a,b;c,d;y\n0,5;1,5;1\n", ("a,b", "c,d")),
        ("sep=;\na;b;y\n1;2;1\n", ("a", "b")),
        ("a|b,c|y\n1|2|1\n", ("a", "b,c")),
        ("sep=|\na|b|y\n1|2|1\n", ("a", "b")),
        ('"sep=\t"\r\na\tb\ty\r\n1\t2\t1\r\n', ("a", "b")),
        ("\ufeffsep=,\na,b;c,y\n1,2,1\n", ("a", "b;c")),
    ],
)
def test_the_separator_is_the_one_that_all_lines_share(text, names, tmp_path):
    table = read_table(write(tmp_path, text))
    assert table.names == (*names, "y")
    assert table.numbers("y")[0] == 1


def test_lines_are_counted_with_one_that_names_the_separator(tmp_path):
    path = write(tmp_path, "sep=;\na;b\n1;2\n3;x\n5;6\n")
    refused("rows.csv, line 4, column 'b'|'x'", read_table(path).numbers, "b")


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2,label\n5,4,3,red\n6,5,4,blue\n",
        "2019,2020,y\n1,2,0\n3,4,1\n",
        "a,b\nb,a\na,c\n",
        "x,1.5\n1,red\n2,blue\n",
    ],
)
def test_names_that_are_numbers_or_known_texts_may_head_columns(text, tmp_path):
    assert read_table(write(tmp_path, text)).names == tuple(text.partition("\n")[0].split(","))


ROWS = "0.5,2,0\n1.5,4,1\n"
COMMENTS = {
    "# made by hand, 2026\n# twice\na,b,y\n" + ROWS: ("a", 5),
    "# one word\n\na,b,y\n" + ROWS: ("a", 5),
    "\ufeff#\na,b,y\n" + ROWS: ("a", 4),
    "sep=,\n# c\na,b,y\n" + ROWS: ("a", 5),
    "#a,b,y\n" + ROWS: ("#a", 3),  # numbers below: a header
    "##fileformat=v4\n#a,b,y\n" + ROWS: ("#a", 4),
}


@pytest.mark.parametrize("text", COMMENTS)
def test_lines_above_the_header_that_begin_with_a_hash_are_comments(text, tmp_path):
    first, line = COMMENTS[text]
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.names == (first, "b", "y")
    np.testing.assert_array_equal(table.numbers("b"), [2, 4])
    assert table.place(1).endswith(f"line {line}")


@pytest.mark.parametrize("value", [3.4028e38, 3.4028234e38, 3.4028235e38, 3.5e38, 1e300, 1.7e308])
def test_the_largest_values_merge_where_float32_has_one_number_for_several(value):
    for cells in ([value] * 5, [1.0, value], [value, -value], [value, 1.0, 2.0, 3.0]):
        assert float32_offset(np.array(cells)) is None
    assert float32_offset(value * (1 - 1e-12 * np.arange(100))) is not None
