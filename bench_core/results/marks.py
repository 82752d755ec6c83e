"""What the chosen points say about the search: does more of it promise better ones?

- ``not converged``: the point of best validation quality has all the trees of its path.
- ``at edge: NAME``: its value of a parameter ends the range that was searched, and the parameter
  could go on there.

``ends`` of a data set's use in the plan (``DatasetUse.ends``) hold, by learner and parameter, the
values from which on a choice is at an edge; None where there is no further way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bench_core.results.operating_points import best_points, criterion, operating_points

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

NOT_CONVERGED = "not converged"
AT_EDGE = "at edge"

_MEASURED = ("valid_quality", "valid_cost", "test_quality", "test_cost")
_TRIAL = ("learner", "params", "fold", "seed", "point")

Ends = Mapping[str, tuple[float | None, float | None]]


def search_marks(chosen: pd.DataFrame, points: pd.DataFrame, ends: Ends) -> tuple[str, ...]:
    """The marks of one learner's ``chosen`` points (one row per repeat), each mark once.

    ``points`` are all points of the learner (``operating_points``), ``chosen`` some of them.
    """
    found = []
    if any(_all_trees(row, points) for _, row in chosen.iterrows()):
        found.append(NOT_CONVERGED)
    values = [json.loads(params or "{}") for params in chosen["params"].astype(str)]
    edges = [name for name, end in ends.items() if any(_beyond(v.get(name), end) for v in values)]
    return (*found, *([f"{AT_EDGE}: {', '.join(edges)}"] if edges else ()))


def repeated_paths(points: pd.DataFrame) -> float:
    """How many settings of one learner gave the path of an earlier one, mean over repeats.

    Such paths have the same quality and cost on validation and test, to the last bit, at every
    point (``operating_points``).
    """
    repeats = points.groupby(["fold", "seed"])
    return sum(_repeated(trials) for _, trials in repeats) / max(1, int(repeats.ngroups))


def _repeated(trials: pd.DataFrame) -> int:
    """The same among the settings of one repeat."""
    paths = [path[list(_MEASURED)].to_numpy(float) for _, path in trials.groupby("params")]
    return len(paths) - len({path.tobytes() for path in paths})


def with_choices(frame: pd.DataFrame, info: RunInfo) -> pd.DataFrame:
    """The export frame with a last column ``chosen``: ``best`` at each learner's point of best
    validation quality in the primary metric (by repeat), followed by its marks; else empty."""
    frame = frame.assign(chosen="")
    for use in {str(use["name"]): use for use in info.datasets}.values():
        own = frame[frame["dataset"] == use["name"]]
        metric = criterion(info, use["metrics"][0])
        points = operating_points(own, metric.name)
        for _, best in best_points(points, metric.higher_is_better).iterrows():
            path = points[points["learner"] == best["learner"]]
            ends = (use.get("ends") or {}).get(best["learner"], {})
            marks = search_marks(best.to_frame().T, path, ends)
            there = own[list(_TRIAL)].eq(best[list(_TRIAL)]).all(axis=1)
            frame.loc[own.index[there], "chosen"] = "; ".join(("best", *marks))
    return frame


def _all_trees(row: pd.Series[Any], points: pd.DataFrame) -> bool:
    trees = _trees(row["point"])
    if trees is None:
        return False
    same = (points[key] == row[key] for key in ("params", "fold", "seed"))
    path = points.loc[next(same) & next(same) & next(same), "point"]
    most = [_trees(point) or 0 for point in path]
    return len(most) > 1 and trees == max(most)


def _trees(point: Any) -> float | None:
    found = json.loads(str(point) or "{}").get("trees")
    return None if found is None else float(found)


def _beyond(value: Any, ends: tuple[float | None, float | None]) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    low, high = ends
    return (low is not None and value <= low) or (high is not None and value >= high)
