"""Results in one SQLite file: many readers, one writer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.data import Float32Array, FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run as the store remembers it.

    ``state`` is running (or killed while running), interrupted or finished. ``planned`` counts
    its trials, ``counts`` the finished ones by status. ``higher_is_better`` covers all of
    ``metrics``, of which the first is primary for data sets whose task it suits (see
    ``DatasetUse.metrics`` in ``datasets``).
    """

    run: str
    created_at: str
    updated_at: str
    state: str
    suite: str
    title: str
    paper: str
    profile: str
    reference: str
    accounting: str
    metrics: tuple[str, ...]
    higher_is_better: Mapping[str, bool]
    datasets: tuple[Mapping[str, Any], ...]  # the fields of plan.DatasetUse
    planned: int
    counts: Mapping[str, int]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    claims: tuple[Mapping[str, Any], ...]
    request: Mapping[str, Any]

    @property
    def stand_in(self) -> bool:
        """Whether any of its data sets is a stand-in."""
        return any(d["stand_in"] for d in self.datasets)


@dataclass(frozen=True, slots=True, eq=False)
class PointValues:
    """Per-query (or per-row, or per-block above 100000 rows) values of one stored point.

    ``metric`` (m,) values of the primary metric with ``weights`` (m,); ``cost`` (m,) mean total
    cost per row with ``rows`` (m,), the number of rows counted with multiplicity. Units stand in
    the same order for all trials on one data set, fold, seed and split.
    """

    trial: str
    learner: str
    params: Mapping[str, Any]
    dataset: str
    fold: int
    seed: int
    point: Mapping[str, float]
    split: str
    metric_name: str
    metric: Float32Array
    weights: FloatArray
    cost: Float32Array
    rows: FloatArray


class Store:
    """A results store opened for reading. Raises InputError where the file is not one."""

    def __init__(self, path: str | Path = "") -> None:
        raise NotImplementedError

    def runs(self) -> list[RunInfo]:
        """All runs, the most recent first."""
        raise NotImplementedError

    def resolve(self, run: str = "last") -> str:
        """The id of a run given as ``last``, an id or an unambiguous beginning of one."""
        raise NotImplementedError

    def info(self, run: str = "last") -> RunInfo:
        """One run."""
        raise NotImplementedError

    def frame(self, run: str = "last") -> pd.DataFrame:
        """One row per trial, point and split, with the export columns in order.

        A trial that is not ``ok`` is one row whose point and split are empty.
        """
        raise NotImplementedError

    def values(
        self, run: str = "last", *, split: str = "test", dataset: str = "", learner: str = ""
    ) -> list[PointValues]:
        """Stored per-query or per-row values of the frontier points, in order."""
        raise NotImplementedError
