"""The export frame, made column by column: one row per trial, point and split."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.results.budgets import CAP
from bench_core.results.provenance import MADE_BY, made_by
from bench_core.results.rows import CELLS, COSTS, Points

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

# the columns; metrics and costs stand between point and accounting
_RUN = ("run", "suite", "profile")
_DATA = ("dataset", "fold", "fingerprint", "stand_in")
_LEARNER = ("learner", "learner_version", "params", "seed")
_BILLING = ("accounting", "unit", "cost_model", "surrogate")
_MEASURED = ("fit_seconds", "predict_seconds", "peak_rss_mb")
_HOW = ("threads", "workers", "cpu")  # what the seconds depend on besides
_TRIAL = ("status", "audit", "marks", "machine", "created_at")
_COUNTS = ("threads", "workers")
_TYPES = {
    **dict.fromkeys((*_MEASURED, *_COUNTS), "float64"),
    **dict.fromkeys(("fold", "seed"), "int64"),
    **dict.fromkeys(("stand_in", "surrogate"), "bool"),
}


class _Column:
    """Values that hold for some rows each, every different one kept once."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}
        self.codes: list[int] = []

    def add(self, value: Any) -> None:
        self.codes.append(self.known.setdefault(value, len(self.known)))

    def array(self, repeats: Sequence[int], dtype: str) -> Any:
        values = np.array([*self.known], dtype=dtype)
        return np.repeat(values[self.codes] if self.codes else values, repeats)

    def texts(self, repeats: Sequence[int], compact: bool) -> Any:
        """The column, categorical if ``compact``, with its categories in order."""
        import pandas as pd

        order = sorted(self.known)
        place = {text: k for k, text in enumerate(order)}
        small = np.min_scalar_type(-max(1, len(order)))
        to = np.array([place[text] for text in self.known], dtype=small)
        codes = np.repeat(to[self.codes] if self.codes else to, repeats)
        if compact:
            return pd.Categorical.from_codes(codes, categories=pd.Index(order, dtype="str"))
        return pd.array(np.array(order, dtype=object), dtype="str").take(codes)


def export_frame(
    info: RunInfo,
    found: Iterable[tuple[Mapping[str, Any], Sequence[Points]]],
    *,
    compact: bool = False,
) -> pd.DataFrame:
    """The frame of trials with their points, in order; those without points are one row each.

    ``compact``: columns of text are categorical.
    """
    import pandas as pd

    before = (*_RUN, "trial", *_DATA, *_LEARNER, "point", "split", "status", "error")
    after = (*_BILLING, "audit", "marks", *_MEASURED, *_HOW, "machine", *MADE_BY, "created_at")
    same = {name: _Column() for name in (*before, *after)}
    points, caps, lengths = same.pop("point"), _Column(), []
    numbers = (*info.metrics, *CELLS)
    cells: list[np.ndarray[Any, Any]] = []
    texts: dict[str, float] = {"": np.nan}  # what is the cap of a point
    for trial, splits in found:
        row = _row(info, trial)
        for one in splits or (None,):
            for name, value in row.items():
                same[name].add(value)
            same["split"].add(one.split if one else "")
            lengths.append(len(one.points) if one else 1)
            cells.append(_cells(one, numbers))
            for point in one.points if one else ("",):
                if point not in texts:
                    texts[point] = json.loads(point).get(CAP, np.nan)
                points.add(point)
                caps.add(texts[point])
    table = np.concatenate(cells) if cells else np.empty((0, len(numbers)))
    cells.clear()
    each: Sequence[int] = [1] * len(points.codes)
    made: dict[str, Any] = {}
    for name in (*before, *info.metrics, *COSTS, CAP, "features_used", *after):
        if name in numbers:
            made[name] = np.ascontiguousarray(table[:, numbers.index(name)])
        elif name == "point":
            made[name] = points.texts(each, compact)
        elif name == CAP:
            made[name] = caps.array(each, "float64")
        elif name in _TYPES:
            made[name] = same[name].array(lengths, _TYPES[name])
        else:
            made[name] = same[name].texts(lengths, compact)
    for name in ("features_used", *_COUNTS):
        made[name] = pd.array(made[name], dtype="Int64")
    return pd.DataFrame(made, copy=False)


def _row(info: RunInfo, trial: Mapping[str, Any]) -> dict[str, Any]:
    spec = trial["spec"]
    return {
        **{name: getattr(info, name) for name in _RUN},
        **{name: spec[name] for name in (*_DATA, *_LEARNER, *_BILLING)},
        **{name: trial[name] for name in (*_TRIAL, *_MEASURED)},
        **made_by(trial["key"], spec),
        **{name: spec.get(name) for name in _COUNTS},
        "cpu": trial["machine"].rsplit(", ", 4)[0],
        "params": json.dumps(spec["params"], sort_keys=True),
        "error": trial["error"] or trial["audit_error"],
    }


def _cells(one: Points | None, numbers: Sequence[str]) -> np.ndarray[Any, Any]:
    """The cells (p, c) of these columns, NaN where there is no such number."""
    if one is None:
        return np.full((1, len(numbers)), np.nan)
    if one.columns == [*numbers]:
        return one.cells
    found = np.full((len(one.points), len(numbers)), np.nan)
    for k, name in enumerate(numbers):
        if name in one.columns:
            found[:, k] = one.column(name)
    return found
