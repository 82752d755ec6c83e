"""The export frame, made column by column: one row per trial, point and split."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import IntArray
from bench_core.results.budgets import CAP
from bench_core.results.provenance import MADE_BY, made_by
from bench_core.results.records import CELLS, COSTS
from bench_core.results.rows import Points

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


_AT_ONCE = 250  # trials or splits: what they hold is moved to columns together


class _Known(dict[Any, int]):
    """Values in the order in which they were first asked for."""

    def __missing__(self, value: Any) -> int:
        self[value] = place = len(self)
        return place


class _Column:
    """A column of few different values: each kept once, and codes of trials or of rows."""

    def __init__(self) -> None:
        self.known = _Known()
        self.code = self.known.__getitem__
        self.codes = array("i")

    def extend(self, values: Iterable[Any]) -> None:
        self.codes.extend(map(self.code, values))

    def numbers(self, lengths: IntArray | int, dtype: str, compact: bool) -> Any:
        """The column with trial k ``lengths[k]`` times, integers as small as can be if
        ``compact``."""
        known = np.array([*self.known], dtype=dtype)
        if compact and dtype == "int64":
            known = known.astype(np.min_scalar_type(-1 - np.abs(known).max(initial=0)))
        return self._spread(known, lengths)

    def texts(self, lengths: IntArray | int, compact: bool) -> Any:
        """The same as text, categorical if ``compact``, with its categories in order."""
        import pandas as pd

        order = sorted(self.known)
        place = {text: k for k, text in enumerate(order)}
        small = np.min_scalar_type(-max(1, len(order)))
        to = np.array([place[text] for text in self.known], dtype=small)
        codes = self._spread(to, lengths)
        if compact:
            return pd.Categorical.from_codes(codes, categories=pd.Index(order, dtype="str"))
        return pd.array(np.array(order, dtype=object), dtype="str").take(codes)

    def caps(self) -> Any:
        """The caps of points, NaN for those without."""
        every = (json.loads(text or "{}").get(CAP, np.nan) for text in self.known)
        caps = np.fromiter(every, "float64")
        return self._spread(caps[:1] if np.isnan(caps).all() else caps, 1)

    def _spread(self, known: Any, lengths: IntArray | int) -> Any:
        """What stands for each known value, by row; one cell for all where there is but one."""
        if len(known) == 1:
            count = len(self.codes) * lengths if isinstance(lengths, int) else lengths.sum()
            return np.broadcast_to(known, count)
        return np.repeat(known[self.coded()], lengths)

    def coded(self) -> IntArray:
        return np.frombuffer(self.codes, "i") if self.codes else np.zeros(0, "i")

    def join(self, other: _Column) -> None:
        """Add what another column holds behind what this one does."""
        to = np.array([*map(self.code, other.known)], dtype="i")
        if len(to):
            self.codes.frombytes(to[other.coded()].tobytes())


_NONE = Points("", ("",), (), np.empty((1, 0)))
"""The one row of a trial without points."""


class _Cells:
    """The columns of numbers, and of points and splits by code, as they grow point by point."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self.columns = {name: array("d") for name in (*metrics, *CELLS)}
        self.point, self.split = _Column(), _Column()
        self.waiting: list[Points] = []
        self.spelt: dict[tuple[tuple[str, ...], str], tuple[bytes, bytes]] = {}

    def _codes_of(self, one: Points) -> tuple[bytes, bytes]:
        codes = array("i", map(self.point.code, one.points))
        splits = array("i", [self.split.code(one.split)] * len(one.points))
        return codes.tobytes(), splits.tobytes()

    def add(self, one: Points) -> int:
        """Add these and say how many they are."""
        if self.waiting and (
            self.waiting[0].columns != one.columns or len(self.waiting) == _AT_ONCE
        ):
            self.flush()
        self.waiting.append(one)
        known = one.points, one.split  # most trials of a run have the same
        if known not in self.spelt:
            self.spelt[known] = self._codes_of(one)
        point, split = self.spelt[known]
        self.point.codes.frombytes(point)
        self.split.codes.frombytes(split)
        return len(one.points)

    def flush(self) -> None:
        """What waits has the same columns, and is moved at once; what it lacks is NaN."""
        if not self.waiting:
            return
        cells = np.concatenate([one.cells for one in self.waiting])
        of = self.waiting[0].columns
        for name, column in self.columns.items():
            some = cells[:, of.index(name)] if name in of else np.full(len(cells), np.nan)
            column.frombytes(some.tobytes())
        self.waiting = []


_BEFORE = (*_RUN, "trial", *_DATA, *_LEARNER, "point", "split", "status", "error")
_AFTER = (*_BILLING, "audit", "marks", *_MEASURED, *_HOW, "machine", *MADE_BY, "created_at")


class Part:
    """What trials of a run have in the columns of the export, in little room: parts may be made in
    different processes, and joined in order."""

    def __init__(
        self, info: RunInfo, found: Iterable[tuple[Mapping[str, Any], Sequence[Points]]]
    ) -> None:
        """Of these trials with their points; those without points are one row each."""
        self.cells, self.lengths = _Cells(info.metrics), array("q")
        names = [name for name in (*_BEFORE, *_AFTER) if name not in ("point", "split")]
        self.same = {name: _Column() for name in names}
        found = iter(found)
        while some := [*islice(found, _AT_ONCE)]:
            told = _told(info, [trial for trial, _ in some])
            for name, column in self.same.items():
                column.extend(told[name])
            self.lengths.extend(sum(map(self.cells.add, splits or (_NONE,))) for _, splits in some)
        self.cells.flush()
        self.cells.spelt.clear()

    def join(self, other: Part) -> None:
        """Add what another part holds, which is empty then."""
        self.lengths.extend(other.lengths)
        for name, column in other.same.items():
            self.same[name].join(column)
        self.cells.point.join(other.cells.point)
        self.cells.split.join(other.cells.split)
        for name, numbers in self.cells.columns.items():
            numbers.extend(other.cells.columns.pop(name))


def export_frame(info: RunInfo, parts: Iterable[Part], *, compact: bool = False) -> pd.DataFrame:
    """The frame of the trials of all parts, in order.

    ``compact``: columns of text are categorical, counts have 32 bits, folds and seeds what they
    need.
    """
    import pandas as pd

    whole = Part(info, ())
    for part in parts:
        whole.join(part)
    cells, same, of_trials = whole.cells, whole.same, np.array(whole.lengths, dtype=np.int64)
    made: dict[str, Any] = {}
    for name in (*_BEFORE, *info.metrics, *COSTS, CAP, "features_used", *_AFTER):
        if name in cells.columns:
            made[name] = np.frombuffer(cells.columns.pop(name)) if len(of_trials) else np.zeros(0)
        elif name == CAP:
            made[name] = cells.point.caps()
        elif name in _TYPES:
            made[name] = same.pop(name).numbers(of_trials, _TYPES[name], compact)
        elif name in same:
            made[name] = same.pop(name).texts(of_trials, compact)
        else:
            made[name] = (cells.point if name == "point" else cells.split).texts(1, compact)
    for name in ("features_used", *_COUNTS):
        made[name] = pd.array(made[name], dtype="Int32" if compact else "Int64")
    return pd.DataFrame(made, copy=False)


def _told(info: RunInfo, trials: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """What stands in the columns of some trials."""
    specs = [trial["spec"] for trial in trials]
    made = [made_by(trial["key"], trial["spec"]) for trial in trials]
    return {
        **{name: [getattr(info, name)] * len(trials) for name in _RUN},
        **{name: [s[name] for s in specs] for name in (*_DATA, *_LEARNER, *_BILLING)},
        **{name: [trial[name] for trial in trials] for name in (*_TRIAL, *_MEASURED)},
        **{name: [one[name] for one in made] for name in ("trial", *MADE_BY)},
        **{name: [spec.get(name) for spec in specs] for name in _COUNTS},
        "cpu": [trial["machine"].rsplit(", ", 4)[0] for trial in trials],
        "params": [_in_order(spec["params"]) for spec in specs],
        "error": [trial["error"] or trial["audit_error"] for trial in trials],
    }


_in_order = json.JSONEncoder(sort_keys=True).encode
