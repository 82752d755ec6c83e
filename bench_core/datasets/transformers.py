"""Data in memory, transformed by a ColumnTransformer of scikit-learn.

It is fitted on the training rows. Polars frames stay such, as served rows are: scikit-learn has
other missing texts for pandas. Columns made by one of its transformers share a sensor, named after
the transformer. Columns passed through keep their names and have their own sensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from traceback import walk_tb
from typing import Any

import numpy as np

from bench_core._io.frames import polars_of
from bench_core.costs.price_table import columns_named
from bench_core.costs.shipped import MODELS
from bench_core.data import Examples
from bench_core.datasets.pricing import CostSource, by_transformer, with_costs
from bench_core.datasets.table_options import USUAL, TableOptions
from bench_core.datasets.traced_columns import traced, under_input_costs
from bench_core.datasets.user_arrays import (
    array_splits,
    data_frame,
    row_values,
    without_prices,
)
from bench_core.errors import InputError, UsageError, check_memory, one_line, unknown
from bench_core.splits import SPLITS, Splits

PASSED = "passthrough"
MOST_ROWS = 2**24  # their numbers are float32


def transformer_splits(
    transformer: Any,
    X: Any,
    y: Any,
    queries: Any = None,
    split: Any = None,
    valid: Any = None,
    test: Any = None,
    sample_weight: Any = None,
    options: TableOptions = USUAL,
    fold: int = 0,
    costs: CostSource | None = None,
) -> tuple[Splits, Any]:
    """Return ``array_splits`` of X transformed by ``transformer``: a ColumnTransformer, or a
    Pipeline with one; and a copy of it fitted on the training rows.

    The splits are under ``costs`` if these name columns of X, not transformers. Raises InputError
    and UsageError.
    """
    import pandas as pd
    from sklearn.utils import _safe_indexing

    steps, columns = column_transformer(transformer)
    inputs = {"train": (X, y, queries, split)}
    for name, more in (("valid", valid), ("test", test)):
        if more is not None:
            arguments = more if isinstance(more, tuple | list) else (more, y, queries)
            inputs[name] = (*arguments, None, None)[:4]
    frames: dict[int, Any] = {}  # by the number of their first row
    rows: dict[str, list[Any]] = {}  # of each part the numbers of its rows, labels, ids, splits
    first = 0
    for name, part in inputs.items():
        called = "X" if name == "train" else name
        frame, values = _taken_out(called, *part, options.drop)
        numbers = pd.DataFrame({"row": np.arange(first, first + len(frame))})
        if sensors := options.prices_by_row:
            frame, prices = without_prices(frame, called, sensors)
            numbers[[*columns_named(sensors)]] = prices
        rows[name] = [numbers, *values]
        frames[first] = frame
        first += len(frame)
    kinds = {type(frame).__module__.partition(".")[0] for frame in frames.values()}
    if len(kinds) > 1:
        of = " and ".join(sorted(kinds))
        raise InputError(f"transformer: frames of {of}; give X, valid and test as one kind")
    if first >= MOST_ROWS:
        raise InputError(f"transformer: {first} rows; transform more than {MOST_ROWS} yourself")
    numbers, labels, ids, words = rows["train"]
    divided = array_splits(
        *(numbers, labels, ids, words),
        valid=tuple(rows["valid"][:3]) if "valid" in rows else None,
        test=tuple(rows["test"][:3]) if "test" in rows else None,
        sample_weight=sample_weight,
        options=replace(options, drop=(), keep_column=("row",), decimal="", dates=False),
        fold=fold,
    )
    places = {name: getattr(divided, name).X[:, 0].astype(np.int64) for name in SPLITS}
    chosen, outputs = dict[str, Any](), dict[str, Any]()
    for name, place in places.items():  # the rows of a split are of one frame
        start = max(first for first in frames if first <= place[0])
        chosen[name] = _safe_indexing(frames[start], place - start)
    with blamed("transformer", columns):
        outputs["train"] = steps.fit_transform(chosen["train"], divided.train.y)
        outputs |= {name: steps.transform(chosen[name]) for name in SPLITS[1:]}
    names, owners = _names(steps, columns)
    labels, ids = (_joined(rows, k) for k in (1, 2))
    parts = {
        name: (
            pd.DataFrame(np.asarray(outputs[name]), columns=names).infer_objects(),
            labels.iloc[place],
            None if ids is None else ids.iloc[place],
        )
        for name, place in places.items()
    }
    task = str(divided.task)
    final = array_splits(
        *parts["train"],
        valid=parts["valid"],
        test=parts["test"],
        options=replace(
            options, task=task, drop=(), keep_column=(), cv=0, share=(), prices_by_row=()
        ),
    )
    notes = tuple(dict.fromkeys((*divided.notes, *final.notes)))
    facts: dict[str, Any] = {"notes": notes, "price_columns": divided.price_columns}
    for name in SPLITS:  # the rows have the order of ``divided``
        before: Examples = getattr(divided, name)
        both = {"multiplicity": before.multiplicity, "price_columns": before.price_columns}
        facts[name] = replace(getattr(final, name), **both)
    return _priced(replace(final, **facts), owners, steps, costs), steps


def _priced(splits: Splits, owners: Sequence[str], steps: Any, costs: CostSource | None) -> Splits:
    """Return the transformed data with a sensor for each of the transformers ``owners``; under the
    costs if only columns of X have these names."""
    shared = by_transformer(splits, owners)
    before = None if costs is None else traced([steps], len(splits.names))
    if costs is None or before is None:
        return shared
    try:
        with_costs(shared, costs)
    except InputError:
        sizes = [len(encoding.features) for encoding in splits.encodings] or [1] * len(splits.names)
        with suppress(InputError):  # the caller applies the costs, with its own message
            priced, inputs = under_input_costs(splits, costs, MODELS, before, sizes)
            return replace(priced, notes=(*splits.notes, *inputs.notes, *before.notes))
    return shared


def _joined(rows: Mapping[str, Sequence[Any]], k: int) -> Any:
    """Join the labels or ids of all parts; None if there are none."""
    import pandas as pd

    if rows["train"][k] is None:
        return None
    values = [row_values(part[k], name, len(part[0])) for name, part in rows.items()]
    return pd.concat(values, ignore_index=True)


def _taken_out(
    name: str, X: Any, y: Any, queries: Any, split: Any, drop: Any
) -> tuple[Any, list[Any]]:
    """Return a part's frame without the columns of labels, ids, splits and dropped columns; and its
    labels, ids and splits."""
    frame: Any = polars_of(X)
    if frame is None:
        frame, _ = data_frame(X, name)
    values: list[Any] = []
    for what, value in (("y", y), ("queries", queries), ("split", split)):
        if isinstance(value, str) and value not in frame:
            raise InputError(f"{name}: {what}: {unknown('column', value, [*frame.columns])}")
        values.append(frame[value] if isinstance(value, str) else value)
    left_out = [value for value in (y, queries, split, *drop) if isinstance(value, str)]
    return frame[[column for column in frame.columns if column not in left_out]], values


def column_transformer(transformer: Any) -> tuple[Any, Any]:
    """Return an unfitted copy without a final estimator, and the ColumnTransformer in it.

    Raises UsageError if there is no ColumnTransformer.
    """
    from sklearn.base import clone
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    steps = clone(transformer) if hasattr(transformer, "get_params") else transformer
    if isinstance(steps, Pipeline) and not hasattr(steps[-1], "transform"):
        steps = steps[:-1]
    parts = [step for _, step in steps.steps] if isinstance(steps, Pipeline) else [steps]
    transformers = [part for part in parts if isinstance(part, ColumnTransformer)]
    if len(transformers) != 1:
        kind = type(transformer).__name__
        raise UsageError(
            f"transformer is a {kind}; give a ColumnTransformer, or a Pipeline with one, whose "
            "transformers have prices"
        )
    transformers[0].set_params(sparse_threshold=0)  # dense
    return steps, transformers[0]


def _names(steps: Any, columns: Any) -> tuple[list[str], list[str]]:
    """Return the name of each column made, and the transformers that make columns."""
    fitted = {name: transformer for name, transformer, _ in columns.transformers_}
    passed = {name for name, transformer, _ in columns.transformers if transformer == PASSED}
    passed |= {"remainder"} if columns.remainder == PASSED else set()
    names, owners = list[str](), list[str]()
    for owner, block in columns.output_indices_.items():
        width = block.stop - block.start
        try:
            outputs = [str(name) for name in fitted[owner].get_feature_names_out()]
        except (AttributeError, KeyError, ValueError):  # a user's transformer may lack names
            outputs = [str(k + 1) for k in range(width)]
        names += (
            outputs[:width] if owner in passed else [f"{owner}__{name}" for name in outputs[:width]]
        )
        owners += [owner] if width and owner not in passed else []
    after = False
    for step in [step for _, step in getattr(steps, "steps", [])]:
        if after and step != PASSED:
            try:
                alike = [*step.get_feature_names_out(names)] == names
            except (AttributeError, ValueError):
                alike = False
            if not alike:
                raise UsageError(
                    f"transformer: the later step {type(step).__name__} mixes the columns of the "
                    "ColumnTransformer; put it inside one of its transformers"
                )
        after |= step is columns
    return names, owners


@contextmanager
def blamed(what: str, columns: Any = None) -> Iterator[None]:
    """Turn errors of a user's transformers into one line, with the step of ``columns``, a
    ColumnTransformer, in which they were raised."""
    try:
        yield
    except Exception as error:
        check_memory(error, what)
        # scikit-learn fits copies, which are written alike
        at = {repr(frame.f_locals.get("transformer")) for frame, _ in walk_tb(error.__traceback__)}
        steps = [name for name, t, _ in getattr(columns, "transformers", ()) if repr(t) in at]
        where = f": step {' or '.join(map(repr, steps))}" if steps else ""
        fault = one_line(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{what}{where}: {fault}") from error
