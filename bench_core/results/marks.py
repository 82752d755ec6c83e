"""Marks of chosen points that suggest a longer or wider search.

- ``not converged``: the last trees of the chosen setting still improved it (``growing``).
- ``at edge: NAME``: its value of a parameter is at the edge of the search range, and could go
  further.

``ends`` in the plan (``DatasetUse.ends``) hold, by learner and parameter, the values that bound the
search range; None if there is no further range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import IntArray
from bench_core.results.operating_points import (
    best_points,
    constants,
    criterion,
    groups,
    operating_points,
)
from bench_core.results.tables import json_value

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

NOT_CONVERGED = "not converged"
AT_EDGE = "at edge"

LAST_TREES, NEGLIGIBLE = 0.1, 0.001
"""Boosting has converged if the last tenth of its trees raised its best validation quality by less
than a thousandth."""

_MEASURED = ["valid_quality", "valid_cost", "test_quality", "test_cost"]
_TRIAL = ["learner", "fold", "seed", "params"]

Ends = Mapping[str, tuple[float | None, float | None]]


def _paths_of(points: pd.DataFrame) -> dict[tuple[Any, ...], IntArray]:
    """Rows of each trial among operating points, by ``_TRIAL``."""
    found = groups(points, _TRIAL)
    first = points[_TRIAL].iloc[[rows[0] for rows in found]]
    return dict(zip(first.itertuples(index=False, name=None), found, strict=True))


def search_marks(
    chosen: pd.DataFrame, points: pd.DataFrame, ends: Mapping[str, Ends], higher: bool
) -> dict[str, tuple[str, ...]]:
    """Return the distinct marks of each learner's ``chosen`` points (one row per repeat).

    ``points`` are all points (``operating_points``), ``chosen`` the best of them; ``ends`` are by
    learner; ``higher``: True if higher quality is better.
    """
    paths, marks = _paths_of(points), {}
    for learner, rows in chosen.groupby("learner", observed=True):
        trials = rows[_TRIAL].itertuples(index=False, name=None)
        still = [growing(points.iloc[paths[trial]], higher) for trial in trials]
        values = [json_value(str(text) or "{}") for text in rows["params"]]
        edges = [
            name
            for name, bounds in ends.get(str(learner), {}).items()
            # of trees ``growing`` decides where it is known
            if (name != "trees" or None in still)
            and any(_beyond(value.get(name), *bounds) for value in values)
        ]
        edge = [f"{AT_EDGE}: {', '.join(edges)}"] if edges else []
        marks[str(learner)] = (*([NOT_CONVERGED] if any(still) else []), *edge)
    return marks


def repeated_paths(points: pd.DataFrame) -> dict[str, float]:
    """Return, by learner, the mean number over repeats of settings that repeat an earlier path.

    Such paths have exactly the same quality and cost on validation and test at every point of
    ``operating_points``.
    """
    import pandas as pd

    values = points[_MEASURED].to_numpy(dtype=np.float64)
    paths = [(*trial, values[rows].tobytes()) for trial, rows in _paths_of(points).items()]
    of_repeat = pd.DataFrame(paths, columns=[*_TRIAL, "path"]).groupby(["learner", "fold", "seed"])
    repeated = of_repeat["path"].size() - of_repeat["path"].nunique()
    means: dict[str, float] = repeated.groupby("learner").mean().to_dict()
    return means


def with_choices(frame: pd.DataFrame, info: RunInfo) -> pd.DataFrame:
    """Add a last column ``chosen`` to the export frame: ``best`` and marks at each learner's point
    of best validation quality in the primary metric (by repeat), else empty."""
    frame, keys = frame.assign(chosen=""), [*_TRIAL, "point"]
    for use in {use.name: use for use in info.datasets}.values():
        rows = frame.loc[frame["dataset"] == use.name]
        metric = criterion(info, use.metrics[0])
        points, higher = operating_points(rows, metric.name), metric.higher_is_better
        for _, best in best_points(points, higher).groupby(["fold", "seed"]):
            marks = search_marks(best, points, use.ends, higher)
            words = ["; ".join(("best", *marks[name])) for name in best["learner"].astype(str)]
            there = rows[keys].merge(best[keys].assign(chosen=words), on=keys, how="left")["chosen"]
            frame.loc[rows.index[there.notna()], "chosen"] = there.dropna().to_numpy()
    return frame


def growing(path: pd.DataFrame, higher: bool) -> bool | None:
    """True if the last tenth of the trees of a fit's path raised its best validation quality by
    more than a thousandth; None unless all its points give their trees.

    Boosting that stopped before its maximum number of trees has converged, and so has a single
    point.
    """
    path = path[~constants(path)]
    counts = [json_value(str(point) or "{}").get("trees") for point in path["point"]]
    if None in counts:
        return None
    trees = np.array(counts)
    most = json_value(str(path["params"].iloc[0]) or "{}").get("trees") or 0
    if len(counts) < 2 or trees.max() < most:
        return False
    worth = path["valid_quality"].to_numpy(dtype=np.float64) * (1.0 if higher else -1.0)
    before = np.fmax.reduce(worth[trees <= (1.0 - LAST_TREES) * trees.max()], initial=np.nan)
    best = np.fmax.reduce(worth)
    return not best - before <= NEGLIGIBLE * abs(best)


def _beyond(value: Any, low: float | None, high: float | None) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return (low is not None and value <= low) or (high is not None and value >= high)
