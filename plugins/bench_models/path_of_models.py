"""Several models as one path, each with its own operating points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Features, Prediction
from bench_models.staged import StagedModel
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program


@dataclass(frozen=True, eq=False)
class PathOfModels(Stored):
    """Models in sequence: its path is the points of the first, then of the second, ...

    A row pays at each point only for that point's model.
    """

    models: Sequence[StagedModel]

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """The points of all models in order."""
        for model in self.models:
            yield from model.predict_path(features)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The model that the point belongs to, for serving."""
        own = [model for model in self.models if point in [p.values for p in model.points]]
        return (own or self.models)[0].program(point)

    @property
    def independent_rows(self) -> bool:
        """True if the rows of a query are independent in all models."""
        return all(model.independent_rows for model in self.models)

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks of any of the models."""
        return tuple(sorted({mark for model in self.models for mark in model.marks}))


def growing(features: int, steps: int) -> list[int]:
    """At most ``steps`` numbers from 1 to ``features``, growing by about the same factor."""
    return [int(k) for k in np.unique(np.round(np.geomspace(1, features, steps)))]


def share_of(progress: Callable[[int, int], None], part: int, parts: int) -> Callable[..., None]:
    """Progress of one of several fits as progress of all."""
    return lambda done, total: progress(part * total + done, parts * total)
