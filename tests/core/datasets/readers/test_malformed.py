"""Malformed files: one line that names the file, the place, the fault and a remedy.

Every case is a sound file with one thing spoilt; the sound files are read, too.
"""

import bz2
import gzip
import lzma

import pytest
from helpers.kit import prepared, refused

from bench_core.datasets.readers import svmlight

SVM = "2 qid:1 1:0.5 3:1\n0 qid:1 2:4\n# between\n1 qid:2 1:1 2:2 3:3\n0 qid:4 3:1\n"
CSV = "query,a,b,label\n1,0.5,2,2\n1,,3,0\n2,1,4,1\n3,7,5,0\n"
NOTES = "a,b,label\n" + "".join(f"note {k},{k},{k % 2}\n" for k in range(20))


def alike(path):
    """The file as training, validation and test data."""
    return prepared(path, path, path)


SPOILT = [  # what is spoilt, what is there instead, words of the line
    *(("2:4", cell, f"line 2|{says}|correct it") for cell, says in (
        ("2:four", "feature 2: 'four'"), ("2:4_0", "feature 2: '4_0'"),
        ("2:inf", "feature 2: 'inf'"), ("2:4e38", "feature 2: '4e38'"), ("2:", "feature 2: ''"),
        ("24", "'24' is not index:value"), ("2.0:4", "'2.0:4' is not index:value"),
        ("+2:4", "'+2:4' is not index:value"), ("-2:4", "'-2:4' is not index:value"),
    )),
    ("1:0.5", "0:0.5", "line 1|index 0|index_base=0"),
    ("1:1 2:2", "2:1 1:2", "line 4|index 1 after 2|sort"),
    ("1:1 2:2", "1:1 1:2", "line 4|index 1|twice|remove one"),
    ("2:4", "2000000000:4", "2000000000 features|without gaps"),
    ("2 qid:1", "two qid:1", "line 1|label 'two'|correct it"),
    ("2 qid:1", "nan qid:1", "line 1|label 'nan'|correct it"),
    ("2 qid:1", "-2 qid:1", "line 1|label -2|start at 0"),
    ("qid:4", "qid:1", "line 5|query 1|together"),
    ("qid:2", "qid:b", "line 4|'qid:b'|correct it"),
    (" qid:2", "", "line 4|no qid|every line"),
    ("3:1\n", "3:1 qid:5\n", "line 1|'qid:5'|correct"),
    *(("0 qid:1", f"0 qid:{qid}", "line 2") for qid in ("+7", "1e3", "-0", "7.0")),
    (SVM, "", "empty|name another"),
    (SVM, "# a\n\n# b\n", "no rows|name another"),
    (SVM, "1 qid:1\n0 qid:2\n", "no features|name another"),
    (SVM, gzip.compress(SVM.encode())[:-12], "truncated or damaged|again"),
    (SVM, SVM.encode("utf-16"), "line 1|UTF-8"),
    (CSV, lzma.compress(CSV.encode())[:-20], "damaged|again"),
    (CSV, bz2.compress(CSV.encode())[:-5], "damaged|again"),
    (CSV, "<!DOCTYPE html>\n<p>Log in", "web page|save its rows"),
    (CSV, b"PK\x03\x04\x14\0", "zip archive|save its rows as CSV"),
    (CSV, "a b y\n1 2 0\n", "line 1|one column|commas"),
    (CSV, "a,b\n1,K\u00f6ln\n".encode("cp1252"), "line 2|CSV UTF-8|encoding='cp1252'"),
    ("2,1,4,1", "2,one,4,1", "line 4, column 'a'|correct it"),
    ("2,1,4,1", "2,inf,4,1", "line 4, column 'a'|leave the cell empty"),
    ("2,1,4,1", "2,1,4,", "line 4, column 'label'|fill it in"),
    ("2,1,4,1", "2,1,4,x", "line 4, column 'label'|correct it"),
    ("2,1,4,1", ",1,4,1", "line 4, column 'query'|fill it in"),
    ("3,7,5,0", "1,7,5,0", "line 5|query '1'|give query='query'|drop=['query']"),
    ("2,1,4,1", '2,1,"4"5,1', "line 4|behind its closing quote|correct it"),
    ("2,1,4,1\n3,7", '2,1,"4,1\n3,"7"', "line 4|behind its closing quote|correct it"),
    ("2,1,4,1", "2,1,4", "line 4: 3 cells|has 4|complete the line"),
    ("2,1,4,1", "2,1,4,1,9", "line 4: 5 cells|correct the line"),
    ("2,1,4,1\n3,7,5,0", "2,1,4\n3,7,5", "line 4: 3 cells|(also lines 5)"),
    ("1,,3,0\n2,1,4,1", '1,"one\ntwo",3,0\n2,1', "line 5: 2 cells"),
    ("2,1,4,1", "query,a,b,label", "line 4 repeats the header|remove it"),
    ("query,a", "Report of May\n\nquery,a", "line 1: not the header|1 cells"),
    ("3,7,5,0\n", "3,7,5,0\n\n4 rows\n", "line 7: 1 cells|complete the line, or remove it"),
    ("2,1,4,1", '2,"1,4,1', "line 4|quote|not closed"),
    ("b,", '"b,', "line 1|quote|correct it"),
    ("a,b", "a,a", "line 1|two columns|rename one"),
    ("a,b", "a,", "line 1: column 3|give it one"),
    (CSV, "query,split\n1,train\n", "line 1|no feature|add"),
    ("query,a", "\f\nquery,a", "line 1: not the header|column names"),
    *((CSV, rows, "line 1: no header|column names") for rows in (
        "1,2,3,4\n" + CSV.partition("\n")[2],
        "5.1,4.3,setosa\n4.9,2.6,virginica\n5.6,3.8,setosa\n",
        "5.1,NA,Braund\n4.9,2.6,Allen\n",  # a text of this row alone, but decimals
        "0,0,1\n1,0,1\n",
        "p,x,s,n\ne,x,y,n\np,b,s,w\ne,x,s,n\n",
        "3;0;no\n4;1;yes\n5;1;no\n",
    )),
    (CSV, ",7,a\n1,8,a\n", "line 1|header"),
    (CSV, NOTES, "column 'a' holds 20 different texts|drop=["),
    (CSV, "a,b,label\n", "no rows|name another"),
    (CSV, b"PAR1 broken", "not a Parquet|again"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "says"), SPOILT, ids=lambda value: str(value)[-40:])
def test_is_refused_in_one_line_with_file_place_and_remedy(old, new, says, tmp_path):
    sound = SVM if old in SVM else CSV
    assert old in sound
    spoilt = new if isinstance(new, bytes) else sound.replace(old, new, 1).encode()
    end = "parquet" if spoilt[:4] == b"PAR1" else "svm" if sound == SVM else "csv"
    path = tmp_path / f"rows.{end}"
    path.write_bytes(spoilt)
    refused(f"{path}|{says}", alike, path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("sound", [SVM, CSV])
def test_the_same_file_unspoilt_is_read(sound, pack, tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(pack(sound.encode()))
    assert len(alike(path).train) == 4


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("2\n1\n", "add up to 3|take the side-car"),
        ("2\n0\n2\n", "line 2: '0'|whole number >= 1"),
        ("2\nx\n2\n", "line 2: 'x'|whole number >= 1"),
        ("1\n3\n", "contradict|remove it"),
        ("", "empty|name another"),
    ],
)
def test_unusable_side_cars_are_refused(content, says, tmp_path):
    (tmp_path / "rows.svm").write_text(SVM)
    (tmp_path / "rows.svm.query").write_text(content)
    refused(f"rows.svm.query|{says}", alike, tmp_path / "rows.svm")
    (tmp_path / "rows.svm.group").write_text(content)
    refused("rows.svm.query|rows.svm.group|keep one", alike, tmp_path / "rows.svm")


def test_what_is_not_a_file_is_refused(tmp_path):
    refused("no such file", alike, tmp_path / "absent.svm")
    refused("a folder|name a file", alike, tmp_path)
    (tmp_path / "part-0.parquet").write_bytes(b"PAR1")
    refused("a folder|Parquet", alike, tmp_path)


def test_too_many_features_for_memory_are_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{i % 2} 900000:{i}\n" for i in range(300000)))
    refused("do not fit into memory", svmlight.read_svmlight, path)
