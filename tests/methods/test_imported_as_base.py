"""An existing model's file: alone, and under cascades, early exits and pruning."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench_methods.cronus import Cronus
from bench_methods.imported import ImportedModel
from bench_models.tree_average import TreeAverage
from helpers.boosted_cases import examples, fit, path

from bench_core import Examples, InputError, Task, UsageError, price_list
from bench_core.cli import main
from bench_core.conformance import check_learner, task_splits
from bench_core.planning.keys import DescribedLearner

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")

STANDING = ("cronus", "early-exit", "budget-prune")


def data_file(task):
    """Rows written to a file of this folder, and the options that read it."""
    rows = examples(task)
    X = np.nan_to_num(rows.X)
    if rows.queries is not None:
        query = rows.queries.index()
        lines = [
            f"{y:g} qid:{q} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(row))
            for row, y, q in zip(X, rows.y, query, strict=True)
        ]
        Path("data.svm").write_text("\n".join(lines) + "\n")
        Path("costs").write_text("1\n5\n20\n50\n")
        return Examples(X, rows.y, rows.queries), ["--data", "data.svm"]
    table = [",".join(f"{v:.6f}" for v in [*row, y]) for row, y in zip(X, rows.y, strict=True)]
    Path("data.csv").write_text("\n".join(["a,b,c,d,label", *table]) + "\n")
    Path("costs").write_text("a:1\nb:5\nc:20\nd:50\n")
    return Examples(X, rows.y), ["--data", "data.csv", "--label", "label", "--task", str(task)]


def of_lightgbm(rows, objective, **more):
    sizes = None if rows.queries is None else rows.queries.sizes
    data = lightgbm.Dataset(rows.X, rows.y, group=sizes)
    how = {"objective": objective, "verbosity": -1, "num_threads": 1, "num_leaves": 6, **more}
    lightgbm.train(how, data, 12).save_model("model.txt")
    return "model.txt"


def of_xgboost(rows, name):
    how = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3}
    xgboost.train(how, xgboost.DMatrix(rows.X, rows.y), 12).save_model(name)
    return name


BAGS = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
FILES = {
    "LightGBM": (Task.BINARY, lambda rows: of_lightgbm(rows, "binary"), STANDING),
    "XGBoost UBJ": (Task.BINARY, lambda rows: of_xgboost(rows, "m.ubj"), STANDING),
    "ranker": (Task.RANKING, lambda rows: of_lightgbm(rows, "lambdarank"), STANDING),
    "three classes": (
        Task.MULTICLASS,
        lambda rows: of_lightgbm(rows, "multiclass", num_class=3),
        STANDING[1:],
    ),
    "forest of three classes": (
        Task.MULTICLASS,
        lambda rows: of_lightgbm(rows, "multiclass", num_class=3, **BAGS),
        STANDING[2:],
    ),
    "forest": (Task.BINARY, lambda rows: of_lightgbm(rows, "binary", **BAGS), STANDING),
}


def settings(file, learners):
    """The ``--set`` options that put ``file`` under the learners."""
    found = [f"imported.file={file}", "budget-prune.tradeoff=[0,0.7,100]"]
    found += [f'{name}.base={{learner="imported",file="{file}"}}' for name in learners]
    if "cronus" in learners:
        found += ["cronus.stages=2", "cronus.cycles=1", "cronus.tradeoff=[0.01,10]"]
    if "early-exit" in learners:
        found += ["early-exit.every=3"]
    return [word for setting in found for word in ("--set", setting)]


def bench(*words):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert not end.value.code


@pytest.mark.parametrize("kind", FILES)
def test_a_run_stands_on_the_file_and_every_bill_is_verified(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BENCH_STORE", "bench.db")
    task, save, learners = FILES[kind]
    rows, options = data_file(task)
    metric = "ndcg@5" if task is Task.RANKING else "accuracy"
    asked = ["-l", ",".join(["imported", *learners]), *settings(save(rows), learners)]
    how = ["--costs", "costs", "-m", metric, "--executor", "inline", "--audit", "full", "-q"]
    bench("run", *options, *asked, *how)
    bench("export", "-o", "out.csv")
    frame = pd.read_csv("out.csv")
    assert set(frame["status"]) == {"ok"}
    assert set(frame["audit"]) == {"verified"}
    by_name = dict(list(frame[frame["split"] == "test"].groupby("learner")))
    assert set(by_name) == {"imported", *learners}
    own = by_name["imported"].iloc[-1]
    assert all(by_name[name]["feature_cost"].min() < own["feature_cost"] for name in learners)
    pruned = by_name["budget-prune"]
    tradeoff = pruned["params"].map(lambda text: json.loads(text)["tradeoff"])
    assert pruned[tradeoff == 100].iloc[-1]["feature_cost"] == 0
    for whole in (pruned[tradeoff == 0], by_name.get("early-exit", by_name["imported"])):
        for column in (metric, "feature_cost"):
            assert whole.iloc[-1][column] == own[column]


catboost = pytest.importorskip("catboost", reason="catboost is not installed")

NAMES = ("age", "blood pressure", "scan", "biopsy")


def boosted(train, objective, trees=12, **more):
    names = more.pop("names", "auto")
    data = lightgbm.Dataset(train.X, train.y, feature_name=names)
    usual = {"verbosity": -1, "num_threads": 1, "num_leaves": 6, "objective": objective}
    return lightgbm.train({**usual, **more}, data, trees)


@pytest.fixture
def model_file(tmp_path):
    """A LightGBM classifier of two classes."""
    boosted(examples(Task.BINARY), "binary").save_model(tmp_path / "model.txt")
    return tmp_path / "model.txt"


def saved(booster, path_to):
    booster.save_model(str(path_to))
    return ImportedModel(file=str(path_to))


@pytest.mark.parametrize("boosting", ["rf", "gbdt"])
def test_averaged_and_logarithmic_models_predict_in_label_units(tmp_path, boosting):
    train = replace(examples(Task.REGRESSION), y=np.exp(examples(Task.REGRESSION).y / 2))
    bags = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
    how = bags if boosting == "rf" else {}
    booster = boosted(train, "poisson" if boosting == "gbdt" else "regression", **how)
    model = fit(saved(booster, tmp_path / "m.txt"), train, Task.REGRESSION)
    assert isinstance(model, TreeAverage)
    (found,) = path(model, train)
    assert np.allclose(found.scores, booster.predict(train.X), rtol=1e-9)


@pytest.mark.parametrize("task", [Task.BINARY, Task.REGRESSION, Task.RANKING])
def test_every_promise_of_a_learner_is_kept(tmp_path, task):
    splits = task_splits(task)
    objective = "binary" if task is Task.BINARY else "regression"
    booster = boosted(splits.train, objective, names=list(splits.feature_names))
    check_learner(saved(booster, tmp_path / "m.txt"), [task])


@pytest.mark.parametrize(
    ("objective", "more", "task", "names", "message"),
    [
        ("binary", {}, Task.REGRESSION, (), "a binary model cannot do a regression task"),
        ("binary", {}, Task.MULTICLASS, (), "a binary model cannot do a multiclass task"),
        (
            "multiclass",
            {"num_class": 5},
            Task.MULTICLASS,
            (),
            "the model has 5 outputs, the multiclass task needs 3",
        ),
        (
            "regression",
            {"names": list(NAMES)},
            Task.REGRESSION,
            (*NAMES[:3], "smear"),
            r"m\.txt: the model's feature 'biopsy' is not in",
        ),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_one_line(
    tmp_path, objective, more, task, names, message
):
    trained_on = Task.BINARY if objective == "binary" else task
    learner = saved(boosted(examples(trained_on), objective, **more), tmp_path / "m.txt")
    with pytest.raises(InputError, match=message):
        fit(learner, examples(task), task, feature_names=names)


def test_another_number_of_features_is_one_line(model_file):
    train = Examples(np.zeros((300, 5), np.float32), examples(Task.BINARY).y)
    with pytest.raises(InputError, match="the model has 4 features and the data 5"):
        fit(ImportedModel(file=str(model_file)), train, Task.BINARY, price_list(np.ones(5)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not one of LightGBM's text"),
        (b"\x00\xff\xfe rubbish", "not one of LightGBM's text"),
        (b"tree\nversion=v4\n", "cut short"),
        (b"{", "JSON is broken"),
        (b"{}", "not one of LightGBM's text"),
        (b"[" * 100_000, "JSON is broken"),
        (b'{"learner":' * 100_000, "JSON is broken"),
        (b"{L\x7f\xff\xff\xff\xff\xff\xff\xff", "cut short"),
        (b"\x80\x05cposix\nsystem\n.", "a pickle"),
        (b"CBM1....", "format='json'"),
        (json.dumps({"tree_info": []}).encode(), "JSON dump"),
    ],
)
def test_a_file_that_holds_no_model_is_one_line(tmp_path, content, message):
    file = tmp_path / "m"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        fit(ImportedModel(file=str(file)), examples(Task.BINARY), Task.BINARY)
    assert str(error.value).startswith(f"{file}: it")
    assert "\n" not in str(error.value)


def test_a_model_without_trees_is_one_line(tmp_path):
    train = examples(Task.REGRESSION)
    empty = xgboost.train({"nthread": 1}, xgboost.DMatrix(train.X, train.y), 0)
    with pytest.raises(InputError, match="no trees"):
        fit(saved(empty, tmp_path / "m.json"), train, Task.REGRESSION)


def test_no_file_and_a_missing_one_are_one_line_each(tmp_path):
    with pytest.raises(UsageError, match=r"--set imported\.file=model\.txt"):
        ImportedModel().stamp()
    with pytest.raises(InputError, match="absent: No such file"):
        ImportedModel(file=str(tmp_path / "absent")).stamp()
    with pytest.raises(InputError, match=r"~no-one-here/m\.txt is not a file"):
        ImportedModel(file="~no-one-here/m.txt").stamp()


def test_the_files_content_is_part_of_the_key(model_file):
    learner = ImportedModel(file=str(model_file))
    before = DescribedLearner(learner).key()
    model_file.write_text(model_file.read_text() + "\n")
    assert DescribedLearner(learner).key() != before
    base = DescribedLearner(Cronus(base=learner)).key()
    model_file.write_text(model_file.read_text() + "\n")
    assert DescribedLearner(Cronus(base=learner)).key() != base


def table(folder):
    train = examples(Task.BINARY)
    lines = [",".join([*NAMES, "label"]).replace(" ", "_")]
    for row, label in zip(np.nan_to_num(train.X), train.y, strict=True):
        lines.append(",".join([*(f"{x:.6f}" for x in row), f"{label:g}"]))
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    return folder / "data.csv"


def test_a_model_that_may_have_seen_what_judges_it_is_said_to(tmp_path):
    from bench_core import plan

    file, mine = tmp_path / "model.txt", str(table(tmp_path))
    boosted(examples(Task.BINARY), "binary", 4, names=list(NAMES)).save_model(file)
    here = {"data": mine, "label": "label", "store": str(tmp_path / "x.db")}
    asked = {"learners": ["imported"], "settings": [f"imported.file={file}"]}
    (cut,) = plan(**here, **asked).datasets
    warned = "imported may have been trained on "
    assert [note for note in cut.notes if note.text.startswith(warned)]
    (given,) = plan(**here, **asked, valid=mine, test=mine).datasets
    (other,) = plan(**here, learners=["constant"]).datasets
    assert not [note for note in (*given.notes, *other.notes) if note.text.startswith(warned)]
