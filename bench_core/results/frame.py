"""The export frame, made column by column: one row per trial, point and split."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.results.budgets import CAP
from bench_core.results.provenance import MADE_BY, made_by
from bench_core.results.records import CELLS, COSTS
from bench_core.results.rows import Points
from bench_core.results.trial_values import has_values

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


_BEFORE = (*_RUN, "trial", *_DATA, *_LEARNER, "point", "split", "status", "error")
_AFTER = (*_BILLING, "audit", "marks", *_MEASURED, *_HOW, "machine", *MADE_BY, "created_at")


class Part:
    """What trials of a run have in the columns of the export, in little room: parts may be made in
    different processes, and joined in order."""

    def __init__(
        self,
        info: RunInfo,
        found: Iterable[tuple[Mapping[str, Any], Sequence[Points]]],
        kept: Mapping[str, Sequence[int]],
    ) -> None:
        """Of these trials with their points; those without points are one row each. ``kept`` are
        the points, by trial, that have values on validation."""
        self.keys: list[str] = []
        self.have: list[bool] = []  # values on a path
        self.lengths = array("q")  # rows of each trial
        self.listed = _Column()  # points and split, by trial and split
        self.cells: list[tuple[tuple[str, ...], FloatArray]] = []  # (columns, rows) of these names
        names = [name for name in (*_BEFORE, *_AFTER) if name not in ("point", "split")]
        self.same = {name: _Column() for name in names}
        found = iter(found)
        while some := [*islice(found, _AT_ONCE)]:
            told = _told(info, [trial for trial, _ in some])
            for name, column in self.same.items():
                column.extend(told[name])
            self.keys += [trial["key"] for trial, _ in some]
            self.have += [has_values(t, own, kept.get(t["key"], ())) for t, own in some]
            splits = [own or (_NONE,) for _, own in some]
            self.lengths.extend(sum(len(one.points) for one in own) for own in splits)
            every = [*chain.from_iterable(splits)]
            self.listed.extend((one.points, one.split) for one in every)
            for columns, alike in groupby(every, lambda one: one.columns):
                cells = np.concatenate([one.cells for one in alike])
                self.cells.append((columns, np.ascontiguousarray(cells.T)))

    def join(self, other: Part) -> None:
        """Add what another part holds, whose cells are gone then."""
        self.lengths.extend(other.lengths)
        for name, column in other.same.items():
            self.same[name].join(column)
        self.listed.join(other.listed)
        self.cells += other.cells
        other.cells.clear()

    def numbers(self, names: Iterable[str]) -> dict[str, FloatArray]:
        """The cells by column, NaN where there are none; they are gone then."""
        made = {name: np.empty(sum(self.lengths)) for name in names}
        self.cells.reverse()
        end = 0
        while self.cells:
            of, cells = self.cells.pop()
            start, end = end, end + cells.shape[1]
            for name, column in made.items():
                column[start:end] = cells[of.index(name)] if name in of else np.nan
        return made

    def points(self) -> tuple[_Column, _Column, IntArray]:
        """Points by row; splits by trial and split, and how many rows each of these is."""
        point, split = _Column(), _Column()
        codes = [np.array([*map(point.code, points)], "i") for points, _ in self.listed.known]
        listed = self.listed.coded()
        if len(listed):
            point.codes.frombytes(np.concatenate([codes[k] for k in listed.tolist()]).tobytes())
        names = [name for _, name in self.listed.known]
        split.extend(names[k] for k in listed.tolist())
        lengths = np.array([*map(len, codes)], dtype=np.int64)
        return point, split, lengths[listed]


def export_frame(info: RunInfo, parts: Iterable[Part], *, compact: bool = False) -> pd.DataFrame:
    """The frame of the trials of all parts, in order.

    ``compact``: columns of text are categorical, counts have 32 bits, folds and seeds what they
    need.
    """
    import pandas as pd

    whole = Part(info, (), {})
    for part in parts:
        whole.join(part)
    same, of_trials = whole.same, np.array(whole.lengths, dtype=np.int64)
    cells = whole.numbers((*info.metrics, *CELLS))
    point, split, of_splits = whole.points()
    made: dict[str, Any] = {}
    for name in (*_BEFORE, *info.metrics, *COSTS, CAP, "features_used", *_AFTER):
        if name in cells:
            made[name] = cells.pop(name)
        elif name == CAP:
            made[name] = point.caps()
        elif name in _TYPES:
            made[name] = same.pop(name).numbers(of_trials, _TYPES[name], compact)
        elif name in same:
            made[name] = same.pop(name).texts(of_trials, compact)
        else:
            made[name] = (
                point.texts(1, compact) if name == "point" else split.texts(of_splits, compact)
            )
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
