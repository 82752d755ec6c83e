"""What the chosen points say about the search: does more of it promise better ones?

- ``not converged``: the last trees of the setting that was chosen still helped (``growing``).
- ``at edge: NAME``: its value of a parameter ends the range that was searched, and the parameter
  could go on there.

``ends`` of a data set's use in the plan (``DatasetUse.ends``) hold, by learner and parameter, the
values from which on a choice is at an edge; None where there is no further way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.results.operating_points import (
    best_points,
    criterion,
    operating_points,
    positions,
    texts,
)

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

NOT_CONVERGED = "not converged"
AT_EDGE = "at edge"

LAST_TREES, NEGLIGIBLE = 0.1, 0.001
"""Boosting has converged if the last tenth of its trees raised its best validation quality by less
than a thousandth."""

_MEASURED = ("valid_quality", "valid_cost", "test_quality", "test_cost")
_TRIED = ("params", "fold", "seed")
_TRIAL = ("learner", *_TRIED, "point")

Ends = Mapping[str, tuple[float | None, float | None]]


def search_marks(
    chosen: pd.DataFrame, points: pd.DataFrame, ends: Ends, higher: bool
) -> tuple[str, ...]:
    """The marks of one learner's ``chosen`` points (one row per repeat), each mark once.

    ``points`` are all points of the learner (``operating_points``), ``chosen`` the best of them;
    ``higher``: whether more of the quality is better.
    """
    found = []
    paths = dict(_paths(points))
    tried = _cells(chosen)
    told, quality = points["point"].array, points["valid_quality"].to_numpy(dtype=np.float64)
    still = [_growing(told[paths[t]], quality[paths[t]], t[0], higher) for t in tried]
    if any(still):
        found.append(NOT_CONVERGED)
    values = [json.loads(params or "{}") for params, *_ in tried]
    edges = [name for name, end in ends.items() if any(_beyond(v.get(name), end) for v in values)]
    if None not in still and "trees" in edges:  # whether more of them help was seen on the path
        edges.remove("trees")
    return (*found, *([f"{AT_EDGE}: {', '.join(edges)}"] if edges else ()))


def repeated_paths(points: pd.DataFrame) -> float:
    """How many settings of one learner gave the path of an earlier one, mean over repeats.

    Such paths have the same quality and cost on validation and test, to the last bit, at every
    point (``operating_points``).
    """
    values = np.stack([points[name].to_numpy(dtype=np.float64) for name in _MEASURED], axis=1)
    trials = [(fold, seed, values[rows].tobytes()) for (_, fold, seed), rows in _paths(points)]
    repeats = {(fold, seed) for fold, seed, _ in trials}
    return (len(trials) - len({*trials})) / max(1, len(repeats))


def _paths(points: pd.DataFrame) -> list[tuple[tuple[str, int, int], IntArray]]:
    """The rows of each trial of a learner, by its parameters, fold and seed."""
    found = positions(points, [*_TRIED])
    return [*zip(_cells(points.iloc[[rows[0] for rows in found]]), found, strict=True)]


def _cells(rows: pd.DataFrame) -> list[tuple[str, int, int]]:
    """Parameters, fold and seed of each row."""
    return [*zip(texts(rows["params"]), rows["fold"], rows["seed"], strict=True)]


def with_choices(frame: pd.DataFrame, info: RunInfo) -> pd.DataFrame:
    """The export frame with a last column ``chosen``: ``best`` at each learner's point of best
    validation quality in the primary metric (by repeat), followed by its marks; else empty."""
    frame = frame.assign(chosen="")
    for use in {str(use["name"]): use for use in info.datasets}.values():
        own = frame[frame["dataset"] == use["name"]]
        metric = criterion(info, use["metrics"][0])
        points = operating_points(own, metric.name)
        of = {name: own[name] for name in _TRIAL}
        for _, best in best_points(points, metric.higher_is_better).iterrows():
            path = points[points["learner"] == best["learner"]]
            ends = (use.get("ends") or {}).get(best["learner"], {})
            marks = search_marks(best.to_frame().T, path, ends, metric.higher_is_better)
            there = np.logical_and.reduce([column == best[name] for name, column in of.items()])
            frame.loc[own.index[there], "chosen"] = "; ".join(("best", *marks))
    return frame


def growing(path: pd.DataFrame, higher: bool) -> bool | None:
    """Whether the last tenth of the trees on the path of one fit raised its best validation quality
    by more than a thousandth; None where not all its points tell their trees.

    Boosting that ended before it had all its trees found nothing more to gain.
    """
    quality = path["valid_quality"].to_numpy(dtype=np.float64)
    return _growing(path["point"], quality, str(path["params"].iloc[0]), higher)


def _growing(points: Iterable[Any], quality: FloatArray, params: str, higher: bool) -> bool | None:
    told = [json.loads(str(point) or "{}").get("trees") for point in points]
    if None in told:
        return None
    trees = np.array(told)
    asked = json.loads(params or "{}").get("trees") or 0
    if len(told) < 2 or trees.max() < asked:
        return False
    worth = quality * (1.0 if higher else -1.0)
    before = np.fmax.reduce(worth[trees <= (1.0 - LAST_TREES) * trees.max()], initial=np.nan)
    most = np.fmax.reduce(worth)
    return not most - before <= NEGLIGIBLE * abs(most)


def _beyond(value: Any, ends: tuple[float | None, float | None]) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    low, high = ends
    return (low is not None and value <= low) or (high is not None and value >= high)
