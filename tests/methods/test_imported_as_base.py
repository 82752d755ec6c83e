"""An existing model's file: alone, and under cascades, early exits and pruning."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench_methods.cronus import Cronus
from bench_methods.imported import ImportedModel
from bench_models.tree_average import TreeAverage
from helpers.boosted_cases import COST, examples, fit, path
from helpers.kit import refused

import bench_core
from bench_core import InputError, Task, UsageError
from bench_core.conformance import check_learner, task_splits
from bench_core.planning.keys import DescribedLearner

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")

NAMES = ["age", "blood pressure", "scan", "biopsy"]
BAGS = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
STANDING = ("cronus", "early-exit", "budget-prune")


@pytest.fixture(autouse=True)
def _here(elsewhere):
    """In a folder of its own."""


def of_lightgbm(rows, objective, names="auto", **more):
    """The file of a LightGBM model, and the model."""
    sizes = None if rows.queries is None else rows.queries.sizes
    data = lightgbm.Dataset(rows.X, rows.y, group=sizes, feature_name=names)
    usual = {"verbosity": -1, "num_threads": 1, "num_leaves": 6, "objective": objective}
    booster = lightgbm.train({**usual, **more}, data, 12)
    booster.save_model("model.txt")
    return "model.txt", booster


def of_xgboost(rows, trees=12, **more):
    booster = xgboost.train({"nthread": 1, **more}, xgboost.DMatrix(rows.X, rows.y), trees)
    booster.save_model("model.ubj")
    return "model.ubj", booster


KINDS = {
    Task.BINARY: (lambda rows: of_xgboost(rows, objective="binary:logistic"), STANDING),
    Task.RANKING: (lambda rows: of_lightgbm(rows, "lambdarank"), STANDING),
    Task.MULTICLASS: (lambda rows: of_lightgbm(rows, "multiclass", num_class=3), STANDING[1:]),
    Task.REGRESSION: (lambda rows: of_lightgbm(rows, "regression", **BAGS), STANDING[2:]),
}


@pytest.mark.parametrize("task", KINDS)
def test_a_run_stands_on_the_file_and_every_bill_is_verified(task):
    rows = replace(examples(task), X=np.nan_to_num(examples(task).X))
    train, learners = KINDS[task]
    imported = {"learner": "imported", "file": train(rows)[0]}
    options = {
        "cronus": {"stages": 2, "cycles": 1, "tradeoff": [0.01, 10]},
        "early-exit": {"every": 3},
        "budget-prune": {"tradeoff": [0, 0.7, 100]},
    }
    asked = {name: {"base": imported, **options[name]} for name in learners}
    frame = bench_core.run(
        rows.X,
        rows.y,
        queries=None if rows.queries is None else rows.queries.index(),
        task=str(task),
        costs=dict(zip(["x0", "x1", "x2", "x3"], COST, strict=True)),
        learners={"imported": {"file": imported["file"]}, **asked},
        executor="inline",
        audit="full",
    ).frame()
    assert set(frame["status"]) == {"ok"}
    assert set(frame["audit"]) == {"verified"}
    by_name = dict(list(frame[frame["split"] == "test"].groupby("learner")))
    own = by_name["imported"].iloc[-1]
    assert all(by_name[name]["feature_cost"].min() < own["feature_cost"] for name in learners)
    pruned = by_name["budget-prune"]
    tradeoff = pruned["params"].map(lambda text: json.loads(text)["tradeoff"])
    assert pruned[tradeoff == 100].iloc[-1]["feature_cost"] == 0
    metric = next(m for m in ("ndcg@5", "ndcg@10", "accuracy", "mse") if m in frame)
    for whole in (pruned[tradeoff == 0], by_name.get("early-exit", by_name["imported"])):
        for column in (metric, "feature_cost"):
            assert whole.iloc[-1][column] == own[column]


@pytest.mark.parametrize(("objective", "how"), [("regression", BAGS), ("poisson", {})])
def test_averaged_and_logarithmic_models_predict_in_label_units(objective, how):
    train = replace(examples(Task.REGRESSION), y=np.exp(examples(Task.REGRESSION).y / 2))
    file, booster = of_lightgbm(train, objective, **how)
    model = fit(ImportedModel(file=file), train, Task.REGRESSION)
    assert isinstance(model, TreeAverage)
    (found,) = path(model, train)
    assert np.allclose(found.scores, booster.predict(train.X), rtol=1e-9)


@pytest.mark.parametrize("task", [Task.BINARY, Task.REGRESSION, Task.RANKING])
def test_every_promise_of_a_learner_is_kept(task):
    splits = task_splits(task)
    objective = "binary" if task is Task.BINARY else "regression"
    train = replace(splits.train, queries=None)
    file, _ = of_lightgbm(train, objective, names=list(splits.feature_names))
    check_learner(ImportedModel(file=file), [task])


@pytest.mark.parametrize(
    ("objective", "more", "task", "words"),
    [
        ("binary", {}, Task.REGRESSION, "a binary model cannot do a regression task"),
        ("binary", {}, Task.MULTICLASS, "a binary model cannot do a multiclass task"),
        ("multiclass", {"num_class": 5}, Task.MULTICLASS, "has 5 outputs, |task needs 3"),
        ("multiclass", {"num_class": 3}, Task.BINARY, "has 3 outputs, the binary task needs 2"),
        ("regression", {"names": NAMES}, Task.REGRESSION, "model.txt: |feature 'biopsy' is not"),
        ("regression", {"columns": 3}, Task.REGRESSION, "has 3 features and the data 4"),
        ("regression", {"trees": 0}, Task.REGRESSION, "no trees"),
    ],
)
def test_a_model_that_does_not_fit_the_data_is_one_line(objective, more, task, words):
    how, trained_on = dict(more), {"binary": Task.BINARY}.get(objective, Task.MULTICLASS)
    rows = examples(trained_on)
    rows = replace(rows, X=rows.X[:, : how.pop("columns", 4)])
    names = (*NAMES[:3], "smear") if "names" in how else ()
    file, _ = of_xgboost(rows, **how) if "trees" in how else of_lightgbm(rows, objective, **how)
    learner = ImportedModel(file=file)
    refused(words, fit, learner, examples(task), task, error=InputError, feature_names=names)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
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
        (b'{"tree_info": []}', "JSON dump"),
    ],
)
def test_a_file_that_holds_no_model_is_one_line(tmp_path, content, words):
    file = tmp_path / "m"
    if content is not None:
        file.write_bytes(content)
    learner = ImportedModel(file=str(file))
    words = f"{file}: {'it|' if content is not None else ''}{words}"
    refused(words, fit, learner, examples(Task.BINARY), Task.BINARY, error=InputError)


def test_a_file_must_be_named_and_a_user_known():
    refused("--set imported.file=model.txt", ImportedModel().stamp, error=UsageError)
    home = ImportedModel(file="~no-one-here/m.txt")
    refused("~no-one-here/m.txt is not a file", home.stamp, error=InputError)


def test_the_files_content_is_part_of_the_key(tmp_path):
    learner = ImportedModel(file=of_lightgbm(examples(Task.BINARY), "binary")[0])
    for described in (learner, Cronus(base=learner)):
        before = DescribedLearner(described).key()
        with (tmp_path / "model.txt").open("a") as file:
            file.write("\n")
        assert DescribedLearner(described).key() != before


def test_a_model_that_may_have_seen_what_judges_it_is_said_to():
    rows = examples(Task.BINARY)
    frame = pd.DataFrame(rows.X, columns=[name.replace(" ", "_") for name in NAMES])
    frame.assign(label=rows.y).to_csv("data.csv", index=False)
    file, _ = of_lightgbm(rows, "binary", names=NAMES)
    here = {"data": "data.csv", "label": "label"}
    asked = {"learners": ["imported"], "settings": [f"imported.file={file}"]}
    (cut,) = bench_core.plan(**here, **asked).datasets
    warned = "imported may have been trained on "
    assert [note for note in cut.notes if note.text.startswith(warned)]
    (given,) = bench_core.plan(**here, **asked, valid="data.csv", test="data.csv").datasets
    (other,) = bench_core.plan(**here, learners=["constant"]).datasets
    assert not [note for note in (*given.notes, *other.notes) if note.text.startswith(warned)]
