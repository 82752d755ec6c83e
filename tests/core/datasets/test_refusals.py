"""A user's files that cannot be used: one line with file, place or column, and the remedy's word.

``readers/test_malformed.py`` has the files that cannot be read.
"""

import pytest
from helpers.kit import prepared, refused, table

from bench_core.datasets.user_arrays import array_splits
from bench_core.splits import SPLITS

N = 120


def cells(*texts, name="c", rows=N):
    """A table of a number, a column of these cells, and labels."""
    lines = [f"{k * 7 % 11},{texts[k % len(texts)]},{k % 2}" for k in range(rows)]
    return "\n".join([f"x,{name},y", *lines]) + "\n"


def labels(*written, rows=20):
    """A table of two numbers and these labels; its three parts are alike."""
    lines = [f"{k},{k * k},{written[k % len(written)]}" for k in range(rows)]
    return alike("\n".join(["a,b,y", *lines]) + "\n")


def alike(text):
    return dict.fromkeys(SPLITS, text)


def queries(count):
    return "".join(f"{k} qid:{q} 1:{q}\n" for q in range(count) for k in range(3))


def commas(*texts, **more):
    return cells(*texts, **more).replace(",", ";").replace("/", ",")


VISITS = "patient,a,ill\n" + "p1,1,0\np2,2,1\n" * 30 + "p1,3,none\n"
ILL = {"label": "ill", "query": "patient", "task": "regression"}
OTHER = "a,b,y\n1,2,0\n3,4,1\n"
NARROW = "a,y\n1,0\n2,1\n"
SPELT = "a,y\n1,no\n2,yes\n3,no\n", "a,y\n4,no\n5,yes.\n", "line 3|'yes.'"
RARE = "a,y\n1,0\n2,1\n3,2\n", "a,y\n4,1\n5,0\n6,7\n7,8\n", "line 4|'7'"
NUMBERS = "1 1:1\n2 1:2\n", "1 1:1\n2 1:2\n2.5 1:3\n", "line 3|'2.5'|task='regression'"
QUANTITIES = {  # cells, and the remedy
    "signs, few": (["\u22121", "\u22122", "\u22123.5"], "'\u2212' (U+2212)"),
    "signs among numbers": (["10%", "1", "2"], "'%'"),
    "brackets": (["(12)", "(13)"], "'( )'"),
    "unit": ([f"{k} kg" for k in range(15)], "'kg'"),
    "durations": ([f"PT{k}M" for k in range(15)], "without 'PT M'"),
    "days and hours": ([f"P1DT{k}H" for k in range(15)], "plain numbers"),
    "another script": ([f"\u0663\u0665.5{k}" for k in range(15)], "plain numbers"),
    "underscores": ([f"{k}_000" for k in range(1, 16)], "plain numbers"),
    "thousands": ([f"{k} 000" for k in range(1, 16)], "write 1000, or give decimal=','"),
    "times of day": ([f"{k}:30" for k in range(15)], "':'"),
    "quarters": ([f"20{k}Q{k % 4 + 1}" for k in range(10, 25)], "'Q'"),
    "currency": ([f"EUR {k}.50" for k in range(15)], "correct it"),
    "hexadecimal": ([f"0x{k}F" for k in range(15)], "plain numbers"),
    "zones by name": ([f"2024-05-{k} 10:00 Europe/Rome" for k in range(10, 25)], "plain numbers"),
}
DAYS = ("1969-12-31", "2000-02-29")
REFUSED = [
    # columns with a role
    ("split,a,y\ntrain,1,0\nlater,2,1\n", {}, "line 3|'split'|'later'"),
    ("split,a,y\ntrain,1,0\nvalid,2,1\n", {}, "no row of split test"),
    ("split,q,a,y\ntrain,1,1,0\nvalid,1,2,1\n", {"query": "q"}, "line 3|keep"),
    (NARROW, {"split": "part"}, "line 1|split: unknown|'part'"),
    (NARROW, {"label": "z"}, "line 1|label: unknown|'z'"),
    (NARROW, {"label": "y", "drop": ("y",)}, "label and drop|'y'|choose one"),
    (NARROW, {"label": "y", "query": "y"}, "query and label|'y'|choose one"),
    (NARROW, {"index_base": 0}, "index_base=0|SVMlight|leave it out"),
    (NARROW, {"unwritten": "missing"}, "unwritten='missing'|SVMlight"),
    (NARROW, {}, "too small"),
    (NARROW, {"drop": ("aa",)}, "drop: unknown|'aa'|did you mean a"),
    (NARROW, {"keep_column": ("aa",)}, "keep_column: unknown|'aa'|did you mean a"),
    ("y\n1\n2\n", {"label": "y"}, "line 1|'y'|separate"),
    ({"train": VISITS}, ILL, "line 62|none"),
    ({"train": cells("1"), "test": "x,c\n1,2\n"}, {}, "test.csv, line 1|label|'y'"),
    # files that do not agree
    ({"train": OTHER, "valid": OTHER, "test": "a,y\n1,0\n"}, {}, "test.csv|'b'|train.csv"),
    ({"train": NARROW, "valid": NARROW, "test": OTHER}, {}, "train.csv|'b'|test.csv"),
    (
        {**alike("age,debt ratio,y\n1,2,0\n3,4,1\n"), "test": "age,debt ration,y\n1,2,0\n3,4,1\n"},
        {},
        "test.csv|'debt ratio'|'debt ration'?",
    ),
    ({**alike(queries(3)), "test": "1 1:2\n0 1:3\n"}, {}, "test.svm|queries"),
    (
        {"train": cells("10", "11"), "test": cells("30", "31", "old", rows=4)},
        {},
        "test.csv, line 4|'c'|'old'",
    ),
    *(({**alike(train), name: other}, {}, f"{name}.|{says}")
      for train, other, says in (SPELT, RARE, NUMBERS) for name in ("valid", "test")),
    # labels, tasks, classes
    (labels(*range(5)), {"task": "binary"}, "5 different labels"),
    (labels(0, 1), {"task": "multiclass"}, "two different labels|task='binary'"),
    (labels(0, 1), {"task": "ranking"}, "ranking needs queries"),
    (labels(*(f"n{k}" for k in range(20))), {}, "20 different labels|20 training rows"),
    (labels("a", "b"), {"task": "regression"}, "line 2|'a'"),
    (labels(7), {"task": "binary"}, "all labels|training|7"),
    (labels("no", "yes"), {"positive": "maybe"}, "positive='maybe'|no and yes"),
    (labels(0, 1), {"positive": "maybe"}, "positive='maybe'|0 and 1"),
    (labels(*range(5)), {"positive": "1"}, "positive='1'|multiclass"),
    *((labels("low", "high", "low", word), {}, f"line 5|'y'|{word!r}|missing")
      for word in ("NA", "null", "?")),
    # cells
    (",x,y\na,1,0\nb,2,1\n", {}, "column 1|to_csv(index=False)"),
    *((cells(f'"{cell}"', '"10%"'), {}, f"line 2, column 'c'|({cell!r})|plain numbers")
      for cell in ("12%", "$ 5", "1,234.50", "1,234", "7 €", "1'000")),
    (cells('"3,5"', '"10%"'), {}, "line 2|'c'|decimal=','"),
    (cells('"1,234"', '"12,345"'), {}, "'c'|decimal=','|else remove"),
    *((cells(*texts), {}, f"'c'|({texts[0]!r})|{remedy}") for texts, remedy in QUANTITIES.values()),
    # numbers and dates in other forms
    (commas("0/5", "1/5", "2.5"), {"decimal": ","}, "line 4|'c'|'2.5' has a decimal point"),
    (commas("0.25", "72.909"), {"decimal": ","}, "'0.25'|'72.909'|line 3|72909|decimal='.'"),
    (commas("0/5", "1/5"), {}, "'c'|'0,5'|decimal=','"),
    *((cells(*days), {"dates": True}, "'c'|ambiguous|2024-02-01")
      for days in (("24-DEC-24", "25-DEC-24"), ("1.2.24", "13.2.24"), ("1/2/2024", "3/4/2024"))),
    (cells(*DAYS, "unknown", rows=60), {"dates": True}, "line 4|'c'|'unknown' is not a date"),
    (cells("30.01.2024", "30.02.2024"), {"dates": True}, "line 3|'c'|'30.02.2024' is not a date"),
    (cells(*DAYS), {}, "'c'|dates|dates=True"),
    ("0 1:1\n1 1:2\n" * 30, {"decimal": ","}, "decimal=','|CSV and Parquet"),
    ("0 1:1\n1 1:2\n" * 30, {"dates": True}, "dates=True|CSV and Parquet"),
    # groups
    (cells("1", "2", name="z"), {"groups": ("zz:2",)}, "groups='zz:2'|unknown|'zz'"),
    (cells("1", "2", name="z"), {"groups": ("z:a",)}, "groups='z:a'|'a' is not a cost"),
    (cells("1", "2", name="z"), {"groups": ("z:1", "z,x:2")}, "'z'|two groups"),
    # formats
    ("1.0 2.0 3.0\n", {}, "SVMlight, CSV|Parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "options", "says"), REFUSED, ids=lambda v: str(v)[:50])
def test_files_are_refused_with_place_and_remedy(files, options, says, tmp_path):
    files = {"train": files} if isinstance(files, str) else files
    paths = {}
    for name, text in files.items():
        end = "svm" if " 1:" in text else "csv" if "," in text or "y\n" in text else "dat"
        paths[name] = tmp_path / f"{name}.{end}"
        paths[name].write_text(text, encoding="utf-8")
    more = {name: str(path) for name, path in paths.items() if name != "train"}
    refused(says, prepared, paths["train"], **more, **options)


def test_columns_are_named_at_once_and_remedies_once(tmp_path):
    rows = [f'2020-01-{k % 28 + 1:02},{k * k},text{k},"{k},5","{k},7",{k % 2}' for k in range(60)]
    path = table(tmp_path / "v.csv", "when,age,bad,a,b,ill", rows)
    line = refused("'when' holds dates ('2020-01-01')|'bad' holds 60|'a' holds text ('0,5')"
                   "|(also 'b')|dates=True", prepared, path)  # fmt: skip
    assert line.count("decimal=','") == 1
    assert line.endswith("; to leave out: drop=['when', 'bad', 'a', 'b']")
    refused("drop: unknown|'whn'|when", prepared, path, drop=("whn", "bad"))
    assert prepared(path, drop=("when", "bad", "a", "b")).feature_names == ("age",)


@pytest.mark.parametrize("name", ["query", "QID", "query_id", "split"])
def test_a_feature_called_as_a_role_can_be_left_out_or_used_otherwise(name, tmp_path):
    rows = [f"{k % 7},{k % 5},{k % 3},{k // 2 % 2}" for k in range(90)]
    path = table(tmp_path / "rows.csv", f"cpu,{name},ram,failed", rows)
    line = refused(f"'{name}'", prepared, path, label="failed")
    assert line.endswith(f"drop=['{name}']")
    assert prepared(path, label="failed", drop=(name,)).feature_names == ("cpu", "ram")
    role = {"split" if name == "split" else "query": name}  # which is what was meant
    assert "drop" not in refused("", prepared, path, label="failed", **role)


@pytest.mark.parametrize("label", [1.1e15, -1e30, 1e200])
def test_labels_whose_squared_errors_have_no_sums(label):
    X = [[k / 7] for k in range(N)]
    y = [0.5, 1.5, 2.5, label, *range(4, N)]
    refused("y, row 3|1e+15|scale the labels", array_splits, X, y)
