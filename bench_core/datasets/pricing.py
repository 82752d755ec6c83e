"""A data set under given costs or groups of sensors, and the JSON form of its cost model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from bench_core.costs.by_row import ByRow
from bench_core.costs.cost_file import (
    CostFile,
    Unused,
    cost_model,
    cost_text,
    in_groups,
    other_groups,
)
from bench_core.costs.model import (
    CostModel,
    SensorPrices,
    needs_of,
)
from bench_core.costs.shipped import MODELS
from bench_core.encoding import ColumnEncoding, plain_encodings
from bench_core.errors import InputError, UsageError, charging, shortened
from bench_core.splits import UNUSED, Note, Splits

Models = Mapping[str, type[CostModel]]
# A cost file, the name of a cost model, the content of a file, or a cost model.
CostSource = str | Path | CostFile | CostModel


def with_costs(
    splits: Splits,
    source: CostSource,
    models: Models | None = None,
    encoding: str | None = None,
    *,
    groups: Sequence[str] = (),
    unit: str = "",
    others: Sequence[str] = (),
) -> Splits:
    """Return the same data under the costs of a file, in ``encoding`` if not in UTF-8, or of a
    named cost model. Notes name priced features that the data do not have, and columns of a price
    table that are not used.

    ``groups`` (as in ``in_groups``) and ``unit`` complete files without their own. Notes name
    groups that are not used, and columns whose prices are not used, as their group has one.
    ``others`` are further columns of the user's table, whose prices need no note.
    """
    unused, models = Unused(), MODELS if models is None else models
    if groups and isinstance(source, CostModel):
        unused.notes.append(other_groups(groups))
    if isinstance(source, str | Path) and Path(source).is_file():
        source = cost_text(source, encoding)
    splits = splits.under(_costs_for(splits, source, models, unused, groups, unit))
    notes: list[str | Note] = [*unused.notes]
    if names := [name for name in unused.features if name not in others]:
        notes.append(Note(UNUSED, _unused(names, splits.columns)))
    if titles := unused.columns:
        shared = "a column 'group' names the measurement or service of each feature"
        notes.append(
            f"columns of the price file that are not used: {shortened(titles, 3)}; {shared}"
        )
    return replace(splits, notes=(*dict.fromkeys((*splits.notes, *notes)),)) if notes else splits


def _unused(spare: Sequence[str], columns: Sequence[str]) -> str:
    near = get_close_matches(spare[0], columns, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"not in the data, price not used: {shortened(spare, 3)}{hint}"


def _costs_for(
    splits: Splits,
    source: CostSource,
    models: Models,
    unused: Unused,
    groups: Sequence[str],
    unit: str,
) -> CostModel:
    """Return the cost model of a data set from a cost file or a model's name. ``unused`` gets what
    the data do not use of a file; ``groups`` and ``unit`` complete its costs.

    Raises InputError in one line with the place and the remedy.
    """
    if isinstance(source, str) and not Path(source).exists() and source in models:
        source = CostFile(Path(source), "", {"model": source})
    if isinstance(source, CostModel):
        costs, place = source, "costs"
    else:
        file = source if isinstance(source, CostFile) else cost_text(source)
        default = splits.prices if splits.cost_model is None else None
        costs = cost_model(
            file, splits.names, default, models, splits.origins, unused, splits.price_columns,
            groups, unit,
        )  # fmt: skip
        place = str(file.path)
    if isinstance(costs, ByRow):
        costs = costs.on_average(splits.train)
    if costs.features != len(splits.names):
        raise InputError(f"{place}: prices of {costs.features} features for {len(splits.names)}")
    with charging(f"{place}: the surrogate of cost model {costs.name!r}"):
        prices = costs.surrogate(splits.train)
    # Learners train on the surrogate: its sensors must be the billed sensors.
    if not isinstance(prices, SensorPrices) or not same_sensors(costs, prices):
        raise InputError(
            f"{place}: the surrogate of cost model {costs.name!r} must be SensorPrices of the "
            f"sensors that it bills, not {prices!r:.40}; correct it"
        )
    if not (costs.everything or prices.split or prices.tree):
        names = unused.features
        lost = f" ({_unused(names, splits.columns)})" if names else ""
        raise InputError(
            f"{place}: every cost is 0{lost}; give at least one feature a cost above 0"
        )
    return costs


def same_sensors(one: CostModel, two: CostModel) -> bool:
    """True if the features of both models need the same sensors."""
    pairs = zip(needs_of(one), needs_of(two), strict=True)
    return one.sensors == two.sensors and all(np.array_equal(a, b) for a, b in pairs)


def under_groups(splits: Splits, groups: Sequence[str]) -> Splits:
    """Return the same data with its columns in groups, as ``in_groups``; others keep their
    prices."""
    if not groups:
        return splits
    columns = [*dict.fromkeys(splits.columns)]
    number = [columns.index(name) for name in splits.columns]
    base = splits.prices.of_columns([number.index(j) for j in range(len(columns))])
    others = {"split": base.split, "tree": base.tree, "unit": base.unit}
    prices = in_groups(base.feature_price(), groups, columns, **others)
    return splits.under(prices.of_columns(number))


def unit_prices(features: int, encodings: Sequence[ColumnEncoding] = ()) -> SensorPrices:
    """Return a sensor of cost 1 for each feature, or for each raw column of the features."""
    prices = SensorPrices.additive(np.ones(len(encodings) or features))
    column = [k for k, encoding in enumerate(encodings) for _ in encoding.features]
    return prices.of_columns(column) if encodings else prices


def by_transformer(splits: Splits, names: Iterable[str]) -> Splits:
    """Return the same data, where the columns ``NAME__...`` of a transformer share one sensor, for
    ``names`` that are not columns. Each sensor then costs 1.

    Raises UsageError if the columns of a transformer are not adjacent.
    """
    encodings: list[ColumnEncoding] = []
    names = [name for name in names if name not in splits.columns]
    for encoding in splits.encodings or plain_encodings(splits.names):
        owner = max((n for n in names if encoding.name.startswith(f"{n}__")), key=len, default="")
        if not owner or encoding.texts:
            encodings.append(encoding)
        elif encodings and encodings[-1].name == owner:
            encodings[-1] = replace(encodings[-1], made=(*encodings[-1].made, *encoding.features))
        else:
            encodings.append(ColumnEncoding(owner, made=encoding.features))
    if not any(encoding.made for encoding in encodings):
        return splits
    columns = [encoding.name for encoding in encodings]
    for name in names:
        if columns.count(name) > 1:
            raise UsageError(f"columns of {name!r} are not adjacent; put {name}__... side by side")
    prices = unit_prices(len(splits.names), encodings)
    return replace(splits, encodings=tuple(encodings), prices=prices)
