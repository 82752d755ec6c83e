"""Columns of a scikit-learn pipeline's input that each of its outputs is made of.

The steps name their outputs after their inputs (``get_feature_names_out``), so unique names of the
inputs show where an output comes from: ``num__age`` from ``age``, all one-hot columns of ``city``
from ``city``, ``a b`` of polynomials from both. An output whose name holds no input needs all
inputs of its step, as those of PCA do.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench_core.costs.by_row import ByRow
from bench_core.costs.cost_file import CostFile
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.data import Examples
from bench_core.datasets.pricing import CostSource, Models, unit_prices, with_costs
from bench_core.errors import InputError, UsageError
from bench_core.splits import Splits

_MARK = re.compile("\0([0-9]+)\0")
_MIXING = ("KNNImputer", "IterativeImputer", "Normalizer")
"""Transformers that name an output after one input and compute it from all."""
_PASSING = (
    *("BaseSearchCV", "TransformedTargetRegressor", "CalibratedClassifierCV"),
    *("TunedThresholdClassifierCV", "FixedThresholdClassifier"),
)
"""Meta-estimators that pass all columns on to their estimator."""


class _Column(NamedTuple):
    name: str
    sources: frozenset[int]  # input columns of the pipeline


class Traced(NamedTuple):
    """Input columns of a pipeline, and those that each output is made of."""

    names: tuple[str, ...]
    sources: tuple[frozenset[int], ...]  # of each output
    notes: tuple[str, ...]  # on steps that do not name their outputs


def steps_before(estimator: Any) -> list[Any]:
    """Return the fitted steps before an estimator whose ``fit`` is running, [] outside a pipeline.

    A pipeline passes only an array on, so the steps are those of the calling ``Pipeline.fit``.
    """
    from sklearn.base import BaseEstimator
    from sklearn.pipeline import Pipeline

    steps, inner = list[Any](), estimator
    frame: Any = sys._getframe(1)
    while (frame := frame.f_back) is not None:
        code, outer = frame.f_code, None
        # a frame whose ``f_locals`` were read keeps all of them alive: read those of methods fit
        if code.co_name.startswith("fit") and code.co_varnames[:1] == ("self",):
            outer = frame.f_locals["self"]
        if outer is inner or not isinstance(outer, BaseEstimator):
            continue
        if isinstance(outer, Pipeline) and outer.steps[-1][1] is inner:
            steps = [step for _, step in outer.steps[:-1]] + steps
        elif not {cls.__name__ for cls in type(outer).__mro__} & {*_PASSING}:
            break
        inner = outer
    return steps


def output_names(steps: Sequence[Any], width: int) -> list[str]:
    """Return the names of the ``width`` outputs of fitted steps, x0, x1, ... without names."""
    from sklearn.pipeline import Pipeline

    try:
        whole = Pipeline([(str(k), step) for k, step in enumerate(steps)])
        names = [*map(str, whole.get_feature_names_out())]
    except Exception:  # a user's transformer may have none
        names = []
    return names if len(names) == width else [f"x{j}" for j in range(width)]


def traced(steps: Sequence[Any], width: int) -> Traced | None:
    """Trace the ``width`` outputs of fitted steps to the input of the first. None if its columns
    are not known."""
    from sklearn.pipeline import Pipeline

    steps = [step for step in steps if step not in (None, "passthrough")]
    count = getattr(steps[0], "n_features_in_", None) if steps else None
    if count is None:
        return None
    names = tuple(getattr(steps[0], "feature_names_in_", [f"x{j}" for j in range(count)]))
    inputs = [_Column(name, frozenset([j])) for j, name in enumerate(names)]
    notes: dict[str, None] = {}
    whole = Pipeline([(str(k), step) for k, step in enumerate(steps)])
    outputs = _outputs(whole, inputs, width, None, notes)
    outputs = outputs if len(outputs) == width else _all_of(inputs, width, None)
    why = "does not name its outputs (get_feature_names_out): each needs all inputs of this step"
    lines = tuple(f"{kind} {why}" for kind in notes)
    return Traced(names, tuple(output.sources for output in outputs), lines)


def under_input_costs(
    splits: Splits, source: CostSource, models: Models, traced: Traced, sizes: Sequence[int]
) -> tuple[Splits, Splits]:
    """Return the data of a pipeline's outputs, each encoded as a number of features (``sizes``),
    under costs of its input columns; and the input columns, without rows, under these costs.

    Raises InputError if the costs are not those of the input columns, UsageError if a list of them
    may be those of the outputs as well.
    """
    names, sources = traced.names, traced.sources
    used = sorted(frozenset[int]().union(*sources))
    table = source.table if isinstance(source, CostFile) else None
    listed = table.get("costs") if isinstance(table, Mapping) else None
    if isinstance(listed, list) and any(isinstance(cell, list | Mapping) for cell in listed):
        listed = None  # rows with names
    count = source.features if isinstance(source, CostModel) else None
    count = len(listed) if isinstance(listed, list) else count
    if count is not None:  # without names
        alike = [{j} for j in range(len(names))] == [*sources]
        if count == len(names) == len(sources) and not alike:
            raise UsageError(
                f"costs: {count} costs in the order of X or of the outputs; give them by name"
            )
        if count != len(names):
            raise InputError(
                f"costs: {count} costs for {len(names)} columns of X and {len(sources)} outputs of "
                "the pipeline; give one for each column of X"
            )
    if isinstance(listed, list) and isinstance(table, Mapping):
        priced = {names[j]: listed[j] for j in used}
        source = CostFile(Path("costs"), "", {**table, "costs": priced})
    elif count is not None:
        used = [*range(len(names))]
    few, number = tuple(names[j] for j in used), {j: k for k, j in enumerate(used)}
    paid, copies = splits.train.price_columns, splits.train.multiplicity
    n = 0 if paid is None else len(paid)  # rows have prices alone
    copies = None if paid is None else copies
    rows = Examples(np.zeros((n, len(used)), np.float32), np.zeros(n), None, copies, None, paid)
    facts = unit_prices(len(used)), splits.task, splits.classes, few
    inputs = Splits(rows, rows, rows, *facts, price_columns=splits.price_columns)
    inputs = with_costs(inputs, source, models, others=names)
    if not isinstance(inputs.costs, SensorPrices | ByRow):
        raise InputError(
            f"costs: cost model {inputs.costs.name!r} has no prices for columns that share an "
            "output; give prices by name"
        )
    features = [made_of for made_of, k in zip(sources, sizes, strict=True) for _ in range(k)]
    costs = inputs.costs.of_columns([[number[j] for j in sorted(ids)] for ids in features])
    return splits.under(costs), inputs


def _outputs(
    step: Any,
    inputs: list[_Column],
    width: int | None,
    names: Sequence[str] | None,
    notes: dict[str, None],
) -> list[_Column]:
    """Return the outputs of a fitted step. ``width`` is their number and ``names`` their names, if
    the next step has them. Types of steps that do not name their outputs are added to ``notes``."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import FeatureUnion, Pipeline

    if (count := getattr(step, "n_features_in_", None)) not in (None, len(inputs)):
        inputs = _all_of(inputs, count, getattr(step, "feature_names_in_", None))
    if isinstance(step, Pipeline):
        inner = [inside for _, inside in step.steps if inside not in (None, "passthrough")]
        for inside, following in pairwise([*inner, None]):
            count = getattr(following, "n_features_in_", None)
            titles = getattr(following, "feature_names_in_", None)
            count, titles = (width, names) if following is None else (count, titles)
            inputs = _outputs(inside, inputs, count, titles, notes)
        return inputs
    if isinstance(step, ColumnTransformer):
        places = step.output_indices_
        outputs = [_Column("", frozenset())] * max(place.stop for place in places.values())
        for name, inside, _ in step.transformers_:
            size = places[name].stop - places[name].start
            if inside == "drop" or not size:
                continue
            columns = [inputs[j] for j in step._transformer_to_input_indices[name]]
            if inside != "passthrough":
                columns = _outputs(inside, columns, size, None, notes)
            outputs[places[name]] = columns
        return outputs
    if isinstance(step, FeatureUnion):
        outputs = []
        for _, inside in step.transformer_list:
            if inside == "passthrough":
                outputs += inputs
            elif inside not in (None, "drop"):
                outputs += _outputs(inside, inputs, None, None, notes)
        return outputs if width in (None, len(outputs)) else _all_of(inputs, width, names)
    return _of_leaf(step, inputs, width, names, notes)


def _of_leaf(
    step: Any,
    inputs: list[_Column],
    width: int | None,
    names: Sequence[str] | None,
    notes: dict[str, None],
) -> list[_Column]:
    """Return the outputs of a step that holds no others."""
    twin, kind, every = copy(step), type(step).__name__, _union(inputs)
    vars(twin).pop("feature_names_in_", None)  # which the marks are not
    marks = np.array([f"\0{k}\0" for k in range(len(inputs))], dtype=object)
    try:
        marked = [*map(str, twin.get_feature_names_out(marks))]
    except Exception:  # a user's transformer may have no names, or only its own
        marked = []
    if not marked or width not in (None, len(marked)):
        outputs = _all_of(inputs, width, names)
        if len(every) > 1 and any(output.sources == every for output in outputs):
            notes[kind] = None
        return outputs
    if kind in _MIXING:
        return _all_of(inputs, len(marked), None)
    outputs = []
    for text in marked:
        sources = _union([inputs[int(k)] for k in _MARK.findall(text)])
        name = _MARK.sub(lambda mark: inputs[int(mark[1])].name, text)
        outputs.append(_Column(name, sources or every))
    return outputs


def _all_of(inputs: list[_Column], width: int | None, names: Sequence[str] | None) -> list[_Column]:
    """Return outputs that keep the name of an input, or else need all inputs."""
    if names is None:
        return [_Column("", _union(inputs))] * (width or 1)
    sources = {column.name: column.sources for column in inputs}
    return [_Column(name, sources.get(name, _union(inputs))) for name in names]


def _union(columns: Sequence[_Column]) -> frozenset[int]:
    return frozenset[int]().union(*(column.sources for column in columns))
