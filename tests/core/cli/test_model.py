"""``bench model``: export a model of a run, show it, replay it."""

import json
import re
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import calls
from helpers.commands import QUICK, write_csv

from bench_core import BudgetedClassifier, load_run
from bench_core.encoding import plain_encodings
from bench_core.results.store import Store
from bench_core.serving import load, write_folder
from bench_core.serving.folder import read_folder

MODELS = (*QUICK, "--costs", "costs.csv", "-l", "toy,gbrt", "--set", "gbrt.trees=5")
GBRT = ("--learner", "gbrt")


@pytest.fixture
def done(ran):
    return ran(*MODELS, "-m", "accuracy,log_loss").ok()


class Overdue:
    """A timer whose time is over when it starts."""

    def __init__(self, seconds, function, args):
        self.start = lambda: function(*args)

    def cancel(self):
        pass


def test_a_long_export_says_that_it_compiles(bench, done, monkeypatch):
    monkeypatch.setattr("bench_core.cli.options.Timer", Overdue)
    ended = bench("model", "export", *GBRT, "-o", "model")
    line = "still exporting: the first export on a machine compiles code\n"
    assert line in ended.err


def validation(bench):
    """The points of gbrt on validation."""
    bench("export", "-o", "all.csv")
    frame = pd.read_csv("all.csv")
    return frame[(frame["learner"] == "gbrt") & (frame["split"] == "valid")]


def test_a_model_goes_home_and_does_the_same(bench, done, tmp_path):
    ended = bench("model", "export", *GBRT, "-o", "model").ok()
    assert "wrote model" in ended.out
    assert "gbrt at trees=" in ended.out
    shown = bench("model", "show", "model").ok()
    assert "features that the model may ask for" in shown.out
    checked = bench("model", "check", "model").ok()
    assert "the same as when exported" in checked.out


def test_the_least_cost_of_an_answer_is_shown_with_the_answer_below_it(bench, tmp_path):
    rng = np.random.default_rng(0)
    true = rng.choice(3, 600, p=[0.2, 0.5, 0.3])
    frame = pd.DataFrame({"f0": true + rng.normal(0, 0.2, 600), "f1": rng.normal(size=600)})
    frame["label"] = np.array(["low", "middle", "high"])[true]
    frame.to_csv("own.csv", index=False)
    (tmp_path / "prices.csv").write_text("feature,price in EUR\nf0,0.4\nf1,2\n")
    words = ("-d", "own.csv", "--label", "label", "--costs", "prices.csv", "--audit", "off")
    bench("run", *words, "-l", "gbrt", "--set", "gbrt.trees=5").ok()
    bench("model", "export", "-o", "model").ok()
    model = load("model")
    assert model.least_cap > 0
    shown = bench("model", "show", "model").out
    amount = f"{model.least_cap:.2f} EUR"
    assert f"every answer costs at least {amount}; with less you get 'middle', the most" in shown
    (answer,) = model.predict_rows({"f0": [2.0], "f1": [0.0]}, cap=0.1).scores
    assert model.labels(answer[None]).tolist() == ["middle"]


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (("--budget", "1.5"), {"budget": 1.5}),  # of two points
        (("--budget", "9", "--budget-kind", "cap"), {"budget": 9, "budget_kind": "cap"}),
        ((), {}),
    ],
)
def test_python_exports_the_model_of_the_verb(words, call, bench, ran):
    ran(*QUICK, "--costs", "costs.csv", "-l", "gbrt", "--set", "gbrt.trees=5")
    bench("model", "export", *words, "-o", "model").ok()
    best = load_run().best(**call)
    assert best.export("own") == Path("own")
    verb, own = ({p.name: p.read_bytes() for p in Path(f).iterdir()} for f in ("model", "own"))
    assert own == verb
    rows = {name: [0.5, -0.5] for name in best.model().names}
    one, two = (model.predict_rows(rows) for model in (best.model(), load("own")))
    assert (one.scores.tolist(), one.spent.tolist()) == (two.scores.tolist(), two.spent.tolist())


def test_neither_model_nor_store_names_a_place_of_this_machine(bench, material, tmp_path):
    bench("run", *MODELS).ok()
    bench("model", "export", *GBRT, "-o", "model").ok()
    kept = [(tmp_path / "model" / "model.json").read_text()]
    with closing(sqlite3.connect(Store().path)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            kept.append(repr(db.execute(f"SELECT * FROM {name}").fetchall()))
    assert "gbrt on data.csv" in "".join(kept)
    for text in kept:
        assert str(tmp_path) not in text
        assert str(Path.home()) not in text


def test_a_cap_bounds_the_cost_of_every_row(bench, done):
    limit = float(validation(bench)["cost_max"].median())
    words = ("-b", str(limit), "--budget-kind", "cap", "-o", "model")
    bench("model", "export", *GBRT, *words).ok()
    model = load("model")
    assert model.about["budget"] == {"amount": limit, "kind": "cap"}
    assert model.about["valid"]["cost"] <= limit
    X = np.random.default_rng(0).normal(size=(50, 3)) * 5
    assert (model.predict_rows(X).spent <= limit).all()


def test_a_cap_that_was_measured_decides_by_what_was_measured(bench, done):
    limit = float(validation(bench)["cost"].median())  # less than some rows of all points
    bench("run", *MODELS, "-m", "accuracy,log_loss", "--caps", repr(limit)).ok()
    words = ("-b", repr(limit), "--budget-kind", "cap", "-o", "model")
    bench("model", "export", *GBRT, *words).ok()
    model = load("model")
    assert model.about["point"] == {"cap": limit}  # along the whole path
    assert model.cap == limit
    assert model.about["test"]["cost_max"] <= limit
    assert "the same as when exported" in bench("model", "check", "model").out


def test_rows_of_a_file_are_replayed_by_column_name(bench, done):
    bench("model", "export", *GBRT, "-o", "model").ok()
    write_csv(Path("today.csv"), 60)
    frame = pd.read_csv("today.csv")
    frame[["c", "label", "a", "b"]].to_csv("turned.csv", index=False)
    plain, turned = (
        bench("model", "check", "model", "-d", f"{n}.csv") for n in ("today", "turned")
    )
    assert plain.status == turned.status == 0
    assert plain.out.splitlines()[1:] == turned.out.splitlines()[1:]
    frame[["c", "label"]].to_csv("narrow.csv", index=False)
    assert "no column 'a'" in bench("model", "check", "model", "-d", "narrow.csv").err


def test_rows_of_another_decimal_mark_are_replayed_by_the_option_that_the_error_names(bench, done):
    bench("model", "export", *GBRT, "-o", "model").ok()
    write_csv(Path("today.csv"), 60)
    frame = pd.read_csv("today.csv")
    frame["a"] += 0.5
    frame.to_csv("today.csv", index=False)
    frame.to_csv("commas.csv", index=False, sep=";", decimal=",")
    check = ("model", "check", "model", "-d")
    assert "--decimal , reads decimal commas" in bench(*check, "commas.csv").err
    plain, commas = bench(*check, "today.csv"), bench(*check, "commas.csv", "--decimal", ",")
    assert commas.out.splitlines()[1:] == plain.out.splitlines()[1:]


def test_rows_of_svmlight_go_with_a_model_of_numbered_columns(bench, done):
    bench("model", "export", *GBRT, "-o", "model").ok()
    Path("x.svm").write_text("1 1:0.5\n0 2:0.25\n")
    bench("model", "check", "model", "-d", "x.svm").ok()
    folder = read_folder(Path("model"))
    coded = replace(folder, encodings=plain_encodings(folder.names))
    write_folder(Path("model"), coded)
    wanted = "x.svm: SVMlight; the model needs a table with its columns"
    assert wanted in bench("model", "check", "model", "-d", "x.svm").err


def test_rows_of_the_training_are_named(bench, done):
    bench("model", "export", *GBRT, "--budget", "inf", "-o", "model").ok()
    frame = pd.read_csv("data.csv")
    other = frame.assign(a=frame["a"] + 0.25)
    other.to_csv("new.csv", index=False)
    known, new = (bench("model", "check", "model", "-d", f"{n}.csv").err for n in ("data", "new"))
    found = re.search(r"note: (\d+) of 120 rows equal training or validation rows", known)
    assert found, known
    assert 90 < int(found[1]) <= 120  # four in five, and test rows with equal cells
    assert new == ""
    half = 2 * int(found[1]) - 120  # as many rows of the run as others
    for count in (half, half + 1):
        pd.concat([frame, other.head(count)]).to_csv("mixed.csv", index=False)
        said = bench("model", "check", "model", "-d", "mixed.csv").err
        assert ("rows equal" in said) == (count == half)


def test_labels_are_those_of_training(bench, done):
    bench("model", "export", *GBRT, "-o", "model").ok()
    write_csv(Path("today.csv"), 60)
    frame = pd.read_csv("today.csv")
    assert set(frame["label"]) == {0, 1}
    frame[frame["label"] == 1].to_csv("half.csv", index=False)
    bench("model", "check", "model", "-d", "half.csv").ok()
    frame["label"] = frame["label"].map({0: "no", 1: "yes"})
    frame.to_csv("text.csv", index=False)
    assert (
        "is not a class of the model: 0, 1"
        in bench("model", "check", "model", "-d", "text.csv").err
    )


def test_a_moved_column_may_have_the_name_of_another_feature(bench):
    names, start = ("t", "t-1700000000", "b", "label"), 1_700_000_000
    rng = np.random.default_rng(0)
    times = start + rng.integers(0, 600, (200, 2))
    frame = pd.DataFrame({**dict(zip(names, times.T, strict=False)), "b": np.arange(200) % 7})
    frame["label"] = (frame["t"] > start + 300) ^ (frame[names[1]] > start + 300)
    frame.to_csv("all.csv", index=False)
    learner = ("-l", "gbrt", "--set", "gbrt.trees=30", "--executor", "inline")
    bench("run", "-d", "all.csv", *learner).ok()
    bench("model", "export", "-b", "inf", "-o", "model").ok()
    assert load("model").names == names[:3]
    checked = bench("model", "check", "model", "-d", "all.csv").out
    accuracy = re.search(r"accuracy +\S+ +(\S+)", checked)
    assert accuracy, checked
    assert float(accuracy[1]) > 0.8


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_the_positive_class_is_that_of_training(bench, positive):
    """As labels 0 and 1, whatever the order of the words."""
    figures = []
    for name, labels in (("plain", {0: 0, 1: 1}), ("text", {1: positive, 0: "maybe"})):
        write_csv(Path(f"{name}.csv"), 200)
        frame = pd.read_csv(f"{name}.csv")
        frame["label"] = frame["label"].map(labels)
        frame.to_csv(f"{name}.csv", index=False)
        given = ("--positive", str(labels[1]), "-m", "auc", "-m", "accuracy")
        learner = ("-l", "gbrt", "--set", "gbrt.trees=3", "--executor", "inline")
        bench("run", "-d", f"{name}.csv", *learner, *given).ok()
        bench("model", "export", "-o", name).ok()
        checked = bench("model", "check", name, "-d", f"{name}.csv").out
        for number, label in labels.items():
            checked = re.sub(rf"^{label} +", f"class {number} ", checked, flags=re.M)
        figures.append(checked.splitlines()[1:])
    assert figures[0] == figures[1]


def test_a_model_that_reads_nothing_is_checked_on_rows(bench):
    rows = [f"{n % 5},{n % 3},{'yn'[n % 4 == 0]}" for n in range(200)]
    Path("data.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    bench("run", "-d", "data.csv", "--label", "label", "-l", "constant", "--executor", "inline")
    bench("model", "export", "--learner", "constant", "-o", "model").ok()
    checked = bench("model", "check", "model", "-d", "data.csv").ok()
    assert "model: 200 rows of data.csv" in checked.out
    assert "0.7500" in checked.out  # 150 of 200 labels are y


def test_c(bench, done):
    names = {"bench_model.c", "bench_model.h", "model.json"}
    for _ in range(2):  # an older one is replaced
        bench("model", "export", *GBRT, "-o", "out", "--format", "c").ok()
    assert {file.name for file in Path("out").iterdir()} == names
    about = json.loads(Path("out/model.json").read_text())["about"]
    shown = bench("model", "show", "out")
    assert (shown.status, "an export in the format 'c'" in shown.err) == (2, True)
    bench("model", "export", *GBRT, "-o", "out").ok()  # also by another format
    assert load("out").about == about


FORMATS = """
from bench_core import UsageError, hookimpl

def short(model, output):
    "The learner's name."
    (output / "name.txt").write_text(model.about["learner"])
    return "a name predicts nothing"

def breaks(model, output):
    (output / "name.txt").write_text("half")
    raise KeyError("no such table")

def refuses(model, output):
    raise UsageError("haiku: the model has too many syllables; take another format")

@hookimpl
def bench_exports():
    return {"short": short, "breaks": breaks, "haiku": refuses}
"""


@pytest.fixture
def formats(done):
    Path("formats.py").write_text(FORMATS)
    yield ("-p", "formats", "-o", "out")
    sys.modules.pop("formats", None)


def test_a_format_of_a_plugin_writes_the_model_and_its_remark_is_shown(bench, formats):
    listed = bench("list", "exports", "-p", "formats").out.splitlines()
    rows = [re.split("  +", line) for line in listed]
    assert [row[0] for row in rows[1:]] == sorted(
        {"c", "folder", "mlflow", "short", "breaks", "haiku"}
    )
    assert ["short", "formats", "The learner's name."] in rows
    ended = bench("model", "export", *GBRT, "--format", "short", *formats).ok()
    assert ended.out.splitlines()[-1] == "a name predicts nothing"
    assert Path("out/name.txt").read_text() == "gbrt"
    assert "export, plugin formats" in bench("show", "short", "-p", "formats").out


@pytest.mark.parametrize(
    ("name", "status", "line"),
    [
        ("shrot", 2, "error: unknown format 'shrot': did you mean short?"),
        ("xml", 2, "error: unknown format 'xml': known: breaks, c, folder, haiku, mlflow, short"),
        ("haiku", 2, "error: haiku: the model has too many syllables; take another format"),
        ("breaks", 3, "error: plugin formats failed (KeyError: 'no such table', formats.py:"),
    ],
)
def test_a_format_that_cannot_write_leaves_the_older_export(bench, formats, name, status, line):
    bench("model", "export", *GBRT, "--format", "short", *formats).ok()
    ended = bench("model", "export", *GBRT, "--format", name, *formats)
    assert (ended.status, ended.err.count("\n")) == (status, 1)
    assert ended.err.startswith(line)
    assert Path("out/name.txt").read_text() == "gbrt"


def test_a_changed_model_is_refused_by_show_and_check(bench, done):
    bench("model", "export", *GBRT, "-o", "model").ok()
    with Path("model/trees.value.npy").open("ab") as file:
        file.write(b"\0")
    for verb in ("show", "check"):
        ended = bench("model", verb, "model")
        assert (ended.status, ended.out) == (2, "")
        assert "changed after the export" in ended.err


@pytest.mark.parametrize("verb", ["show", "check"])
@pytest.mark.parametrize("lost", ["metric", ""])
def test_a_folder_that_was_not_written_by_the_export_is_one_line(verb, lost, bench, done):
    bench("model", "export", *GBRT, "-o", "model").ok()
    folder = read_folder(Path("model"))
    about = {name: value for name, value in folder.about.items() if lost and name != lost}
    write_folder(Path("model"), replace(folder, about={"task": "binary", **about}))
    ended = bench("model", verb, "model")
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert re.search(rf"model: its 'about' in model\.json has no {lost or '[a-z]+'}", ended.err)


def test_the_export_of_an_estimator_is_shown_and_checked_on_a_file(bench):
    X = np.random.default_rng(0).normal(size=(200, 2))
    frame = pd.DataFrame(X, columns=["a", "b"])
    y = np.where(X[:, 0] > 0, "ill", "well")
    fitted = BudgetedClassifier("gbrt", parameters={"trees": 3}).fit(frame, y, frame, y)
    fitted.export("model")
    frame.assign(label=y).to_csv("rows.csv", index=False)
    shown = bench("model", "show", "model").ok()
    assert f"accuracy {fitted.quality_:.4f} on validation at 1.00 features per row" in shown.out
    checked = bench("model", "check", "model", "--data", "rows.csv")
    assert (checked.status, checked.out.count(f"{fitted.quality_:.4f}")) == (0, 2)
    assert "give rows by --data FILE" in bench("model", "check", "model").err


def figures_of(text):
    """The figures of ``bench model check``: exported and replayed."""
    return [tuple(map(float, line.split()[-2:])) for line in text.splitlines()[2:5]]


def test_a_check_bills_the_prices_of_rows(bench):
    frame = calls.table()
    frame.to_csv("calls.csv", index=False)
    frame[frame.split == "test"].drop(columns="split").to_csv("test.csv", index=False)
    Path("costs.json").write_text(json.dumps(calls.COSTS))
    how = ("-l", "gbrt", "--set", "gbrt.trees=3", "--label", "label", "--executor", "inline")
    bench("run", "-d", "calls.csv", "--costs", "costs.json", *how).ok()
    bench("model", "export", "-b", "inf", "-o", "model").ok()
    assert "the same as when exported" in bench("model", "check", "model").out
    of_file = bench("model", "check", "model", "--data", "test.csv")
    assert all(exported == replayed for exported, replayed in figures_of(of_file.out)), of_file.out
    frame[frame.split == "test"].drop(columns=["split", "big_price"]).to_csv("test.csv")
    without = bench("model", "check", "model", "--data", "test.csv", "--label", "label")
    assert "no column 'big_price': its sensor has the mean price" in without.err
    assert figures_of(without.out)[1][0] != figures_of(without.out)[1][1]


def test_a_check_of_scattered_queries_gives_each_row_its_label(bench):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.random(600).round(3), "q": rng.permutation(600) % 40})
    frame["grade"] = (3 * frame["a"]).astype(int)
    frame.sort_values("q").to_csv("rows.csv", index=False)
    frame.to_csv("again.csv", index=False)
    how = ("--label", "grade", "--query", "q", "-l", "gbrt", "--set", "gbrt.trees=5")
    bench("run", "-d", "rows.csv", *how, "--executor", "inline").ok()
    bench("model", "export", "-b", "inf", "-o", "model").ok()
    checks = [bench("model", "check", "model", "-d", f"{n}.csv").out for n in ("rows", "again")]
    assert figures_of(checks[0])[0][1] == figures_of(checks[1])[0][1] > 0.99


@pytest.fixture
def critical(bench, tmp_path):
    """A run on two classes, one of them rare, of which the constant finds none."""
    rng = np.random.default_rng(0)
    rare = rng.random(900) < 0.1
    cells = {"f0": 3 * rare + rng.normal(size=900), "f1": rng.normal(size=900)}
    frame = pd.DataFrame(cells | {"label": np.where(rare, "critical", "fine")})
    frame.to_csv("own.csv", index=False)
    (tmp_path / "prices.csv").write_text("f0,4\nf1,2\n")
    words = ("-d", "own.csv", "--label", "label", "--costs", "prices.csv", "--executor", "inline")
    gbrt = ("-l", "gbrt", "--set", "gbrt.trees=40", "-m", "balanced_accuracy,auc")
    bench("run", *words, *gbrt, "--audit", "off").ok()


def right_of_the_rare(text):
    """The rows of the rare class that ``bench model check`` counts, and their number."""
    rows, right = re.search(r"^critical +(\d+) +(\d+)$", text, re.M).groups()
    return int(right), int(rows)


def test_every_verb_names_the_rare_class_of_which_its_model_finds_few_rows(bench, critical):
    bench("model", "export", "--budget", "inf", "-o", "model").ok()
    found, rows = right_of_the_rare(bench("model", "check", "model").out)
    assert 0 < found < rows
    verbs = [("best",), ("features",), ("model", "export", "-o", "model"), ("model", "check")]
    line = f"Of {rows} test rows of 'critical', gbrt finds 0; at its best it finds {found}."
    for verb in verbs:
        words = ("model",) if verb[-1] == "check" else ("--budget", "1")
        ended = bench(*verb, *words)
        assert ended.words.count(line) == 1, (verb, ended.out + ended.err)
    # by the second metric no answers are stored: an export asks its model
    again = bench("model", "export", "-m", "auc", "--budget", "1", "-o", "model")
    assert f"Of {rows} test rows of 'critical', gbrt finds 0" in again.out


def replayed_rows(bench, *words):
    """The lines of ``bench model check -o`` of an exported model."""
    bench("model", "export", *words, "-o", "model").ok()
    bench("model", "check", "model", "-o", "rows.csv").ok()
    return pd.read_csv("rows.csv")


def test_a_check_counts_the_right_answers_of_each_class(bench, critical):
    rows = replayed_rows(bench, "--budget", "inf")
    shown = bench("model", "check", "model").out
    for label, own in rows.groupby("label"):
        right = int((own["answer"] == label).sum())
        assert re.search(rf"^{label} +{len(own)} +{right}$", shown, re.M), shown
    bench("model", "check", "model", "-d", "own.csv").ok()


def test_a_check_writes_a_line_for_each_row_from_which_its_figures_follow(bench, critical):
    rows = replayed_rows(bench, "--budget", "inf")
    assert [*rows.columns] == ["row", "label", "answer", "score", "spent"]
    assert rows["row"].tolist() == [*range(1, len(rows) + 1)]
    right = rows["answer"] == rows["label"]
    balanced = right.groupby(rows["label"]).mean().mean()
    figures = figures_of(bench("model", "check", "model").out)
    assert figures[0] == (round(balanced, 4),) * 2
    assert figures[1] == (round(rows["spent"].mean(), 2),) * 2
    assert ((rows["score"] > 0) == (rows["answer"] == "fine")).all()
    bench("model", "check", "model", "-d", "own.csv", "-o", "own.csv").refused("own.csv")
    inside = bench("model", "check", "model", "-o", "model/model.json")
    assert inside.status == 2
    assert load("model").about["learner"] == "gbrt"
