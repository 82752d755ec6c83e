"""Malformed input: one line that names the file, the place, the fault and a remedy.

Every case is a sound file with one thing spoilt; the sound files are read, too.
"""

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.readers import svmlight
from bench_core.datasets.user_files import FileData
from bench_core.errors import InputError

SVM = "2 qid:1 1:0.5 3:1\n0 qid:1 2:4\n# between\n1 qid:2 1:1 2:2 3:3\n0 qid:4 3:1\n"
CSV = "query,a,b,label\n1,0.5,2,2\n1,,3,0\n2,1,4,1\n3,7,5,0\n"
Read = Callable[[Path], object]


def own(path, **options):
    """The file as training, validation and test data alike."""
    name = str(path)
    data = FileData(name, valid=name, test=name, **options)
    return data.prepare(DataFolder("."), "quick", 0, 0)


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    read: Read
    sound: str
    spoilt: str | bytes
    place: str  # what the message must say besides the file's name
    remedy: str

    def __str__(self):
        return self.name


def svm(name, old, new, place, remedy):
    assert old in SVM
    return Case(name, "rows.svm", own, SVM, SVM.replace(old, new, 1), place, remedy)


def csv(name, old, new, place, remedy):
    assert old in CSV
    return Case(name, "rows.csv", own, CSV, CSV.replace(old, new, 1), place, remedy)


CASES = [
    svm("letters as a value", "2:4", "2:four", "line 2: feature 2: 'four'", "correct it"),
    svm("underscore in a number", "2:4", "2:4_0", "line 2: feature 2: '4_0'", "correct it"),
    svm("infinite value", "2:4", "2:inf", "line 2: feature 2: 'inf'", "correct it"),
    svm("value beyond float32", "2:4", "2:4e38", "line 2: feature 2: '4e38'", "correct it"),
    svm("empty value", "2:4", "2:", "line 2: feature 2: ''", "correct it"),
    svm("cell without a colon", "2:4", "24", "line 2: '24' is not index:value", "correct it"),
    svm("index with a point", "2:4", "2.0:4", "line 2: '2.0:4' is not index:value", "correct it"),
    svm("index with a plus", "2:4", "+2:4", "line 2: '+2:4' is not index:value", "correct it"),
    svm("negative index", "2:4", "-2:4", "line 2: '-2:4' is not index:value", "correct it"),
    svm("index 0", "1:0.5", "0:0.5", "line 1: index 0", "index_base=0"),
    svm("descending index", "1:1 2:2", "2:1 1:2", "line 4: index 1 after 2", "sort the line"),
    svm("repeated index", "1:1 2:2", "1:1 1:2", "line 4: index 1 comes twice", "remove one"),
    svm("enormous index", "2:4", "2000000000:4", "2000000000 features", "without gaps"),
    svm("text label", "2 qid:1", "two qid:1", "line 1: label 'two'", "correct it"),
    svm("NaN label", "2 qid:1", "nan qid:1", "line 1: label 'nan'", "correct it"),
    svm("negative grade", "2 qid:1", "-2 qid:1", "line 1: label -2", "start at 0"),
    svm("split query", "qid:4", "qid:1", "line 5: query 1 is split", "put its lines together"),
    svm("query id with letters", "qid:2", "qid:b", "line 4: 'qid:b'", "correct it"),
    svm("a line without query", " qid:2", "", "line 4: no qid", "give every line"),
    svm("query id in the wrong place", "3:1\n", "3:1 qid:5\n", "line 1: 'qid:5'", "correct"),
    Case("empty file", "rows.svm", own, SVM, "", "empty", "name another"),
    Case("only comments", "rows.svm", own, SVM, "# a\n\n# b\n", "no rows", "name another"),
    Case("no features", "rows.svm", own, SVM, "1 qid:1\n0 qid:2\n", "no features", "name another"),
    Case(
        "truncated gzip", "rows.svm.gz", own, SVM, gzip.compress(SVM.encode())[:-12],
        "truncated or damaged", "get the file again",
    ),
    Case("UTF-16", "rows.svm", own, SVM, SVM.encode("utf-16"), "line 1: not text in", "UTF-8"),
    Case("truncated xz", "x.csv", own, CSV, lzma.compress(CSV.encode())[:-20], "damaged", "again"),
    Case("truncated bz2", "x.csv", own, CSV, bz2.compress(CSV.encode())[:-5], "damaged", "again"),
    Case("web page", "x.csv", own, "", "<!DOCTYPE html>\n<p>Log in", "a web page", "save its rows"),
    Case("zip", "x.csv", own, "", b"PK\x03\x04\x14\0", "a zip archive", "save its rows as CSV"),
    Case("blanks", "x.csv", own, "", "a b y\n1 2 0\n", "line 1: one column only", "by commas"),
    csv("text in a numeric column", "2,1,4,1", "2,one,4,1", "line 4, column 'a'", "correct it"),
    csv("infinite cell", "2,1,4,1", "2,inf,4,1", "line 4, column 'a'", "leave the cell empty"),
    csv("missing label", "2,1,4,1", "2,1,4,", "line 4, column 'label'", "fill it in"),
    csv("text among the labels", "2,1,4,1", "2,1,4,x", "line 4, column 'label'", "correct it"),
    csv("missing query", "2,1,4,1", ",1,4,1", "line 4, column 'query'", "fill it in"),
    csv("split query in a table", "3,7,5,0", "1,7,5,0", "line 5: query '1'", "put its lines"),
    csv("too few cells", "2,1,4,1", "2,1,4", "line 4: 3 cells", "complete the line"),
    csv("too many cells", "2,1,4,1", "2,1,4,1,9", "line 4: 5 cells", "correct the line"),
    csv("two columns of one name", "a,b", "a,a", "line 1: two columns", "rename one"),
    csv("a column without a name", "a,b", "a,", "line 1: column 3", "give it one"),
    csv("queries and splits alone", CSV, "query,split\n1,train\n", "line 1: no feature", "add"),
    csv("a header whose quote is not closed", "b,", '"b,', "line 1: a cell begins", "correct it"),
    csv("no header", "query,a,b,label", "1,2,3,4", "line 1: no header", "column names"),
    csv("a form feed first", "query,a", "\f\nquery,a", "line 1: not the header", "column names"),
    Case(
        "a column of free text", "rows.csv", own, CSV,
        "a,b,label\n" + "".join(f"note {k},{k},{k % 2}\n" for k in range(20)),
        "column 'a' holds 20 different texts", "drop=[",
    ),
    Case("header and no rows", "rows.csv", own, CSV, "a,b,label\n", "no rows", "name another"),
    Case("Parquet that is none", "rows.parquet", own, "", b"PAR1 broken", "not a Parquet", "again"),
]  # fmt: skip


def write(folder, case, content):
    path = folder / case.file
    raw = content.encode() if isinstance(content, str) else content
    if case.file.endswith(".gz") and isinstance(content, str):
        raw = gzip.compress(raw)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("case", CASES, ids=str)
def test_is_refused_in_one_line_with_file_place_and_remedy(case, tmp_path):
    path = write(tmp_path, case, case.spoilt)
    with pytest.raises(InputError) as caught:
        case.read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    assert case.place in message
    assert case.remedy in message


@pytest.mark.parametrize("case", {(c.file, c.sound): c for c in CASES if c.sound}.values(), ids=str)
def test_the_same_file_unspoilt_is_read(case, tmp_path):
    assert case.read(write(tmp_path, case, case.sound)) is not None


SIDE_CARS = {
    "wrong sum": ("2\n1\n", "add up to 3", "take the side-car"),
    "zero size": ("2\n0\n2\n", "line 2: '0'", "whole number >= 1"),
    "text": ("2\nx\n2\n", "line 2: 'x'", "whole number >= 1"),
    "contradiction": ("1\n3\n", "contradict", "remove it"),
    "empty": ("", "empty", "name another"),
}


@pytest.mark.parametrize("kind", SIDE_CARS)
def test_unusable_side_cars_are_refused(kind, tmp_path):
    content, place, remedy = SIDE_CARS[kind]
    path = tmp_path / "rows.svm"
    path.write_text(SVM)
    (tmp_path / "rows.svm.query").write_text(content)
    with pytest.raises(InputError) as caught:
        own(path)
    assert "rows.svm.query" in str(caught.value)
    assert place in str(caught.value)
    assert remedy in str(caught.value)


def test_two_side_cars_are_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(SVM)
    for end in ("query", "group"):
        (tmp_path / f"rows.svm.{end}").write_text("2\n1\n1\n")
    with pytest.raises(InputError, match="keep one"):
        own(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        own(tmp_path / "absent.svm")


def test_a_folder_instead_of_a_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="a folder, not a file; name a file"):
        own(tmp_path)


def test_a_folder_of_parquet_files_is_refused(tmp_path):
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="a folder, not a file; join its Parquet files to one"):
        own(tmp_path)


def test_too_many_features_for_memory_are_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{i % 2} 900000:{i}\n" for i in range(300000)))
    with pytest.raises(InputError, match="do not fit into memory"):
        svmlight.read_svmlight(path)
