"""Exported models in MLflow, where it is installed."""

import sys
from dataclasses import replace

import bench_mlflow
import numpy as np
import pandas as pd
import pytest
from bench_mlflow import load_model, log_model
from helpers.program_cases import PROGRAMS, folder_of
from helpers.raw_cases import encoded, raw_and_features

from bench_core import InputError, UsageError
from bench_core.serving import load, write_folder
from bench_core.serving.folder import read_folder, write_as

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # its own

CURVE = pd.DataFrame({"budget": [1.0, 2.0], "auc": [0.6, np.nan], "at": ["a", "b"]})


@pytest.fixture
def logged(tmp_path, monkeypatch):
    """The folder of a model, and what logging it returned."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    figures = {"valid": {"quality": 0.5, "cost": 1.0}, "test": {"quality": 0.25, "cost": 2.0}}
    about = {
        "task": "binary",
        "classes": 2,
        "class_names": ["no", "yes"],
        "provenance": {"fit": "f"},
    }
    about |= {"learner": "gbrt", "metric": "auc", "params": {"trees": 40}, **figures}
    about |= {"budget": {"amount": 2.0, "kind": "mean"}, "point": {"stage": 5}}
    write_folder(tmp_path / "model", encoded(folder_of(PROGRAMS["chain"], **about)))
    with mlflow.start_run():
        return tmp_path / "model", log_model(tmp_path / "model", curve=CURVE)


def test_a_logged_model_serves_raw_rows_as_its_folder_does(logged):
    folder, info = logged
    raw, _ = raw_and_features(8, 50, 1)
    frame = pd.DataFrame(raw).assign(more=1)
    expected, served = load(folder).predict_rows(raw), mlflow.pyfunc.load_model(info.model_uri)
    found = served.predict(frame)
    assert found["score"].tolist() == expected.scores.tolist()
    assert found["spent"].tolist() == expected.spent.tolist()
    assert found["class"].tolist() == np.where(expected.scores > 0, "yes", "no").tolist()
    share = 1 / (1 + np.exp(-expected.scores))
    assert np.allclose(found["p(yes)"], share)
    cap = float(np.median(expected.spent))
    assert served.predict(frame, params={"cap": cap})["spent"].max() <= cap < expected.spent.max()


def test_figures_and_curve_are_logged_and_the_predictor_comes_back(logged):
    folder, info = logged
    run = mlflow.get_run(info.run_id)
    assert run.data.params == {
        "learner": "gbrt",
        "metric": "auc",
        "trees": "40",
        "budget": "2.0",
        "budget_kind": "mean",
        "point": '{"stage": 5}',
    }
    assert run.data.metrics["test_cost"] == 2.0
    history = mlflow.MlflowClient().get_metric_history(info.run_id, "curve_budget")
    assert [(one.step, one.value) for one in history] == [(0, 1.0), (1, 2.0)]
    assert run.data.metrics["curve_auc"] == 0.6
    text = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/curve.csv")
    assert text == CURVE.to_csv(index=False)
    row = raw_and_features(8, 1, 2)[0][0]
    one, two = (
        m.predict(lambda n: [*map(row.get, n)]) for m in (load(folder), load_model(info.model_uri))
    )
    assert (one.score, one.spent, one.bought) == (two.score, two.spent, two.bought)


def test_without_an_active_run_each_model_has_its_own_and_ends_it(logged):
    folder, one = logged
    content = read_folder(folder)
    write_folder(folder, replace(content, about={**content.about, "metric": "accuracy"}))
    two = log_model(folder)
    assert mlflow.active_run() is None
    assert mlflow.get_run(two.run_id).data.params["metric"] == "accuracy"
    assert mlflow.get_run(one.run_id).data.params["metric"] == "auc"


def test_the_format_is_a_folder_that_mlflow_opens(logged, tmp_path):
    folder, _ = logged
    write_as(tmp_path / "saved", read_folder(folder), "mlflow", bench_mlflow.save_model)
    raw, _ = raw_and_features(8, 50, 1)
    served = mlflow.pyfunc.load_model(str(tmp_path / "saved"))
    expected = load(folder).predict_rows(raw)
    assert served.predict(pd.DataFrame(raw))["score"].tolist() == expected.scores.tolist()
    with pytest.raises(InputError, match="an export in the format 'mlflow'"):
        load(tmp_path / "saved")


def test_without_mlflow_the_format_says_what_to_install(logged, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(UsageError, match=r"pip install 'budget-bench\[mlflow\]'"):
        bench_mlflow.save_model(read_folder(logged[0]), tmp_path / "saved")


def test_what_is_no_folder_is_one_line(tmp_path):
    with pytest.raises(InputError, match="not an exported model"):
        log_model(tmp_path)
