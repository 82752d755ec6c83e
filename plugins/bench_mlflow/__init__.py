"""Exported models in MLflow, which the functions import.

    from bench_mlflow import log_model
    info = log_model("model", curve=result.curve("cegb"))   # in the active run, else in its own
    mlflow.pyfunc.load_model(info.model_uri).predict(frame)             # frame: raw columns

The folder is saved unchanged as the data of a ``pyfunc``; nothing is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import UsageError, __version__, hookimpl

if TYPE_CHECKING:
    from pandas import DataFrame

    from bench_core.protocols import Export
    from bench_core.serving import Folder, Predictor

CURVE = "curve.csv"


@hookimpl
def bench_exports() -> Mapping[str, Export]:
    """The format ``mlflow``."""
    return {"mlflow": save_model}


def save_model(model: Folder, output: Path) -> None:
    """MLflow: a folder for mlflow.pyfunc.load_model."""
    try:
        import mlflow
    except ImportError as error:
        raise UsageError(
            f"mlflow: cannot import it ({error}); pip install 'budget-bench[mlflow]'"
        ) from error
    from bench_core.serving import write_folder

    with TemporaryDirectory() as place:
        write_folder(folder := Path(place) / "model", model)
        mlflow.pyfunc.save_model(path=str(output), **_pyfunc(folder))


def log_model(
    folder: str | Path, name: str = "model", curve: DataFrame | None = None, **options: Any
) -> Any:
    """Log an exported model, its settings, figures and ``curve``; return ``ModelInfo``. Without an
    active run it gets its own. Log each model in another run: MLflow never changes a parameter.

    Parameters are the learner's and ``learner``, ``metric``, ``budget``, ``budget_kind`` and
    ``point``. ``curve`` from ``Result.curve`` is logged as ``curve.csv``; its numeric columns are
    metrics with one step per budget. ``options`` are passed to ``mlflow.pyfunc.log_model``. Raises
    InputError if ``folder`` is not an exported model.
    """
    import mlflow

    from bench_core.serving import load

    about = load(folder).about
    parts = ("valid", "test")
    figures = {f"{part}_{k}": v for part in parts for k, v in about.get(part, {}).items()}
    with nullcontext() if mlflow.active_run() else mlflow.start_run():
        info = mlflow.pyfunc.log_model(name=name, **_pyfunc(folder), **options)
        mlflow.log_params(_settings(about))
        mlflow.log_metrics({k: v for k, v in figures.items() if np.isfinite(v)})
        if curve is not None:
            mlflow.log_text(curve.to_csv(index=False), CURVE)
            numbers = curve.select_dtypes("number")
            for step, row in enumerate(numbers.to_dict("records")):
                metrics = {f"curve_{_key(k)}": v for k, v in row.items() if np.isfinite(v)}
                mlflow.log_metrics(metrics, step=step)
    return info


def _settings(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the learner, the budget and the exported point."""
    settings: dict[str, Any] = {"learner": about["learner"], "metric": about["metric"]}
    if budget := about.get("budget"):
        settings |= {"budget": budget["amount"], "budget_kind": budget["kind"]}
    settings["point"] = json.dumps(about.get("point"))
    return {**settings, **about["params"]}


def load_model(uri: str) -> Predictor:
    """Return the predictor of a logged model, which requests columns and reports its cost."""
    import mlflow

    predictor: Predictor = mlflow.pyfunc.load_model(uri).get_raw_model()
    return predictor


class ServedPyfunc:
    """Model served by ``mlflow.pyfunc.load_model``."""

    def __init__(self, model: Predictor) -> None:
        self.model = model

    def get_raw_model(self) -> Predictor:
        """Return the predictor."""
        return self.model

    def predict(self, frame: Any, params: dict[str, Any] | None = None) -> DataFrame:
        """Return ``score`` and ``spent`` of each row of raw columns; for classification the
        ``class`` of ``Predictor.labels`` and each probability. ``params``: ``{"cap": 5.0}``."""
        import pandas as pd

        from bench_core.serving.predictor import probabilities

        cap = (params or {}).get("cap")
        answers = self.model.predict_rows(frame, cap=None if cap is None or cap < 0 else cap)
        columns: dict[str, Any] = {}
        if classes := self.model.classes:
            shares = probabilities(answers.scores, str(self.model.about["task"]))
            columns = {"class": self.model.labels(answers.scores)}
            columns |= {f"p({name})": share for name, share in zip(classes, shares.T, strict=True)}
        if answers.scores.ndim == 1:
            columns["score"] = answers.scores
        return pd.DataFrame(columns | {"spent": answers.spent})


def _load_pyfunc(path: str) -> ServedPyfunc:
    """Load a model for ``mlflow.pyfunc.load_model``."""
    from bench_core.serving import load

    return ServedPyfunc(load(path))


def _pyfunc(folder: str | Path) -> dict[str, Any]:
    """Return what ``mlflow.pyfunc`` needs to save a folder."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType

    from bench_core.serving import load

    model = load(folder)
    # a column of integers with a missing cell is float64: accept any number
    columns = [ColSpec(AnyType(), name) for name in model.features]
    cap = ParamSchema([ParamSpec("cap", "double", -1.0)])  # -1: the export's, if any
    return {
        "loader_module": __name__,
        "data_path": str(folder),
        "signature": ModelSignature(Schema(columns), params=cap),
        "pip_requirements": [f"budget-bench=={__version__}"],
        "metadata": {"budget_bench": dict(model.about["provenance"])},
    }


def _key(name: str) -> str:
    """Return a metric's name that MLflow accepts."""
    return "".join(c if c.isalnum() or c in "_-. /" else "_" for c in name)
