"""Marks of chosen points that suggest a longer or wider search.

- ``not converged``: the last trees of the setting that was chosen still helped (``growing``).
- ``at edge: NAME``: its value of a parameter ends the range that was searched, and the parameter
  could go on there.

``ends`` of a data set's use in the plan (``DatasetUse.ends``) hold, by learner and parameter, the
values from which on a choice is at an edge; None where there is no further way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.results.operating_points import (
    best_points,
    criterion,
    groups,
    operating_points,
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
_TRIAL = ("learner", "params", "fold", "seed")

Trial = tuple[str, str, int, int]
"""A learner, its parameters, fold and seed."""

Ends = Mapping[str, tuple[float | None, float | None]]


def paths_of(points: pd.DataFrame) -> dict[Trial, IntArray]:
    """The rows of each trial among operating points."""
    found = groups(points, _TRIAL)
    first = points[list(_TRIAL)].iloc[[rows[0] for rows in found]]
    return dict(zip(_trials(first), found, strict=True))


def _trials(rows: pd.DataFrame) -> list[Trial]:
    """The trial of each row."""
    texts = rows[["learner", "params"]].astype(object).itertuples(index=False)
    numbers = rows[["fold", "seed"]].itertuples(index=False)
    return [(str(a), str(b), int(c), int(d)) for (a, b), (c, d) in zip(texts, numbers, strict=True)]


def search_marks(
    chosen: pd.DataFrame,
    points: pd.DataFrame,
    paths: Mapping[Trial, IntArray],
    ends: Mapping[str, Ends],
    higher: bool,
) -> dict[str, tuple[str, ...]]:
    """By learner the marks of its ``chosen`` points (one row per repeat), each mark once.

    ``points`` are all points (``operating_points``) with their ``paths``, ``chosen`` the best of
    them; ``ends`` are by learner; ``higher``: whether more of the quality is better.
    """
    told, quality = (
        points["point"].to_numpy(dtype=object),
        points["valid_quality"].to_numpy(dtype=np.float64),
    )
    tried: dict[str, list[Trial]] = {}
    for trial in _trials(chosen):
        tried.setdefault(trial[0], []).append(trial)
    found = {}
    for learner, own in tried.items():
        still = [_growing(told[paths[t]], quality[paths[t]], t[1], higher) for t in own]
        found[learner] = _marks(still, [t[1] for t in own], ends.get(learner, {}))
    return found


def _marks(still: Sequence[bool | None], params: Iterable[str], ends: Ends) -> tuple[str, ...]:
    found = [NOT_CONVERGED] if any(still) else []
    values = [json.loads(text or "{}") for text in params]
    edges = [name for name, end in ends.items() if any(_beyond(v.get(name), end) for v in values)]
    if None not in still and "trees" in edges:  # whether more of them help was seen on the path
        edges.remove("trees")
    return (*found, *([f"{AT_EDGE}: {', '.join(edges)}"] if edges else ()))


def repeated_paths(points: pd.DataFrame, paths: Mapping[Trial, IntArray]) -> dict[str, float]:
    """By learner how many settings gave the path of an earlier one, mean over repeats.

    Such paths have the same quality and cost on validation and test, to the last bit, at every
    point of ``operating_points``, whose ``paths`` these are.
    """
    values = np.stack([points[name].to_numpy(dtype=np.float64) for name in _MEASURED], axis=1)
    alike: dict[tuple[str, int, int], list[bytes]] = {}
    for (learner, _, fold, seed), rows in paths.items():
        alike.setdefault((learner, fold, seed), []).append(values[rows].tobytes())
    repeated: dict[str, list[int]] = {}
    for (learner, *_), found in alike.items():
        repeated.setdefault(learner, []).append(len(found) - len({*found}))
    return {learner: sum(counts) / len(counts) for learner, counts in repeated.items()}


def with_choices(frame: pd.DataFrame, info: RunInfo) -> pd.DataFrame:
    """The export frame with a last column ``chosen``: ``best`` at each learner's point of best
    validation quality in the primary metric (by repeat), followed by its marks; else empty."""
    frame = frame.assign(chosen="")
    for use in {str(use["name"]): use for use in info.datasets}.values():
        own = frame[frame["dataset"] == use["name"]]
        metric = criterion(info, use["metrics"][0])
        points = operating_points(own, metric.name)
        paths, ends = paths_of(points), use.get("ends") or {}
        of = {name: own[name] for name in (*_TRIAL, "point")}
        for _, best in best_points(points, metric.higher_is_better).iterrows():
            one, higher = best.to_frame().T, metric.higher_is_better
            (marks,) = search_marks(one, points, paths, ends, higher).values()
            there = np.logical_and.reduce([column == best[name] for name, column in of.items()])
            frame.loc[own.index[there], "chosen"] = "; ".join(("best", *marks))
    return frame


def growing(path: pd.DataFrame, higher: bool) -> bool | None:
    """True if the last tenth of the trees on the path of one fit raised its best validation quality
    by more than a thousandth; None where not all its points tell their trees.

    Boosting that ended before it had all its trees found nothing more to gain.
    """
    quality = path["valid_quality"].to_numpy(dtype=np.float64)
    return _growing(path["point"], quality, str(path["params"].iloc[0]), higher)


@lru_cache(4096)
def _trees(point: str) -> Any:
    """The trees of a point; most trials of a run have the same points."""
    return json.loads(point or "{}").get("trees")


def _growing(points: Iterable[Any], quality: FloatArray, params: str, higher: bool) -> bool | None:
    told = [_trees(str(point)) for point in points]
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
