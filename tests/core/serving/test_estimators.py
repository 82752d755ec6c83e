"""Exported models inside scikit-learn: pipelines, clones, scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bench_core import Task, price_list
from bench_core.serving import END, Columns, Folder, Program, Step, Stop, Trees, write_folder
from bench_core.serving.estimators import ServedClassifier, ServedRegressor

X = np.array([[2.0, 0.0], [-1.0, 5.0], [0.5, 1.0]])


def folder(path: Path, task: Task) -> Path:
    """Score = first column, a second one that costs 3 counts nothing."""
    one = np.zeros(1, np.int64)
    none = np.zeros(0, np.int64)
    columns = Columns.raw(one, one, np.ones(1))
    step = Step(none, np.zeros(0), none > 0, np.zeros(1), columns, then=END)
    program = Program(
        1, [step], Trees.none(), np.ones(2), stops=[Stop(0, {})], nothing=np.full(1, -1.0)
    )
    costs = price_list(np.array([2.0, 3.0]))
    classes = 2 if task is Task.BINARY else 0
    about = {"task": str(task), "classes": classes}
    write_folder(path, Folder(program, costs, ("a", "b"), about))
    return path


def test_a_classifier_in_a_pipeline(tmp_path: Path) -> None:
    model = ServedClassifier(folder(tmp_path / "m", Task.BINARY))
    pipeline = make_pipeline(FunctionTransformer(), model).fit(X, [1, 0, 1])
    assert pipeline.predict(X).tolist() == [1, 0, 1]
    assert accuracy_score([1, 0, 1], pipeline.predict(X)) == 1.0
    assert np.allclose(pipeline.predict_proba(X)[:, 1], 1 / (1 + np.exp(-X[:, 0])))
    assert pipeline[-1].spent_.tolist() == [2.0, 2.0, 2.0]


def test_a_regressor_takes_a_data_frame_and_a_cap(tmp_path: Path) -> None:
    model = ServedRegressor(folder(tmp_path / "m", Task.REGRESSION), cap=1.0)
    again = clone(model).fit()
    assert again.predict(pd.DataFrame(X, columns=["a", "b"])).tolist() == [-1.0, -1.0, -1.0]
    assert again.set_params(cap=None).predict(X).tolist() == [2.0, -1.0, 0.5]
    turned = pd.DataFrame(X[:, ::-1], columns=["b", "a"])
    assert again.predict(turned).tolist() == [2.0, -1.0, 0.5]


def test_without_fit_there_is_nothing_to_predict_with() -> None:
    with pytest.raises(NotFittedError):
        ServedRegressor("nowhere").predict(X)
