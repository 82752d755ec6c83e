"""A data set under given costs, and the JSON form of its cost model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.class_names import find_class, remember_class
from bench_core.costs.cost_file import CostFile, cost_model, cost_text
from bench_core.costs.model import CostModel, SensorPrices, needs_of
from bench_core.costs.shipped import MODELS
from bench_core.errors import InputError, charging
from bench_core.splits import Splits

Models = Mapping[str, type[CostModel]]


Given = str | Path | CostFile | CostModel
"""A cost file, the name of a cost model, what a file holds, or the cost model itself."""


def with_costs(splits: Splits, given: Given, models: Models | None = None) -> Splits:
    """The same data under the costs of a file (or of a cost model named in its place)."""
    return splits.under(costs_for(splits, given, MODELS if models is None else models))


def costs_for(splits: Splits, given: Given, models: Models) -> CostModel:
    """The cost model that a file, or the name of a model, means for a data set.

    Raises InputError in one line with the place and the remedy.
    """
    if isinstance(given, str) and not Path(given).exists() and given in models:
        given = CostFile(Path(given), "", {"model": given})
    costs, place = _costs(splits, given, models)
    if costs.features != len(splits.names):
        raise InputError(f"{place}: prices of {costs.features} features for {len(splits.names)}")
    with charging(f"{place}: the surrogate of cost model {costs.name!r}"):
        prices = costs.surrogate(splits.train)
    if not isinstance(prices, SensorPrices):
        raise InputError(
            f"{place}: the surrogate of cost model {costs.name!r} is {prices!r:.40}, not "
            "SensorPrices; correct it"
        )
    if not (costs.everything or prices.split or prices.tree):
        raise InputError(f"{place}: every cost is 0; give at least one feature a cost above 0")
    if not same_sensors(costs, prices):
        raise InputError(
            f"{place}: cost model {costs.name!r} lets learners train on other sensors than it "
            "bills; correct its surrogate"
        )
    return costs


def _costs(splits: Splits, given: Given, models: Models) -> tuple[CostModel, str]:
    """A cost model, and what messages call the place that it comes from."""
    if isinstance(given, CostModel):
        return given, "costs"
    file = given if isinstance(given, CostFile) else cost_text(given)
    own = splits.prices if splits.cost_model is None else None
    return cost_model(file, splits.names, own, models, splits.origins), str(file.path)


def same_sensors(one: CostModel, two: CostModel) -> bool:
    """Whether two models' features need the same sensors."""
    pairs = zip(needs_of(one), needs_of(two), strict=True)
    return one.sensors == two.sensors and all(np.array_equal(a, b) for a, b in pairs)


def to_json(costs: CostModel) -> dict[str, Any]:
    """A cost model as a JSON document; numbers survive exactly."""
    state = {
        name: {"array": value.tolist(), "dtype": value.dtype.str}
        if isinstance(value, np.ndarray)
        else value
        for name, value in costs.state().items()
    }
    return {"class": remember_class(type(costs)), "state": state}


def from_json(document: Mapping[str, Any]) -> CostModel:
    """The inverse of ``to_json``."""
    state = {
        name: np.array(value["array"], dtype=value["dtype"])
        if isinstance(value, Mapping) and set(value) == {"array", "dtype"}
        else value
        for name, value in document["state"].items()
    }
    model: Any = find_class(document["class"])
    made: CostModel = model.from_state(state)
    return made
