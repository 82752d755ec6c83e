"""An existing model on the file that its library read: the same columns, cells and classes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench_methods.imported import ImportedModel
from helpers.kit import prepared, refused
from scipy.special import expit

from bench_core import BudgetedClassifier, InputError, UsageError, load_run, run
from bench_core.execution.fitting import fit_in_process
from bench_core.metrics import default_metric
from bench_core.serving import load

lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
catboost = pytest.importorskip("catboost", reason="catboost is not installed")

N = 400
QUIET = {"verbosity": -1, "num_threads": 1, "num_leaves": 6}


@pytest.fixture(autouse=True)
def _here(elsewhere):
    """In a folder of its own."""


def table(names, seed=0, n=N):
    """Columns of numbers, of which the first counts most for the label ``y``, 0 or 1."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, len(names))).round(3), columns=names)
    weight = 2.0 ** -np.arange(len(names))
    return frame.assign(y=(frame.to_numpy() @ weight > 0).astype(int))


def trained(frame, library="lightgbm", **how):
    """The file of a model that a library trained on a frame with label ``y``."""
    X, y = frame.drop(columns="y"), frame["y"]
    if library == "lightgbm":
        params = {"objective": "binary", **QUIET, **how}
        lightgbm.train(params, lightgbm.Dataset(X, y), 20).save_model("model.txt")
        return "model.txt"
    if library == "xgboost":
        params = {"objective": "binary:logistic", "nthread": 1, **how}
        xgboost.train(params, xgboost.DMatrix(X, y), 20).save_model("model.json")
        return "model.json"
    usual = {"iterations": 20, "depth": 3, "verbose": 0, "thread_count": 1}
    made = catboost.CatBoost(
        {**usual, "loss_function": "Logloss", "allow_writing_files": False, **how}
    )
    made.fit(X, y)
    made.save_model("model.json", format="json")
    return "model.json"


def write_svmlight(path, frame, base, end=""):
    """Every cell of a frame, of which features are counted from ``base``."""
    rows = zip(frame.drop(columns="y").to_numpy(), frame["y"], strict=True)
    lines = (" ".join([str(y), *(f"{j}:{x}" for j, x in enumerate(row, base))]) for row, y in rows)
    Path(path).write_text("".join(f"{line}{end}\n" for line in lines))


def data(file, **options):
    """A file as all three splits."""
    return prepared(file, file, file, **options).complete()


def rows(frame, **options):
    """A frame as all three splits, from a file."""
    frame.to_csv("data.csv", index=False)
    return data("data.csv", **options)


def judged(model, splits):
    """Final scores on test, notes and warnings."""
    learner = ImportedModel(file=model)
    lines = list(learner.notes(splits))
    fitted = fit_in_process(learner, splits, default_metric(splits.task), 0, 1)
    *_, last = fitted.predict_path(splits.test.features)
    notes, warnings = (
        [text for text, warning in lines if warning is kind] for kind in (False, True)
    )
    return last.scores, notes, warnings


def raw(model, X):
    """Log-odds or raw scores by the library itself."""
    if model.endswith("txt"):
        return np.asarray(lightgbm.Booster(model_file=model).predict(X, raw_score=True))
    try:
        booster = xgboost.Booster(model_file=model)
    except xgboost.core.XGBoostError:
        own = catboost.CatBoost().load_model(model, format="json")
        return np.asarray(own.predict(X, prediction_type="RawFormulaVal"))
    return np.asarray(booster.predict(xgboost.DMatrix(X), output_margin=True))


LIBRARIES = ("lightgbm", "xgboost", "catboost")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("stem", ["f", "Column_", "x"])
def test_names_that_a_library_might_have_made_up_are_names_where_the_data_has_them(library, stem):
    frame = table([f"{stem}{j}" for j in range(12)])
    model = trained(frame, library)
    splits = rows(frame[sorted(frame.columns)])  # f0, f1, f10, f11, f2
    scores, notes, warnings = judged(model, splits)
    np.testing.assert_allclose(scores, raw(model, frame.drop(columns="y")), atol=2e-6)
    assert notes == ["imported: columns matched by name"]
    assert not warnings


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_cell_on_a_threshold_goes_where_lightgbm_sends_it(dtype):
    rng = np.random.default_rng(3)
    grid = np.arange(-700, 701) / 1000  # half of it is in training: thresholds are on the others
    frame = pd.DataFrame({"x": grid, "y": ((grid > 0.1) ^ (rng.random(1401) < 0.3)).astype(int)})
    frame["x"] = frame["x"].astype(dtype)
    model = trained(frame[::2], num_leaves=31, min_data_in_leaf=3)
    # every digit of a float32
    scores, _, warnings = judged(model, rows(frame.astype({"x": np.float64})))
    np.testing.assert_allclose(scores, raw(model, frame[["x"]]), atol=1e-9)
    assert not warnings


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("base", [0, 1])
def test_a_file_counted_from_one_is_one_to_the_library(library, base):
    frame = table(["a", "b", "c", "d"])
    write_svmlight("data.svm", frame, base)
    if library == "lightgbm":
        booster = lightgbm.train({"objective": "binary", **QUIET}, lightgbm.Dataset("data.svm"), 20)
        own = booster.predict("data.svm", raw_score=True)
        booster.save_model("model")
    else:
        with xgboost.config_context(verbosity=0):  # it says that it will not read files for long
            matrix = xgboost.DMatrix("data.svm?format=libsvm")
        booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 20)
        own = booster.predict(matrix, output_margin=True)
        booster.save_model("model.ubj")
        Path("model.ubj").rename("model")
    scores, notes, warnings = judged("model", data("data.svm", index_base=base))
    np.testing.assert_allclose(scores, own, atol=2e-6)
    how = "number: the model counts from 0, the file from 1" if base else "position"
    assert notes == [f"imported: columns matched by {how}"]
    assert not warnings


def test_what_an_svmlight_file_does_not_write_is_missing_to_xgboost():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(N, 4))
    written = rng.random(X.shape) < 0.7
    y = (X[:, 0] > 0) ^ written[:, 1]
    lines = [
        " ".join([f"{label:d}", *(f"{j}:{row[j]}" for j in np.flatnonzero(there))])
        for row, there, label in zip(X, written, y, strict=True)
    ]
    Path("data.svm").write_text("\n".join(lines) + "\n")
    with xgboost.config_context(verbosity=0):
        matrix = xgboost.DMatrix("data.svm?format=libsvm")
    booster = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 20)
    booster.save_model("model.json")
    own = booster.predict(matrix, output_margin=True)
    scores, _, warnings = judged("model.json", data("data.svm", index_base=0, unwritten="missing"))
    np.testing.assert_allclose(scores, own, atol=2e-6)
    assert not warnings
    scores, _, warnings = judged("model.json", data("data.svm", index_base=0))
    assert np.abs(scores - own).max() > 1
    assert [w for w in warnings if "use --unwritten missing" in w]


def test_a_narrower_training_file_is_noticed_where_features_are_counted():
    """Training wrote features 1 to 4, so 5 to the library, as many as the test rows have."""
    frame = table(["a", "b", "c", "d"])
    write_svmlight("train.svm", frame, 1)
    write_svmlight("test.svm", frame, 1, " 5:1")
    booster = lightgbm.train({"objective": "binary", **QUIET}, lightgbm.Dataset("train.svm"), 20)
    booster.save_model("model.txt")
    splits = prepared("train.svm", "train.svm", "test.svm").complete()
    scores, notes, _ = judged("model.txt", splits)
    np.testing.assert_allclose(scores, booster.predict("train.svm", raw_score=True), atol=1e-9)
    assert "the model counts from 0" in notes[0]


def test_names_that_a_library_respells_are_found():
    frame = table(["a b", "c,d", "größe €", "e_f"])
    spelt = ["a_b", "c_d", "gr_e_", "e_f"]
    model = trained(frame.set_axis([*spelt, "y"], axis=1))
    scores, notes, _ = judged(model, rows(frame.iloc[:, [3, 2, 1, 0, 4]]))
    own = raw(model, frame.drop(columns="y").set_axis(spelt, axis=1))
    np.testing.assert_allclose(scores, own, atol=1e-9)
    assert notes == ["imported: columns matched by name, 'a_b' as 'a b' and 2 more alike"]


def test_an_exact_name_goes_before_another_spelling_and_two_spellings_are_refused():
    frame = table(["a-b", "a_b", "c"])
    model = trained(frame[["a_b", "c", "y"]])
    scores, _, _ = judged(model, rows(frame))
    np.testing.assert_allclose(scores, raw(model, frame[["a_b", "c"]]), atol=1e-9)
    refused(
        "'a_b' may be column 'a-b' or 'a+b'; rename the column",
        judged,
        model,
        rows(frame.rename(columns={"a_b": "a+b"})),
    )


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_that_cannot_be_those_of_training_are_warned_of(library):
    frame = table(["a", "b"])
    frame["b"] = 1000 + 10 * frame["b"]
    model = trained(frame, library)
    assert judged(model, rows(frame))[2] == []
    [warning] = judged(model, rows(frame.assign(b=frame["b"] * 1000)))[2]
    assert warning.startswith("imported: column 'b' may not be the model's")
    both = frame.assign(a=frame["a"] + 1e4, b=frame["b"] * 1000)
    [warning] = judged(model, rows(both))[2]
    assert warning.startswith("imported: column 'a' and 1 more may not be the model's")


def test_the_warning_of_a_date_says_since_when_days_are_counted():
    frame = table(["a", "b"])
    since = np.random.default_rng(1).integers(0, 1000, N)
    frame["b"], frame["y"] = since, (since > 500).astype(int)
    model = trained(frame)  # days since 2019-01-01
    first = np.datetime64("2019-01-01")
    [warning] = judged(
        model, rows(frame.assign(b=first + since.astype("timedelta64[D]")), dates=True)
    )[2]
    assert warning.startswith("imported: column 'b' may not be the model's, or may be in another")
    assert warning.endswith("training; dates are days since 1970-01-01 here")
    [warning] = judged(model, rows(frame.assign(b=since * 1000)))[2]
    assert warning.endswith("the model's training")


WORDS = np.array(["repaid", "default"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_classes_coded_the_other_way_round_are_refused_and_turned(library):
    """1 is default where the model was trained, and the second in order here is repaid."""
    frame = table(["a", "b"])
    model = trained(frame, library)
    coded = frame.assign(y=WORDS[frame["y"]])
    words = "AUC of repaid on validation is 0.|; run with --positive default, or write"
    refused(words, judged, model, rows(coded))
    scores, notes, warnings = judged(model, rows(coded, positive="default"))
    assert notes[0].startswith("imported: columns matched by name; class 1 of the model")
    assert notes[0].endswith("is default")
    np.testing.assert_allclose(scores, raw(model, frame.drop(columns="y")), atol=2e-6)
    assert not warnings


@pytest.mark.parametrize("positive", ["", "default"])
@pytest.mark.parametrize("order", [["default", "repaid"], ["repaid", "default"]])
def test_the_names_of_two_classes_decide_where_the_file_has_them(order, positive):
    frame = table(["a", "b"])
    frame["y"] = WORDS[frame["y"]]
    model = trained(frame, "catboost", class_names=order)
    splits = rows(frame, positive=positive)
    scores, notes, warnings = judged(model, splits)
    turned = 1 if order[1] == splits.class_names[1] else -1
    np.testing.assert_allclose(scores, turned * raw(model, frame[["a", "b"]]), atol=1e-9)
    assert notes == ["imported: columns matched by name; classes matched by name"]
    assert not warnings


def test_the_names_of_several_classes_decide_where_the_file_has_them():
    frame = table(["a", "b"])
    frame["y"] = np.array(["x", "y", "z"])[np.digitize(frame["a"], [-0.5, 0.5])]
    model = trained(frame, "catboost", class_names=["z", "x", "y"], loss_function="MultiClass")
    scores, _, warnings = judged(model, rows(frame))
    own = raw(model, frame[["a", "b"]])[:, [1, 2, 0]]
    np.testing.assert_allclose(scores, own, atol=1e-9)
    assert not warnings
    refused(
        "the model's classes are z, x, y, the data's are w, y",
        judged,
        model,
        rows(frame.assign(y=frame["y"].replace("x", "w"))),
    )


def test_classes_in_another_order_are_noticed_by_their_errors():
    frame = table(["a", "b"])
    frame["y"] = np.digitize(frame["a"], [-0.5, 0.5])
    model = trained(frame, objective="multiclass", num_class=3)
    [warning] = judged(model, rows(frame.assign(y=np.array(["mid", "high", "low"])[frame["y"]])))[2]
    assert "worse than a constant" in warning
    assert "(high is 0, low is 1, mid is 2), write its numbers as the labels" in warning
    assert judged(model, rows(frame))[2] == []  # what it says


TWO_OUTPUTS = {
    "lightgbm": {"objective": "multiclass", "num_class": 2},
    "lightgbm, one against the rest": {
        "objective": "multiclassova",
        "num_class": 2,
        "sigmoid": 1.5,
    },
    "lightgbm, averaged": {
        "objective": "multiclass",
        "num_class": 2,
        "boosting": "rf",
        "bagging_freq": 1,
        "bagging_fraction": 0.6,
    },
    "xgboost": {"objective": "multi:softprob", "num_class": 2, "base_score": 0.3},
    "catboost": {"loss_function": "MultiClass", "classes_count": 2},
    "catboost, one against the rest": {"loss_function": "MultiClassOneVsAll", "classes_count": 2},
}


@pytest.mark.parametrize("labels", ["numbers", "text"])
@pytest.mark.parametrize("how", TWO_OUTPUTS)
def test_two_outputs_of_two_classes_are_one_score(how, labels):
    frame = table(["a", "b", "c"])
    frame.loc[::7, "b"] = np.nan
    library = how.split(",")[0]
    model = trained(frame, library, **TWO_OUTPUTS[how])
    X = frame.drop(columns="y")
    if library == "lightgbm":
        own = lightgbm.Booster(model_file=model).predict(X)
    elif library == "xgboost":
        own = xgboost.Booster(model_file=model).predict(xgboost.DMatrix(X))
    else:
        read = catboost.CatBoost().load_model(model, format="json")
        own = read.predict(X, prediction_type="Probability")
    words = WORDS if labels == "text" else np.array([0, 1])
    positive = WORDS[1] if labels == "text" else ""
    scores, _, _ = judged(model, rows(frame.assign(y=words[frame["y"]]), positive=positive))
    np.testing.assert_allclose(scores, np.log(own[:, 1] / own[:, 0]), atol=3e-6)


@pytest.mark.parametrize("nan_mode", ["Min", "Max", "Forbidden"])
def test_missing_cells_go_where_catboost_sends_them(nan_mode, recwarn):
    frame = table(["a", "b"])
    lowest, largest = np.finfo(np.float32).min, np.finfo(np.float32).max
    frame.loc[:4, "b"] = [lowest, largest, 0.0, -1e-40, 1e-40]
    if nan_mode != "Forbidden":
        frame.loc[10::5, "a"] = np.nan
    model = trained(frame, "catboost", nan_mode=nan_mode)
    asked = frame.drop(columns="y")
    recwarn.clear()
    scores, _, _ = judged(model, rows(frame.astype(str)))
    np.testing.assert_allclose(scores, raw(model, asked), atol=1e-9)
    assert not [w for w in recwarn if "bench" in w.filename]


@pytest.mark.parametrize("library", ["lightgbm", "catboost"])
def test_probabilities_of_one_against_the_rest_are_divided_by_their_sum(library):
    frame = table(["a", "b"])
    frame["y"] = np.digitize(frame["a"] + frame["b"] ** 2, [0.0, 1.0])
    if library == "lightgbm":
        model = trained(frame, objective="multiclassova", num_class=3, sigmoid=1.5)
        own = lightgbm.Booster(model_file=model).predict(frame[["a", "b"]])
    else:
        model = trained(frame, library, loss_function="MultiClassOneVsAll")
        own = 1 / (1 + np.exp(-raw(model, frame[["a", "b"]])))
    scores, _, _ = judged(model, rows(frame))
    ours = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ours, own / own.sum(axis=1, keepdims=True), atol=1e-9)


def test_a_plan_says_how_a_model_was_matched_and_warns():
    from bench_core import plan

    frame = table(["a", "b"])
    model = trained(frame)
    frame.assign(y=WORDS[frame["y"]]).to_csv("data.csv", index=False)
    asked = {"learners": ["cronus"], "settings": {"cronus.base.learner": "imported"}}
    asked["settings"]["cronus.base.file"] = model
    files = {"data": "data.csv", "valid": "data.csv", "test": "data.csv"}
    with pytest.raises(UsageError, match="run with --positive default"):
        plan(**files, **asked, store="bench.db")
    files["positive"] = "default"
    made = plan(**files, **asked, store="bench.db")
    assert [n for n in made.notes if "imported: columns matched by name; class 1" in n]
    with pytest.raises(InputError, match="the model's feature 'b' is not in the data"):
        plan(**files, **asked, store="bench.db", drop="b")


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_door_answers_as_the_library(library, bench):
    """The board, its exported model, Python, an estimator and its exported model."""
    frame = table(["a", "b", "c"], n=600)
    frame["y"] = (frame["y"] == 1) ^ (np.random.default_rng(1).random(len(frame)) < 0.25)
    frame.loc[::9, "b"] = np.nan
    train, test = frame[:400], frame[400:]
    X, y = test.drop(columns="y"), test["y"]
    file = trained(train, library)
    truth = raw(file, X)
    accuracy = ((truth > 0) == y).mean()
    train.to_csv("train.csv", index=False)
    test.to_csv("test.csv", index=False)
    settings = ("--set", f"imported.file={file}", "--set", "cegb.trees=5", "--executor", "inline")
    files = ("--data", "train.csv", "--test", "test.csv", "--label", "y")
    assert bench("run", *files, "-l", "imported,cegb", *settings).status == 0
    points = load_run().frame().query("learner == 'imported'")["point"].map(json.loads)
    assert {point.get("trees", 0) for point in points} == {0, 20}  # the constant and all trees
    assert "trained elsewhere" in load_run().board().set_index("learner").loc["imported", "marks"]
    assert "run it alone with:" in bench("best", "--learner", "imported").out
    ours = ("--learner", "imported", "--budget", "inf")
    assert "imported at trees=20, on train.csv" in bench("model", "export", *ours, "-o", "out").out
    estimator = BudgetedClassifier("imported", parameters={"file": file})
    estimator.fit(train.drop(columns="y"), train["y"])
    np.testing.assert_allclose(estimator.predict_proba(X)[:, 1], expit(truth), atol=1e-6)
    estimator.export("estimated")
    for model in ("out", "estimated"):
        np.testing.assert_allclose(load(model).predict_rows(X).scores, truth, atol=1e-5)
        ended = bench("model", "check", model, "--data", "test.csv", "--label", "y")
        (line,) = [line.split() for line in ended.out.splitlines() if line.startswith("accuracy")]
        assert (ended.status, float(line[-1])) == (0, pytest.approx(accuracy, abs=5e-5))
    ended = bench("model", "check", "out")
    assert (ended.status, ended.out.splitlines()[-1]) == (0, "the same as when exported")
    learners = {"imported": {"file": file}, "cegb": {"trees": 5}}
    options = {"learners": learners, "task": "binary", "executor": "inline", "store": "own.db"}
    board = run(train.drop(columns="y"), train["y"], test=(X, y), **options).board()
    assert board.set_index("learner").loc["imported", "accuracy"] == pytest.approx(accuracy)


SECONDS = np.arange(N * 15)[::15]


def in_seconds():
    """A label that changes every 400 s within one of float32's steps of 128 s."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"seen at": 1_700_000_000 + rng.permutation(SECONDS), "b": rng.normal(size=N)}
    )
    return frame.assign(y=(frame["seen at"] // 400 + (frame["b"] > 1)) % 2)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("named", [True, False])
def test_times_in_seconds_go_where_the_library_sends_them(library, named):
    frame = in_seconds()
    own = frame if named else frame.set_axis(["Column_0", "Column_1", "y"], axis=1)
    model = trained(own, library, **({"min_data_in_leaf": 2} if library == "lightgbm" else {}))
    scores, notes, warnings = judged(model, splits := rows(frame))
    np.testing.assert_allclose(scores, raw(model, own.drop(columns="y")), atol=2e-6)
    assert splits.feature_names == ("seen at-1700000000", "b")
    assert splits.columns == ("seen at", "b")
    assert notes[0].startswith("imported: columns matched by " + ("name" if named else "position"))
    assert not warnings


def test_thresholds_lie_between_the_cells_that_float32_tells_apart():
    """XGBoost rounds cells: those up to half a step away are the threshold's own."""
    near = 1_700_000_000 // 128 * 128
    frame = pd.DataFrame({"t": np.repeat(np.arange(near - 640, near + 640), 2)})
    frame["y"] = (frame["t"] >= near).astype(int)
    model = trained(frame, "xgboost", max_depth=1)
    scores, _, _ = judged(model, rows(frame))
    np.testing.assert_allclose(scores, raw(model, frame[["t"]]), atol=2e-6)
