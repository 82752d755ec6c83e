"""One's own data sets by name: the tables of datasets.toml."""

import numpy as np
import pytest
from helpers.kit import refused

import bench_core
from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.user_datasets import read_entries
from bench_core.splits import SPLITS

ROWS = 400


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{i},{i % 7},{int(i % 7 > 3)}\n" for i in range(ROWS))
    (tmp_path / "all.txt").write_text(f"number,rest,bought\n{rows}")
    (tmp_path / "costs.txt").write_text("number:2\nrest:3\n")
    return tmp_path


def entry(folder, text, fold=0):
    (folder / "datasets.toml").write_text(f"[mine]\n{text}\n")
    [cls] = read_entries(folder / "datasets.toml")
    return cls().prepare(DataFolder(folder), "quick", fold, 0)


def numbers(splits):
    return [{*getattr(splits, part).X[:, 0].tolist()} for part in SPLITS]


TABLE = """\
file = "all.txt"
format = "csv"
task = "binary"
label = "bought"
keep_column = ["number"]
"""


def test_a_table_names_file_format_task_label_and_costs(folder):
    splits = entry(folder, TABLE + 'costs = "costs.txt"')
    assert splits.task is Task.BINARY
    assert splits.feature_names == ("number", "rest")
    assert splits.prices.everything == 5.0
    assert sum(map(len, numbers(splits))) == ROWS


@pytest.mark.parametrize("positive", ["0", '"0"', "false"])
def test_a_table_names_the_positive_class(folder, positive):
    usual, turned = entry(folder, TABLE), entry(folder, f"{TABLE}positive = {positive}")
    assert turned.class_names == ("1", "0")
    np.testing.assert_array_equal(turned.train.y, 1 - usual.train.y)


def test_shares_and_folds_do_not_heed_a_column_called_split(folder):
    lines = ["number,rest,split,bought"]
    lines += [f"{i},{i % 5},{('train', 'valid', 'test')[i % 3]},{i % 2}" for i in range(ROWS)]
    (folder / "all.txt").write_text("\n".join(lines) + "\n")
    folds = [entry(folder, TABLE + "folds = 4", fold) for fold in range(4)]
    assert folds[0].feature_names == ("number", "rest")
    tests = [numbers(splits)[2] for splits in folds]
    assert sum(map(len, tests)) == len(set().union(*tests)) == ROWS


def test_a_column_says_which_split(folder):
    lines = ["number,bought,part"]
    lines += [f"{i},{i // 3 % 2},{('train', 'valid', 'test')[i % 3]}" for i in range(90)]
    (folder / "all.txt").write_text("\n".join(lines) + "\n")
    found = numbers(entry(folder, TABLE + 'split = "part"'))
    assert found == [{float(i) for i in range(90) if i % 3 == k} for k in range(3)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('task = "binary"', "key 'file': is missing"),
        ('file = "all.txt"', "key 'task': is missing: expected one of ranking, "),
        (TABLE + "fold = 3", "unknown key 'fold': did you mean folds"),
        (TABLE + "split = [0.5, 0.2]", "key 'split'|three shares"),
        (TABLE + "split = [0.5, 0.2, 0.2]", "key 'split'|three shares"),
        (TABLE + "folds = 2", "key 'folds': give at least 3"),
        (TABLE + "folds = 5\nsplit = [0.4, 0.2, 0.4]", "test splits overlap"),
        (TABLE + 'folds = 5\ntest = "other.txt"', "key 'folds'|leave out key"),
        (TABLE + 'split = [0.6, 0.2, 0.2]\ntest = "o.txt"', "key 'split'|leave out key"),
        (TABLE + "title = 3", "key 'title': expected a text"),
        (TABLE + 'drop = "rest"', "key 'drop': 'rest' is not a list"),
        (TABLE + "index_base = 2", "key 'index_base': 2 is not a whole number from 0 to 1"),
        (TABLE.replace("csv", "xls"), "key 'format': 'xls' is not one of svmlight, csv, parquet"),
        (TABLE.replace('"all.txt"', "3"), "key 'file': 3 is not text"),
        (TABLE.replace("bought", "sold"), "all.txt, line 1: key 'label': unknown column 'sold'"),
        (TABLE + 'query = "who"', "line 1: key 'query': unknown column 'who'"),
        (
            TABLE.replace("binary", "ranking"),
            "all.txt: ranking needs queries; give key 'query' = COLUMN",
        ),
        (TABLE.replace('"csv"', '"svmlight"'), "all.txt: key 'label' = \"bought\" names"),
        (TABLE.replace("all", "some"), "some.txt: no such file"),
        (TABLE.replace("all", "~no-one-here/all"), "~no-one-here/all.txt: no such file"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line(folder, text, said):
    refused(f"datasets.toml|[mine]|{said}", entry, folder, text)


@pytest.mark.parametrize(
    "text",
    [
        "mine = 3",
        '["my data"]\nfile = "a"',
        "[mine",
        '["a.b"]',
        "a = " + "[" * 9000,
        "a=1" + "0" * 5000,
    ],
    ids=range(6),
)
def test_a_file_of_another_form_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "datasets.toml").write_text(text)
    refused("datasets.toml", read_entries, tmp_path / "datasets.toml")


def test_an_unusable_file_is_a_warning_and_stops_no_other_data(folder):
    (folder / "datasets.toml").write_text("[letters]\n" + TABLE)
    said = []
    bench_core.run(
        data="breast-cancer",
        learners="constant",
        data_dir=folder,
        store=str(folder / "own.db"),
        executor="inline",
        on_event=lambda event: said.append(event.message) if event.warning else None,
    )
    assert any("[letters] has the name of another data set" in line for line in said)


def test_an_option_of_the_command_is_called_by_its_key(folder):
    for form, text, says in (
        ("svmlight", "0 0:1\n1 0:2\n" * 20, "key 'index_base' = 0"),
        ("csv", "a,label\n1,0\n2,1\n", "key 'valid' and key 'test'"),
    ):
        (folder / "all.txt").write_text(text)
        refused(says, entry, folder, f'file = "all.txt"\nformat = "{form}"\ntask = "binary"')
