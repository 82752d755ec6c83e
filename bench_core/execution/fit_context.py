"""What the harness offers a learner while it fits."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_core._io.digests import canonical, import_key
from bench_core._io.large_arrays import shared_arrays
from bench_core.arrays import Array
from bench_core.class_names import encode
from bench_core.data import Task
from bench_core.protocols import Metric
from bench_core.results.model_files import load_model, state_path
from bench_core.results.records import FitSpec
from bench_core.splits import Splits

Progress = Callable[[int, int], None]
"""Takes how much is done, and of how much."""


@dataclass(slots=True)
class Context:
    """The ``FitContext`` of one fit."""

    spec: FitSpec
    splits: Splits
    metric: Metric
    report: Progress

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.splits.task

    @property
    def classes(self) -> int:
        """Number of classes, 0 where there are none."""
        return self.splits.classes

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features' names in column order, () where the data has none."""
        return self.splits.feature_names

    @property
    def seed(self) -> int:
        """The trial's seed."""
        return self.spec.seed

    @property
    def threads(self) -> int:
        """How many threads the fit may use."""
        return self.spec.threads

    def fitted(self, learner: Any) -> Any:
        """The model of one of the learner's ``needs()``."""
        key = self.spec.needs.get(canonical(encode(learner)))
        if key is None:
            raise KeyError(f"{learner} is not among needs() of {self.spec.learner_name}")
        return load_model(state_path(self.spec.states, key))

    def shared(self, name: str, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Arrays of the training data, kept beside it until the code around ``build`` changes.

        Where somebody else's prepared data may be read and not written they are not kept.
        """
        code = import_key(getattr(build, "__module__", ""))
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
        folder = Path(self.spec.data) / "shared"
        path = folder / f"{safe}-{code[:16]}"
        place = folder if folder.is_dir() else folder.parent
        if not code or (not path.is_dir() and not os.access(place, os.W_OK)):
            return build()
        return shared_arrays(path, build)

    def progress(self, done: int, total: int) -> None:
        """Say how far the fit is."""
        self.report(done, total)
