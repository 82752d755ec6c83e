"""From a finished run to a folder: the model of an answer as a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, astuple, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import __version__
from bench_core._io.files import in_cache
from bench_core.arrays import FloatArray
from bench_core.costs.bill import mean_cost
from bench_core.costs.error_costs import ErrorCosts, Matrix
from bench_core.data import Examples, Task
from bench_core.datasets.cache import open_prepared
from bench_core.datasets.table_options import READING, TableOptions
from bench_core.errors import UsageError, option
from bench_core.leaderboard.board import ClassRows
from bench_core.leaderboard.rare_class import class_rows
from bench_core.metrics import Labels, evaluate, parse_metric
from bench_core.metrics.calibration import calibrated
from bench_core.metrics.rows import right_by_class
from bench_core.results.budgets import CAP, CONSTANT, Budget
from bench_core.results.store import Store
from bench_core.results.store_files import load_costs, load_model, state_path, states_folder
from bench_core.sequential import StoredPolicy
from bench_core.serving.folder import Folder
from bench_core.serving.model_programs import calibrated_program, capped_program, program_of
from bench_core.serving.policy_program import ServedProgram
from bench_core.serving.predictor import Predictor
from bench_core.serving.program import Program, constant_program
from bench_core.serving.row_state import Answers
from bench_core.serving.spending import expected_spending

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from bench_core.leaderboard.selection import Selection
    from bench_core.results.operating_points import Criterion
    from bench_core.results.records import RunInfo
    from bench_core.splits import Splits


def export(
    store: Store,
    info: RunInfo,
    selection: Selection,
    metrics: Mapping[str, Any],
    *,
    seed: int | None = None,
    fold: int | None = None,
    best: Selection | None = None,
    table: TableOptions | None = None,
) -> Folder:
    """Return the folder's content for a selection, from its first repeat or that of a ``seed`` and
    ``fold``.

    ``metrics`` are known by their names. ``best`` is the reference at its best, shown for
    comparison; ``table`` says how a data set of ``datasets.toml`` is read. Under a
    cap the cost is the run's upper bound; for rankings the figures are those of the served model.
    Raises UsageError if the model cannot be exported, InputError if its files are gone.
    """
    row, limit = selection.of_repeat(seed, fold), selection.limit
    table = TableOptions.of(info.request) if table is None else table
    spec = _spec(store, info.run, row)
    states = states_folder(store.path)
    splits = open_prepared(spec["data"])
    program, point = _program(states, spec, splits, str(row["point"]))
    if spec["costs"]:
        splits = splits.under(load_costs(states, spec["costs"]))
    limited = isinstance(limit, Budget) and limit.amount < np.inf and limit
    about = {
        "marks": [mark for mark in str(row.get("marks", "")).split(", ") if mark],
        **_what(splits, info, spec, point),
        "table": {name: getattr(table, name) for name in READING},
        "budget": limited._asdict() if limited else None,
        **_figures(row, selection.metric),
        "reference": _reference(best, row),
    }
    # columns made by a transformer are requested by their features' names
    encodings = () if any(encoding.made for encoding in splits.encodings) else splits.encodings
    folder = Folder(program, splits.costs, splits.names, about, encodings)
    if spec["error_costs"]:
        folder = _with_error_costs(folder, spec["error_costs"], splits)
    model = Predictor(folder)
    more: dict[str, Any] = {"spending": expected_spending(model, splits.test)}
    if model.classes and splits.task is not Task.CHOICE:
        classes = _class_rows(store, info, row, best, model, splits.test)
        # an unknown number of the reference is left out, as JSON has no NaN
        more["found"] = [[x for x in astuple(one) if x == x] for one in classes]
    if splits.test.queries is not None and limit.kind == CAP:
        # under a cap a run stops whole queries, the served model rows
        parts = (splits.test, splits.valid)
        test, valid = (figures(model, part, answers_of(model, part), metrics) for part in parts)
        more |= {"valid": {"quality": valid["quality"], "cost": valid["cost"]}, "test": test}
    return replace(folder, about={**folder.about, **more})


def answers_of(model: Predictor, rows: Examples) -> Answers:
    """Return the answers of the served model to rows."""
    return model.predict_features(rows.X, rows.queries, prices=rows.price_columns)


def right_answers(model: Predictor, rows: Examples, answers: Answers) -> FloatArray:
    """Return the number of rows of each class (classes,) that a classifier answers right."""
    return right_by_class(answers.scores, rows.y, len(model.classes), model.error_costs)


def _class_rows(
    store: Store,
    info: RunInfo,
    row: pd.Series[Any],
    best: Selection | None,
    model: Predictor,
    test: Examples,
) -> tuple[ClassRows, ...]:
    """Return the classes with the test rows that a row's model and the reference at its ``best``
    answer right. Of a point whose answers are not stored the served model is asked, unless it is a
    policy, which may take seconds for each row."""
    points = row.to_frame().T
    reference = points[:0] if best is None else best.points
    if found := class_rows(store, info, points, reference):
        return found
    if isinstance(model.program, StoredPolicy):
        return ()
    right = right_answers(model, test, answers_of(model, test))
    return class_rows(store, info, points, reference, right)


def figures(
    model: Predictor, rows: Examples, answers: Answers, metrics: Mapping[str, Any]
) -> dict[str, float]:
    """Return the quality of a model's answers to rows, and their mean and largest cost."""
    metric = parse_metric(model.about["metric"], metrics)
    labels = Labels(rows.y, rows.units, rows.multiplicity, model.error_costs, rows.price_columns)
    judged = evaluate([metric], answers.scores, labels, answers.spent)[metric.name]
    cost = mean_cost(answers.spent, rows.multiplicity)
    return {"quality": judged.mean, "cost": cost, "cost_max": float(answers.spent.max())}


def _with_error_costs(folder: Folder, matrix: Matrix, splits: Splits) -> Folder:
    """Return the folder with the costs of errors, and scores calibrated on validation rows as in
    the run."""
    costs = ErrorCosts.of(matrix, splits.train, splits.price_columns)
    stored = {"matrix": costs.matrix.tolist(), "column": costs.column.tolist()}
    folder = replace(folder, about={**folder.about, "error_costs": stored})
    valid, point = splits.valid, folder.about["point"]
    if CONSTANT in point:
        return folder
    model = Predictor(folder)
    scores = model.predict_features(valid.X, valid.queries, prices=valid.price_columns).scores
    calibration, _ = calibrated(scores, valid)
    if calibration is None:
        return folder
    return replace(folder, program=calibrated_program(folder.program, calibration, CAP in point))


def _program(
    states: Path, spec: Mapping[str, Any], splits: Splits, text: str
) -> tuple[ServedProgram, Mapping[str, int | float]]:
    """Return the program of a trial's model at a point in JSON, and the point."""
    point = json.loads(text)
    if CONSTANT in point:
        return constant_program(np.atleast_1d(splits.constant), len(splits.names)), point
    model = load_model(state_path(states, spec["fit"]))
    if CAP in point:
        program = capped_program(model, spec["learner"], len(splits.names))
    else:
        program = program_of(model, spec["learner"], point)
    if isinstance(program, Program):
        program = replace(program, nothing=np.atleast_1d(splits.constant))
    return program, point


def _spec(store: Store, run: str, row: pd.Series[Any]) -> Mapping[str, Any]:
    """Return the trial of a row."""
    params = json.loads(str(row["params"]))
    for spec in map(asdict, store.specs(run)):
        same = all(spec[key] == row[key] for key in ("dataset", "learner", "fold", "seed"))
        if same and dict(spec["params"]) == params:
            return spec
    again = f"run again with {option('fresh', True)}"
    raise UsageError(f"run {run}: its trial of {row['learner']} is gone; {again}")


def _what(
    splits: Splits, info: RunInfo, spec: Mapping[str, Any], point: Mapping[str, int | float]
) -> dict[str, Any]:
    """Return facts on the model and its origin."""
    return {
        "learner": spec["learner"],
        "params": dict(spec["params"]),
        "point": dict(point),
        "dataset": spec["dataset"],
        "task": str(splits.task),
        "classes": splits.classes,
        "class_names": splits.class_names,
        "stand_in": spec["stand_in"],
        "unit": splits.costs.unit,
        "everything": splits.costs.everything,
        "price_columns": splits.price_columns,
        "provenance": {
            "run": info.run,
            "fit": spec["fit"],
            "trial": spec["key"],
            "data": in_cache(spec["data"]),
            "fingerprint": spec["fingerprint"],
            "fold": spec["fold"],
            "seed": spec["seed"],
            "learner_version": spec["learner_version"],
            "version": __version__,
        },
    }


def _figures(row: pd.Series[Any], metric: Criterion) -> dict[str, Any]:
    """Return its figures on validation and on test."""
    test = {name: float(row[name]) for name in ("cost", "cost_max")}
    return {
        "metric": metric.name,
        "higher_is_better": metric.higher_is_better,
        "audit": str(row["audit"]),
        "valid": {"quality": float(row["valid_quality"]), "cost": float(row["valid_cost"])},
        "test": {"quality": float(row["test_quality"]), **test},
    }


def _reference(best: Selection | None, row: pd.Series[Any]) -> dict[str, Any] | None:
    """Return the test figures of the reference at its best in a row's repeat."""
    if best is None:
        return None
    points = best.points
    same = points[(points["fold"] == row["fold"]) & (points["seed"] == row["seed"])]
    quality, cost = same["test_quality"].tolist(), same["test_cost"].tolist()
    return {"learner": best.learner, "quality": quality[0], "cost": cost[0]} if cost else None
