"""Sensors whose price differs by row, as cost files describe them.

In JSON and TOML a sensor is an object among the costs::

    {"costs": {"gpt4o": {"column": "gpt4o_price", "features": ["gpt4o_*"],
                         "when": "metered", "requires": ["draft"]},
               "chars": 0}}

In a price list a column titled ``price column`` names the data's column, and ``group``, ``when``
and ``requires`` say the rest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench_core.costs.by_row import ByRow
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.price_table import FeatureNames, PriceColumn, Row, name_of
from bench_core.costs.shipped import PerQueryPrices
from bench_core.errors import InputError, unknown

WHEN = ("quoted", "metered")
KEYS = ("column", "features", "when", "requires")
TITLE = "price column"

Fault = Callable[[str, str], InputError]
"""Error at a name in the file."""


def _sensor(
    fault: Fault, sensor: str, column: str, features: Any, when: Any, requires: Any
) -> PriceColumn:
    lists = []
    for key, texts in (("features", features), ("requires", requires)):
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise fault(sensor, f"sensor {sensor!r}: {key} is {texts!r:.60}; list names in [ ]")
        lists.append(tuple(texts))
    if when not in WHEN:
        what = f"when is {when!r:.40}; give quoted (known before the purchase) or metered"
        raise fault(sensor, f"sensor {sensor!r}: {what}")
    return PriceColumn(sensor, column, lists[0] or (sensor,), when == "quoted", lists[1])


def of_objects(costs: Any, fault: Fault) -> tuple[Any, list[PriceColumn]]:
    """Return costs without the sensors that have prices by row, and these."""
    if not isinstance(costs, Mapping):
        return costs, []
    sensors, others = [], {}
    for key, value in costs.items():
        if not isinstance(value, Mapping) or not isinstance(value.get("column"), str):
            others[key] = value
            if isinstance(value, Mapping) and {*value} & {*KEYS[1:]}:
                what = "key 'column' is missing; name the data's column of its prices"
                raise fault(str(key), f"sensor {key!r}: {what}")
            continue
        for name in value:
            if name not in KEYS:
                raise fault(str(key), f"sensor {key!r}: {unknown('key', str(name), KEYS)}")
        rest = value.get("features", []), value.get("when", "metered"), value.get("requires", [])
        sensors.append(_sensor(fault, str(key), value["column"], *rest))
    return others, sensors


def of_rows(rows: Sequence[Row], features: FeatureNames) -> tuple[Sequence[Row], list[PriceColumn]]:
    """Return a price list's rows without the features that have prices by row, and their
    sensors."""
    titles = [name_of(cell).lower().replace("_", " ") for cell in (rows[0][1] if rows else [])]
    if TITLE not in titles:
        return rows, []
    at = titles.index(TITLE)
    place = {title: k for k, title in enumerate(titles)}
    named = [k for k, title in enumerate(titles) if title in ("feature", "features", "name")]
    names = named[0] if named else 0
    others, members = [(rows[0][0], _without(rows[0][1], at))], dict[str, list[list[Any]]]()
    places: dict[str, str] = {}

    def cell(cells: Sequence[Any], title: str) -> str:
        return name_of(cells[place[title]]) if title in place else ""

    for where, cells in rows[1:]:
        if column := name_of(cells[at]):
            sensor = cell(cells, "group") or column
            members.setdefault(sensor, []).append(cells)
            places.setdefault(sensor, where)
        else:
            others.append((where, _without(cells, at)))

    sensors = []
    for sensor, lines in members.items():

        def fault(name: str, what: str, where: str = places[sensor]) -> InputError:
            return InputError(f"{where}: {what}")

        columns = sorted({name_of(cells[at]) for cells in lines})
        if len(columns) > 1:
            raise fault(
                sensor, f"sensor {sensor!r} has prices in {' and '.join(columns)}; keep one"
            )
        when = sorted({cell(cells, "when") for cells in lines} - {""}) or ["metered"]
        if len(when) > 1:
            raise fault(sensor, f"sensor {sensor!r} is {' and '.join(when)}; choose one")
        required = [text.strip() for cells in lines for text in cell(cells, "requires").split(";")]
        of = [name_of(cells[names]) for cells in lines]
        required = [*dict.fromkeys(filter(None, required))]
        sensors.append(_sensor(fault, sensor, columns[0], of, when[0], required))
    return others, sensors


def _without(cells: Sequence[Any], at: int) -> list[Any]:
    return [*cells[:at], *cells[at + 1 :]]


def members(
    sensors: Sequence[PriceColumn],
    columns: FeatureNames,
    price_columns: Sequence[str],
    fault: Fault,
) -> list[list[str]]:
    """Return the columns of the data that each sensor yields. Raises InputError for prices that the
    data do not have, for a name that no column has, and for a column of two sensors."""
    of_sensor: list[list[str]] = []
    owner: dict[str, str] = {}
    few = [*columns.names[:2]]
    for priced in sensors:
        if priced.column not in price_columns:
            what = "read the data with this file, which tells prices from features"
            what = f"the data have no column of prices {priced.column!r}; {what}"
            raise fault(priced.sensor, f"sensor {priced.sensor!r}: {what}")
        for text in priced.features:
            if "*" not in text and columns.find(text) is None:
                what = _unknown(text, columns)
                if priced.features == (priced.sensor,):
                    what = f"it yields no column; list its columns as features, such as {few!r}"
                if text in price_columns:
                    what = f"{text!r} holds prices, which are no feature; leave it out"
                raise fault(priced.sensor, f"sensor {priced.sensor!r}: {what}")
        names = priced.among(columns.names)
        if not names:
            what = f"no column is called {' or '.join(priced.features)}; correct its features"
            raise fault(priced.sensor, f"sensor {priced.sensor!r}: {what}")
        for name in names:
            if (other := owner.setdefault(name, priced.sensor)) != priced.sensor:
                what = f"feature {name!r} is in the lists of {other!r} and {priced.sensor!r}"
                raise fault(priced.sensor, f"{what}; keep one")
        of_sensor.append(names)
    return of_sensor


def _unknown(name: str, columns: FeatureNames) -> str:
    return unknown("feature", name, columns.names)


def with_requirements(
    prices: SensorPrices,
    sensors: Mapping[int, PriceColumn],
    columns: FeatureNames,
    fault: Fault,
) -> SensorPrices:
    """Return prices in which a feature also needs the sensors that its own sensor requires.

    ``sensors``: by their number in ``prices``. Raises InputError for unknown names and circles.
    """
    number = {priced.sensor: s for s, priced in sensors.items()}
    required: dict[int, set[int]] = {}
    for s, priced in sensors.items():
        required[s] = set()
        for name in priced.requires:
            if name in number:
                required[s].add(number[name])
            elif (feature := columns.find(name)) is not None:
                required[s] |= {*prices.sensors_of(feature).tolist()}
            else:
                what = unknown("sensor", name, [*number, *columns.names])
                raise fault(priced.sensor, f"sensor {priced.sensor!r} requires one: {what}")
    if not any(required.values()):
        return prices

    def whole(s: int, way: tuple[int, ...] = ()) -> set[int]:
        if s in way:
            circle = " requires ".join(repr(sensors[k].sensor) for k in (*way[way.index(s) :], s))
            raise fault(sensors[s].sensor, f"{circle}: remove one of these")
        return {s}.union(*(whole(other, (*way, s)) for other in required.get(s, ())))

    closed = {s: whole(s) for s in required}
    needs = [
        sorted(set().union(*(closed.get(s, {s}) for s in prices.sensors_of(j).tolist())))
        for j in range(prices.features)
    ]
    return replace(
        prices,
        start=np.cumsum([0, *map(len, needs)]).astype(np.int32),
        needed=np.array([s for sensors in needs for s in sensors], dtype=np.int32),
    )


def bound(
    costs: CostModel,
    sensors: Mapping[int, PriceColumn],
    price_columns: Sequence[str],
    fault: Fault,
) -> ByRow:
    """Return a cost model in which these sensors have the prices of the data's columns."""
    if not isinstance(costs, SensorPrices):
        raise fault("model", f"cost model {costs.name!r} cannot have prices by row; leave it out")
    for s, priced in sensors.items():
        if isinstance(costs, PerQueryPrices) and costs.per_query[s]:
            what = "is paid per query and has prices by row; choose one"
            raise fault(priced.sensor, f"sensor {priced.sensor!r} {what}")
    order = sorted(sensors)
    return ByRow(
        costs,
        np.array(order, dtype=np.int64),
        np.array([price_columns.index(sensors[s].column) for s in order], dtype=np.int64),
        np.array([sensors[s].quoted for s in order], dtype=bool),
    )
