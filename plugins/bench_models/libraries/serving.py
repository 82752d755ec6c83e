"""From an imported model to one that is served and metered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import InputError, Prices, Task
from bench_models.boosting import chain
from bench_models.staged import StagedModel
from bench_models.tree_average import TreeAverage

if TYPE_CHECKING:
    from bench_trees.importers import Imported

LibraryModel = StagedModel | TreeAverage

_KINDS = {
    Task.RANKING: ("ranking", "regression", "binary", ""),
    Task.REGRESSION: ("regression", ""),
    Task.BINARY: ("binary", ""),
    Task.MULTICLASS: ("multiclass", ""),
}
"""Kinds of models that a task takes: any single score ranks."""


def serve(model: Imported, prices: Prices, facts: Mapping[str, Any]) -> LibraryModel:
    """An imported model under these prices: a ``StagedModel`` where its trees simply add up."""
    facts = {"peer": model.source, **facts}
    plain = model.vectors is None and not model.average and model.link == "identity"
    if plain:
        return chain(model.ensemble, prices, facts)
    return TreeAverage.of(
        model.ensemble,
        prices,
        vectors=model.vectors,
        average=model.average,
        link=model.link,
        facts=facts,
    )


def check_fits(model: Imported, task: Task, classes: int, where: str) -> None:
    """Raise InputError where a model is not one for the task."""
    outputs = classes if task is Task.MULTICLASS else 1
    if model.ensemble.trees == 0:
        raise InputError(f"{where}: the model has no trees")
    if model.kind not in _KINDS[task]:
        raise InputError(f"{where}: a {model.kind} model cannot do a {task} task")
    if model.outputs != outputs:
        has = "1 output" if model.outputs == 1 else f"{model.outputs} outputs"
        raise InputError(f"{where}: the model has {has}, the {task} task wants {outputs}")


def onto_columns(model: Imported, features: int, names: tuple[str, ...], where: str) -> Imported:
    """The model with its features renumbered to the data's columns.

    By name where both have names, so that order and unused columns do not matter; else both must
    have equally many features. Raises InputError.
    """
    ensemble = model.ensemble
    if not names or not model.names or _invented(model.names):
        if ensemble.features != features:
            raise InputError(
                f"{where}: the model has {ensemble.features} features and the data {features}; "
                "they must be the same, or both have names"
            )
        return model
    place = {_spelt(name): j for j, name in enumerate(names)}
    column = np.array([place.get(_spelt(name), -1) for name in model.names])
    used = np.unique(ensemble.feature[ensemble.feature >= 0])
    absent = [model.names[j] for j in used if column[j] < 0]
    if absent:
        more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        raise InputError(f"{where}: the model's feature {absent[0]!r}{more} is not in the data")
    feature = np.where(ensemble.feature >= 0, column[ensemble.feature], -1).astype(np.int32)
    return replace(model, ensemble=replace(ensemble, feature=feature, features=features))


def _invented(names: tuple[str, ...]) -> bool:
    """Whether a library made the names up: Column_0, f0, or bare numbers."""
    return any(
        all(name == f"{stem}{j}" for j, name in enumerate(names)) for stem in ("Column_", "f", "")
    )


def _spelt(name: str) -> str:
    return "_".join(name.split())  # LightGBM writes blanks so
