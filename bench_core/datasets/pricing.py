"""A data set under given costs or groups of sensors, and the JSON form of its cost model."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from bench_core.costs.by_row import ByRow
from bench_core.costs.cost_file import CostFile, Unused, cost_model, cost_text, number
from bench_core.costs.model import (
    NO_UNIT,
    ContradictionError,
    CostModel,
    SensorPrices,
    needs_of,
    price_list,
)
from bench_core.costs.shipped import MODELS
from bench_core.encoding import ColumnEncoding, plain_encodings
from bench_core.errors import InputError, UsageError, charging, option, unknown
from bench_core.option_fields import listed
from bench_core.splits import UNUSED, Note, Splits

Models = Mapping[str, type[CostModel]]
# A cost file, the name of a cost model, the content of a file, or a cost model.
CostSource = str | Path | CostFile | CostModel
Complete = Callable[[SensorPrices], SensorPrices]


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

    ``groups`` (as in ``under_groups``) and ``unit`` complete files without their own. Notes name
    groups that are not used, and columns whose prices are not used, as their group has one.
    ``others`` are further columns of the user's table, whose prices need no note.
    """
    unused, notes = Unused(), list[str | Note]()
    own_groups = f"the costs have their own groups; not used: {_few(groups)}"
    if groups and isinstance(source, CostModel):
        notes.append(own_groups)
    if isinstance(source, str | Path) and Path(source).is_file():
        source = cost_text(source, encoding)
    columns = [*dict.fromkeys(splits.columns)]

    def complete(prices: SensorPrices) -> SensorPrices:
        prices = replace(prices, unit=unit) if unit and prices.unit == NO_UNIT else prices
        alone = prices.sensors == len({*prices.needed}) == len(prices.needed)
        if not alone or not np.all(np.diff(prices.start) == 1):  # it has groups
            notes.extend([own_groups] if groups else [])
            return prices
        group_prices = _grouped(prices, groups, columns)
        replaced = np.flatnonzero(group_prices.feature_price() != prices.feature_price())
        if len(replaced):
            names = _few([columns[j] for j in replaced])
            notes.append(f"prices not used, as a group has its own price: {names}")
        return group_prices

    models = MODELS if models is None else models
    splits = splits.under(_costs_for(splits, source, models, unused, complete))
    if names := [name for name in unused.features if name not in others]:
        notes.append(Note(UNUSED, _unused(names, splits.columns)))
    if titles := unused.columns:
        shared = "a column 'group' names the measurement or service of each feature"
        notes.append(f"columns of the price file that are not used: {_few(titles)}; {shared}")
    return replace(splits, notes=(*dict.fromkeys((*splits.notes, *notes)),)) if notes else splits


def _unused(spare: Sequence[str], columns: Sequence[str]) -> str:
    near = get_close_matches(spare[0], columns, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"not in the data, price not used: {_few(spare)}{hint}"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _costs_for(
    splits: Splits, source: CostSource, models: Models, unused: Unused, complete: Complete
) -> CostModel:
    """Return the cost model of a data set from a cost file or a model's name. ``unused`` gets what
    the data do not use of a file; ``complete`` changes the prices of columns in a file.

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
            file, splits.names, default, models, splits.origins, unused, complete,
            splits.price_columns,
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
    """Return the same data, where the columns of a group, ``a,b,c:5`` or ``hist_*:5``, share one
    sensor. A group without a cost costs as much as each of its columns.

    Other columns keep their prices, one for each column. Raises UsageError for invalid groups.
    """
    if not groups:
        return splits
    columns = [*dict.fromkeys(splits.columns)]
    number = [columns.index(name) for name in splits.columns]
    prices = splits.prices.of_columns([number.index(j) for j in range(len(columns))])
    return splits.under(_grouped(prices, groups, columns).of_columns(number))


def _grouped(base: SensorPrices, groups: Sequence[str], columns: Sequence[str]) -> SensorPrices:
    """Return prices of columns in groups, as ``under_groups``."""
    if not groups:
        return base
    cost, shared = base.feature_price(), []
    for group in groups:
        words, colon, price = group.rpartition(":")  # "age,hist_*:5"
        if not colon or all(word in columns for word in listed(group, columns.__contains__)):
            words, colon = group, ""
        members: list[int] = []
        for word in listed(words, columns.__contains__):
            pattern = re.compile(".*".join(map(re.escape, word.split("*"))), re.DOTALL)
            fits = [j for j, name in enumerate(columns) if pattern.fullmatch(name)]
            fits = [columns.index(word)] if word in columns else fits
            if not fits:
                raise UsageError(f"{option('groups', group)}: {unknown('column', word, columns)}")
            members += fits
        if colon:
            amount = number(price)
            if not 0 <= amount < math.inf:
                raise UsageError(
                    f"{option('groups', group)}: {price!r} is not a cost; write COLUMN,COLUMN:COST"
                )
            cost[members] = amount
        shared.append(members)
    try:
        return price_list(
            cost, shared=shared, split=base.split, tree=base.tree, unit=base.unit, names=columns
        )
    except ContradictionError as error:
        raise UsageError(f"{option('groups')}: {error}") from error


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
