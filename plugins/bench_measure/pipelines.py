"""Timing the transformers of a ColumnTransformer of scikit-learn on single rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.datasets.readers.tables import read_table
from bench_core.datasets.transformers import PASSED, blamed, column_transformer
from bench_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from bench_measure.timing import Extractor


def is_pipeline(given: Any) -> bool:
    """True for a ColumnTransformer or a Pipeline."""
    return hasattr(given, "transformers") or hasattr(given, "steps")


def pipeline_extractors(
    target: str, pipeline: Any, inputs: Sequence[Path], most: int
) -> tuple[tuple[Extractor, ...], list[Mapping[str, Any]]]:
    """One extractor for each transformer, and at most ``most`` rows, evenly spaced, as its inputs.

    The pipeline is fitted on the rows of all tables, which is not timed. A column that is passed
    through is a separate extractor.
    """
    import pandas as pd

    from bench_measure.timing import Extractor

    steps, columns = column_transformer(pipeline)
    if folder := next((path for path in inputs if path.is_dir()), None):
        raise InputError(f"{folder}: give CSV or Parquet tables, whose rows are transformed")
    tables = [read_table(path).frame for path in inputs]
    for path, frame in zip(inputs, tables, strict=True):
        if odd := next(iter(frame.columns.symmetric_difference(tables[0].columns)), None):
            where = "is missing" if odd in tables[0] else f"is not in {inputs[0]}"
            raise InputError(f"{path}: column {odd!r} {where}; give tables of the same columns")
    table = pd.concat(tables, ignore_index=True)
    with blamed(target):
        steps.fit(table)
        for step in [step for _, step in getattr(steps, "steps", [])]:
            if step is columns:
                break
            table = step.transform(table)
    places = np.unique(np.linspace(0, len(table) - 1, most).astype(int))
    rows = [table.iloc[[place]] for place in places]
    spec = {name: step for name, step, _ in columns.transformers} | {"remainder": columns.remainder}
    parts: dict[str, Any] = {}  # the columns that each extractor reads
    extractors = []
    for name, fitted, read in columns.transformers_:
        if spec[name] == PASSED:
            for column in selected(rows[0], read if not isinstance(read, str) else [read]):
                parts[str(column)] = column
                extractors.append(Extractor(str(column), lambda row: 0.0))
        elif spec[name] != "drop":
            parts[name] = read
            extractors.append(Extractor(name, _timed(name, fitted)))
    return tuple(extractors), [{n: selected(row, c) for n, c in parts.items()} for row in rows]


def _timed(name: str, fitted: Any) -> Any:
    """A function that transforms a row: all columns of a transformer are one measurement."""

    def extract(row: Mapping[str, Any]) -> float:
        fitted.transform(row[name])
        return 0.0

    return extract


def selected(frame: pd.DataFrame, read: Any) -> Any:
    """The columns that a ColumnTransformer passes to its transformer, by name, number, mask or
    slice."""
    if isinstance(read, str):
        return frame[read]
    first = next(iter(read), None) if not isinstance(read, slice) else read.start or read.stop
    return frame.loc[:, read] if isinstance(first, str) else frame.iloc[:, read]
