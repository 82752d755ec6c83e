"""From a finished run to a folder: choose a point on validation, turn its model into a program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import __version__
from bench_core._io.files import in_cache
from bench_core.costs.bill import summarise_cost
from bench_core.data import Examples, Features
from bench_core.datasets.cache import open_prepared
from bench_core.errors import UsageError, option, require
from bench_core.metrics import parse_metric
from bench_core.results import operating_points as selection
from bench_core.results.budgets import CAP, COLUMNS, CONSTANT, Budget, Limit, Target
from bench_core.results.store import Store
from bench_core.results.store_files import costs_path, load_model, state_path, states_folder
from bench_core.serving.folder import Folder
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.predictor import Predictor
from bench_core.serving.program import Exportable, Program, Stop, constant_program, in_sequence

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from bench_core.results.operating_points import Criterion
    from bench_core.results.records import RunInfo
    from bench_core.splits import Splits


TABLE = ("label", "query", "drop", "decimal", "encoding", "dates")
"""Options by which a run read its tables; needed to read similar tables."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """A request for export: a data set, a learner (``""``: the best) and a ``limit``: a budget, or
    a target to reach at the least cost on validation; without it the best point. ``seed`` and
    ``fold`` None: the first repeat that has such a point. ``table``: how a data set of
    ``datasets.toml`` is read (``FileData``)."""

    dataset: str
    learner: str = ""
    limit: Limit | None = None
    seed: int | None = None
    fold: int | None = None
    table: Any = None


def choose(
    frame: pd.DataFrame,
    metric: Criterion,
    asked: ExportRequest,
    reference: str = "",
    mixes: bool = False,
) -> pd.Series[Any]:
    """Return the row of ``operating_points`` for a request: a single point, or with ``mixes`` the
    board's choice. Raises UsageError if there is none."""
    known = list(dict.fromkeys(map(str, frame["learner"])))
    require("learner of this run", [asked.learner] if asked.learner else (), known)
    target = asked.limit if isinstance(asked.limit, Target) else None
    budget = Budget(float("inf")) if target or asked.limit is None else asked.limit
    assert isinstance(budget, Budget)
    cap = budget.amount if budget.kind == CAP else None
    points = selection.operating_points(frame, metric.name, COLUMNS[budget.kind], cap=cap)
    every, higher = points, metric.higher_is_better
    for column in ("seed", "fold", "learner"):
        if (wanted := getattr(asked, column)) not in ("", None):
            points = points[points[column] == wanted]
            every = points if column != "learner" else every  # a target is set by the reference
    if target is not None:
        chosen = selection.reaching(every, higher, target, reference, mixes)
        chosen = chosen[chosen["learner"].isin(points["learner"])]
    else:
        chosen = selection.under_budget(points, higher, budget, mixes)
    if chosen.empty:
        why = _nothing(points, asked)
        if target is not None and not points.empty:
            why = selection.why_not_reached(every, metric, target, reference, asked.learner)
        raise UsageError(f"{asked.dataset}: {why}")
    mean = selection.over_repeats(chosen)
    mean = mean[mean["repeats"] == mean["repeats"].max()]
    column = "valid_quality" if target is None else "valid_cost"
    lowest = target is not None or not higher
    best = mean[column].idxmin() if lowest else mean[column].idxmax()
    own = chosen[chosen["learner"] == mean.loc[best, "learner"]]
    return own.sort_values(["fold", "seed"], kind="stable").iloc[0]


def _nothing(points: pd.DataFrame, asked: ExportRequest) -> str:
    who = asked.learner or "any learner"
    if points.empty:
        return f"no finished trial of {who} there; 'bench log --failed' shows why"
    return f"nothing of {who} within the budget; the cheapest costs {points['valid_cost'].min():g}"


def export(
    store: Store,
    info: RunInfo,
    frame: pd.DataFrame,
    metric: Criterion,
    asked: ExportRequest,
    metrics: Mapping[str, Any],
) -> Folder:
    """Return the folder's content for a request, from the run's ``frame``; ``metrics`` are known by
    their names. Under a cap the cost is the run's upper bound; for rankings the figures are
    those of the served model.

    Raises UsageError if nothing is within the limit or the model cannot be exported, InputError if
    its files are gone.
    """
    frame = frame[frame["dataset"] == asked.dataset]
    row = choose(frame, metric, asked, info.reference)
    spec = _spec(store, info.run, row)
    states = states_folder(store.path)
    splits = open_prepared(spec["data"])
    program, point = _program(states, spec, splits, str(row["point"]))
    if spec["costs"]:
        splits = splits.under(load_model(costs_path(states, spec["costs"])))
    limited = isinstance(asked.limit, Budget) and asked.limit.amount < np.inf and asked.limit
    about = {
        "marks": [mark for mark in str(row.get("marks", "")).split(", ") if mark],
        **_what(splits, info, spec, point),
        "table": {key: info.request.get(key) or getattr(asked.table, key, None) for key in TABLE},
        "budget": limited._asdict() if limited else None,
        **_figures(row, metric),
        "reference": _reference(frame, info, metric, row),
    }
    # columns made by a transformer are requested by their features' names
    encodings = () if any(own.made for own in splits.encodings) else splits.encodings
    folder = Folder(program, splits.costs, splits.names, about, encodings)
    if splits.test.queries is None or asked.limit is None or asked.limit.kind != CAP:
        return folder
    # under a cap a run stops whole queries, the served model rows
    model = Predictor(folder)
    test, valid = (replayed(model, part, metrics) for part in (splits.test, splits.valid))
    own = {"valid": {"quality": valid["quality"], "cost": valid["total_cost"]}, "test": test}
    return replace(folder, about={**about, **own})


def replayed(model: Predictor, rows: Examples, metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the quality on rows, and their mean, 95% and largest cost."""
    answers = model.predict_features(rows.X, rows.queries)
    metric = parse_metric(model.about["metric"], metrics)
    judged = metric.values(answers.scores, rows.y, rows.groups, rows.multiplicity)
    cost = summarise_cost(answers.spent, rows.multiplicity)
    figures = {"total_cost": cost.average, "cost_p95": cost.p95, "cost_max": cost.maximum}
    return {"quality": judged.mean, **figures}


def _program(
    states: Path, spec: Mapping[str, Any], splits: Splits, text: str
) -> tuple[Program | PolicyProgram, Mapping[str, int | float]]:
    """Return the program of a trial's model at a point in JSON, and the point."""
    point = json.loads(text)
    if CONSTANT in point:
        return constant_program(np.atleast_1d(splits.constant), len(splits.names)), point
    model = load_model(state_path(states, spec["fit"]))
    if CAP in point:
        program = capped_program(model, spec["learner"], splits)
    else:
        program = program_of(model, spec["learner"], point)
    if isinstance(program, Program):
        program = replace(program, nothing=np.atleast_1d(splits.constant))
    return program, point


def capped_program(model: Any, learner: str, splits: Splits) -> Program | PolicyProgram:
    """Return a program for serving under a cap: as in ``execution.caps``, a row follows all points
    of the path."""
    nobody = Features(np.zeros((0, len(splits.names)), dtype=np.float32))
    left = [dict(prediction.point) for prediction in model.predict_path(nobody)]
    parts = list[Program]()
    while left:  # a program may stop at earlier points; what remains precedes it
        program = program_of(model, learner, left[-1])
        if isinstance(program, PolicyProgram):
            return program
        end = len(program.steps) - 1
        stops = [s for s in program.stops if s.step < end and dict(s.point) in left]
        parts.insert(0, replace(program, stops=[*stops, Stop(end, left[-1])]))
        passed = [dict(stop.point) for stop in parts[0].stops]
        left = [point for point in left if point not in passed]
    return in_sequence(parts)


def program_of(
    model: Any, learner: str, point: Mapping[str, int | float]
) -> Program | PolicyProgram:
    """Return the program of a fitted model at a point. Raises UsageError if it has none."""
    if not isinstance(model, Exportable):
        raise UsageError(
            f"{learner}: its model, {type(model).__name__}, has no 'program' and cannot be "
            "exported; docs/serving.md shows how to add it"
        )
    found: Program | PolicyProgram = model.program(point)
    return found


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
    test = {name: float(row[name]) for name in ("total_cost", "cost_p95", "cost_max")}
    return {
        "metric": metric.name,
        "higher_is_better": metric.higher_is_better,
        "audit": str(row["audit"]),
        "valid": {"quality": float(row["valid_quality"]), "cost": float(row["valid_cost"])},
        "test": {"quality": float(row["test_quality"]), **test},
    }


def _reference(
    frame: pd.DataFrame, info: RunInfo, metric: Criterion, row: pd.Series[Any]
) -> dict[str, Any] | None:
    """Return the test figures of the reference at its best in the same repeat; without a reference,
    figures of the best learner on validation."""
    points = selection.operating_points(frame, metric.name)
    own = points[(points["fold"] == row["fold"]) & (points["seed"] == row["seed"])]
    own = own[~selection.marked(own)]
    if (own["learner"] == info.reference).any():
        own = own[own["learner"] == info.reference]
    best = selection.best_points(own, metric.higher_is_better)
    if best.empty:
        return None
    quality = best["valid_quality"]
    one = best.loc[quality.idxmax() if metric.higher_is_better else quality.idxmin()]
    figures = {"quality": float(one["test_quality"]), "cost": float(one["test_cost"])}
    return {"learner": str(one["learner"]), **figures}
