"""Cost files: the cost of each feature, and the features that share a measurement.

Forms, distinguished by their content (``docs/guide/cost-files.md`` has examples):

- a table, with lines ``name,cost`` or ``name:cost`` or more columns (``price_table``), in text,
  Parquet, or a JSON list of records; or one cost per line, in the order of the features;
- JSON, a mapping of names to costs, a list with one cost per feature, or the full form::

      {"costs": {"TSH": 22.78, "TT4": 14.51, "T4U": 11.41, "FTI": 0},
       "shared": [["x", "y"]],
       "discounted": [{"members": ["TSH", "TT4"], "later": [20.68, 12.41]}],
       "derived": {"FTI": ["TT4", "T4U"]},
       "split": 0.25, "tree": 0, "unit": "dollars"}

  Key ``measured`` (the method of ``bench cost measure``) is for human readers and is ignored. Key
  ``model`` names another cost model, which has additional keys. Without ``costs`` the data set's
  prices and groups stay. The same as TOML in a file ``*.toml`` or a table ``costs`` of a suite.

Features without names are called 1..d; ``f1``..``fd`` are accepted too. Lines that begin with
``#`` and blank lines are skipped. Every feature needs exactly one cost (derived features none);
costs of other names are ignored. Columns with names may be numbered instead (from 0 or from 1) if
the list has as many numbers as columns, and no column is called so.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.frames import rows_of
from bench_core._io.text import parse_toml, read_beginning, read_text
from bench_core.arrays import FloatArray
from bench_core.costs.amounts import amounts, is_empty
from bench_core.costs.model import (
    NO_UNIT,
    ContradictionError,
    CostModel,
    DiscountGroup,
    SensorPrices,
    price_list,
)
from bench_core.costs.price_columns import (
    bound,
    members,
    of_objects,
    of_rows,
    with_requirements,
)
from bench_core.costs.price_table import (
    FeatureNames,
    PriceColumn,
    PriceList,
    Row,
    name_of,
    price_table,
    rows_of_lines,
)
from bench_core.errors import InputError, UsageError, one_line, option, shortened, unknown
from bench_core.option_fields import listed

ASSUMED_COSTS = "no cost file: every feature costs 1"
_OF_COSTS = ("costs", "shared", "discounted", "derived")
_ALONE = ("split", "tree", "unit", "measured", "model")  # also without costs
KEYS = (*_OF_COSTS, *_ALONE)
LARGEST_COST = 1e12  # a row may cost up to ``execution.contract.MOST_COST``


@dataclass(frozen=True, slots=True)
class CostFile:
    """Text of a cost file, and locations for messages.

    ``table``: parsed costs if they are not text (Parquet, Python) or a part of it (a suite).
    """

    path: Path
    text: str
    table: Any = None

    def lines(self, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield lines that are neither blank nor comments, each with its location. A line that
        begins with one of the data's names is no comment."""
        marked = tuple(name for name in names if name.startswith("#"))
        for number, line in enumerate(re.split(r"\r\n?|\n", self.text), start=1):
            text = line.strip()
            if text and (not text.startswith("#") or text.startswith(marked)):
                yield f"{self.path}, line {number}", line

    def near(self, name: str) -> str:
        """Location of a key or text in JSON or TOML."""
        found = re.search(rf"{re.escape(json.dumps(name))}|\b{re.escape(name)}\s*=", self.text)
        if found is None:
            return str(self.path)
        line = self.text.count("\n", 0, found.start()) + 1
        return f"{self.path}, line {line}"

    def fault(self, name: str, what: str) -> InputError:
        """Error at a key or text."""
        return InputError(f"{self.near(name)}: {what}")


@dataclass(slots=True)
class Unused:
    """Content of a cost file that the data do not use."""

    features: list[str] = field(default_factory=list)  # priced names
    columns: list[str] = field(default_factory=list)  # titles in a table
    notes: list[str] = field(default_factory=list)  # on groups


def cost_text(path: str | Path, encoding: str | None = None) -> CostFile:
    """Read a cost file: Parquet, or text in ``encoding`` if it is not UTF-8."""
    path = Path(path)
    if read_beginning(path, 4) != b"PAR1":
        return CostFile(path, read_text(path, encoding))
    import pandas as pd

    try:
        return CostFile(path, "", {"costs": rows_of(pd.read_parquet(path))})
    except (ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"{path}: not a Parquet file ({one_line(str(error))})") from error


def read_costs(
    path: str | Path, feature_names: Sequence[str] = (), features: int | None = None
) -> SensorPrices:
    """Return the sensor prices in a cost file.

    ``feature_names`` (d,) are in column order; if empty, ``features`` is their number. Raises
    InputError with file, line and feature for invalid entries (negative, missing, surplus,
    repeated, infinite or not numbers), and for groups that contradict the costs.
    """
    names = tuple(feature_names) or tuple(str(j) for j in range(1, (features or 0) + 1))
    if not names:
        raise ValueError("read_costs needs the features' names or their number")
    costs = cost_model(cost_text(path), names, None, {SensorPrices.name: SensorPrices})
    assert isinstance(costs, SensorPrices)
    return costs


def cost_model(
    file: CostFile,
    names: Sequence[str],
    prices: SensorPrices | None,
    models: Mapping[str, type[CostModel]],
    origins: Sequence[str] = (),
    unused: Unused | None = None,
    price_columns: Sequence[str] = (),
    groups: Sequence[str] = (),
    unit: str = "",
) -> CostModel:
    """Return the cost model in a file, for features of these names, or for features made of the
    columns ``origins``, which the file then names.

    ``prices`` are the prices used if the file has none. ``models`` are the known models by name.
    ``unused`` gets the file's names and columns that the data do not use. ``price_columns`` are the
    data's columns of prices by row. ``groups`` (as in ``in_groups``) and ``unit`` complete costs
    without their own. Raises InputError as ``read_costs``, also for an unknown model and for
    invalid options.
    """
    columns = _Columns(file, tuple(dict.fromkeys(origins)) or names, unused or Unused())
    made_of = [columns.number[name] for name in origins]  # column of each feature
    document = _document(file)
    document = document if _full(document, columns) else {"costs": document}
    name = document.get("model", SensorPrices.name)
    if not isinstance(name, str) or name not in models:
        raise file.fault("model", unknown("cost model", str(name), models))
    model = models[name]
    keys = [*(KEYS if "costs" in document else ("costs", *_ALONE)), *model.options]
    for key in document:
        if key not in keys:
            owner = next((name for name, other in models.items() if key in other.options), "")
            without = f' without model = "{owner}"' if owner else ""
            raise file.fault(key, f"unknown key {key!r}{without}; known: {', '.join(keys)}")
    evaluations = [key for key in ("split", "tree") if key in document]
    changed: dict[str, Any] = {k: _cost(file, k, document[k]) for k in evaluations}
    if "unit" in document:
        changed["unit"] = document["unit"]
        if not isinstance(changed["unit"], str):
            raise file.fault("unit", f"unit is {changed['unit']!r}; give it as text")
    by_row: dict[int, PriceColumn] = {}
    if "costs" in document:
        prices, by_row = _prices(file, document, columns, price_columns, groups)
        prices = replace(prices, **changed)
        if unit and prices.unit == NO_UNIT:
            prices = replace(prices, unit=unit)
        prices = prices.of_columns(made_of) if made_of else prices
    elif prices is None:
        raise InputError(
            f"{file.path}: key 'costs' is missing, and the data have another cost model, "
            "not prices to build on; add the key"
        )
    else:
        prices = replace(prices, **changed)

    def feature(name: str) -> int:
        """First feature made of a column."""
        return made_of.index(columns.of(name)) if made_of else columns.of(name)

    options = {key: document[key] for key in model.options if key in document}
    try:
        costs = model.from_options(prices, options, feature)
    except ValueError as error:
        raise file.fault(next(iter(options), "model"), str(error)) from error
    return bound(costs, by_row, price_columns, file.fault) if by_row else costs


def price_columns_of(source: Any, encoding: str | None = None) -> tuple[PriceColumn, ...]:
    """Return the sensors that have prices by row in a cost file or its content; () for a cost
    model and for the name of one."""
    if isinstance(source, str | Path) and Path(source).is_file():
        source = cost_text(source, encoding)
    if not isinstance(source, CostFile):
        return ()
    document = _document(source)
    costs = document.get("costs", document) if isinstance(document, Mapping) else document
    if isinstance(costs, Mapping):
        return (*of_objects(costs, source.fault)[1],)
    columns = FeatureNames(())
    return (*of_rows(_rows(source, costs, columns), columns)[1],)


def _full(document: Any, columns: "_Columns") -> bool:
    """True for the full form, False for costs alone."""
    if not isinstance(document, Mapping):
        return False
    if isinstance(document.get("costs"), Mapping | list) or names_a_model(document):
        return True
    return bool(document) and all(key in _ALONE and columns.find(key) is None for key in document)


def names_a_model(document: Mapping[str, Any]) -> bool:
    """True if ``model`` names a cost model, and is not the price of a feature with that name."""
    model = document.get("model")
    return isinstance(model, str) and math.isnan(number(model))


def _document(file: CostFile) -> Any:
    """Parsed JSON or TOML, or None for other files."""
    if file.table is not None:
        return file.table
    suffix = file.path.suffix.lower()
    if suffix == ".toml":
        return parse_toml(file.path, file.text)
    if suffix != ".json" and file.text.lstrip()[:1] not in ("{", "["):
        return None

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        for key, times in Counter(key for key, _ in pairs).items():
            if times > 1:
                raise _repeated(file.near(key), key)
        return dict(pairs)

    try:
        return json.loads(file.text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        place = f"{file.path}, line {error.lineno}"
        raise InputError(f"{place}: not JSON ({error.msg}); correct it") from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"{file.path}: not costs ({error}); correct it") from error


def _repeated(place: str, name: str) -> InputError:
    return InputError(f"{place}: feature {name!r} has a second cost; keep one line")


def _price_list(
    file: CostFile, costs: Any, columns: FeatureNames, others: bool
) -> tuple[PriceList, list[PriceColumn]]:
    """Costs as written in a file (``costs`` is None), or in its parsed JSON or ``costs``, and the
    sensors with prices by row of a table. ``others``: there are other prices."""
    sensors: list[PriceColumn] = []
    if isinstance(costs, Mapping) and not _is_table(costs):
        places = [file.near(key) if isinstance(v, str) else "" for key, v in costs.items()]
        values, unit = amounts([*zip(places, costs.values(), strict=True)])
        prices = PriceList([*zip(places, map(name_of, costs), values, strict=True)], unit)
    else:
        rows, sensors = of_rows(_rows(file, costs, columns), columns)
        prices = price_table(rows, columns)
    if not prices.entries and not sensors and not others:
        raise InputError(
            f"{file.path}: no costs in this file; write one line name,cost per feature"
        )
    return prices, sensors


def _is_table(costs: Mapping[str, Any]) -> bool:
    return len(costs) > 1 and _all(list, costs.values())


def _rows(file: CostFile, costs: Any, columns: FeatureNames) -> Sequence[Row]:
    """Rows of a price list in a file (``costs`` is None), or in its parsed JSON."""
    first = 1
    if isinstance(costs, Mapping):
        if len({*map(len, costs.values())}) > 1:
            raise InputError(f"{file.path}: {' and '.join(costs)} differ in length; complete them")
        costs = [[*costs], *map(list, zip(*costs.values(), strict=True))]
    elif isinstance(costs, list) and _all(Mapping, costs):  # records
        titles, first = [*dict.fromkeys(title for record in costs for title in record)], 0
        costs = [titles, *([record.get(title) for title in titles] for record in costs)]
    if costs is None:
        return rows_of_lines([*file.lines(columns.names)], columns)
    if not isinstance(costs, list):
        raise InputError(f"{file.path}: expected a mapping or a list of costs; see --help")
    places = [f"{file.path}, entry {k}" for k, _ in enumerate(costs, start=first)]
    cells = costs if _all(list, costs) else [[cost] for cost in costs]
    width = max(map(len, cells), default=0)
    padded = [[*row, *[None] * (width - len(row))] for row in cells]
    return [*zip(places, padded, strict=True)]


def _all(kind: type, values: Iterable[Any]) -> bool:
    return all(isinstance(value, kind) for value in values)


def number(value: Any) -> float:
    """Convert a value to a number, NaN if it is not numeric."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        return math.nan


def _cost(file: CostFile, name: str, value: Any, place: str = "") -> float:
    """Check a cost: a number from 0 to ``LARGEST_COST``."""
    cost, dotted, fault = number(value), name, ""
    while isinstance(value, Mapping) and value and file.path.suffix.lower() == ".toml":
        key, value = next(iter(value.items()))
        dotted = f"{dotted}.{key}"
    if dotted != name:
        dot = f'if its name has a dot, quote it: "{dotted}" = {value}'
        fault = f"has a table instead of a cost; {dot}"
    elif is_empty(value):
        fault = "has no price; write one"
    elif not 0 <= cost <= LARGEST_COST:
        fault = f"costs {value!r:.60}, not a number from 0 to {LARGEST_COST:g}; correct it"
    if fault:
        raise InputError(f"{place or file.near(name)}: feature {name!r} {fault}")
    return cost


class _Columns(FeatureNames):
    """Columns of the data by the names in a file, with errors that name the place."""

    def __init__(self, file: CostFile, names: Sequence[str], unused: Unused) -> None:
        super().__init__(names)
        self.file, self.unused = file, unused
        self.others: set[str] = set()  # priced in the file, but not in the data

    def of(self, name: str, place: str = "") -> int:
        """Column of a name. Raises InputError for an unknown one."""
        if (column := self.find(name)) is not None:
            return column
        why = f"correct or remove it; known: {shortened(self.names)}"
        line = unknown("feature", name, self.names, why)
        raise InputError(f"{place or self.file.near(name)}: {line}")

    def members(self, key: str, group: Any) -> tuple[int, ...]:
        if not isinstance(group, list) or not group:
            raise self.file.fault(key, f"{key} holds {group!r}; give a list of features")
        return tuple(self.of(str(name)) for name in group if str(name) not in self.others)

    def arrange(
        self, listing: PriceList, optional: Iterable[int] = ()
    ) -> tuple[FloatArray, list[list[int]]]:
        """Return costs in column order, and the groups' columns. ``optional`` columns may have no
        cost (then 0). Names of other features are skipped, as price lists may cover more than the
        data. A feature without a cost, such as after a misspelt name, is an error."""
        cost = np.full(len(self.names), np.nan)  # NaN: not given yet
        skipped: dict[str, str] = {}  # locations of names that are not features
        column: list[int | None] = []  # of each entry
        for position, (place, name, value) in enumerate(listing.entries, start=1):
            j = position - 1 if name is None else self.find(name)
            column.append(j)
            if name is not None and j is None:
                if isinstance(value, Mapping):
                    if any(self.find(str(key)) is not None for key in value):
                        what = f"unknown key {name!r} holds costs of features; call it costs"
                        raise self.file.fault(name, what)
                    _cost(self.file, name, value, place)
                skipped[name] = place
                continue
            assert j is not None
            called = name or str(position)
            price = _cost(self.file, called, value, place)
            if j >= len(self.names):
                raise InputError(
                    f"{place}: a cost number {position} for {len(self.names)} columns; "
                    "remove the surplus"
                )
            if not math.isnan(cost[j]):
                raise _repeated(place or self.file.near(called), called)
            cost[j] = price
        self._refuse_numbers(skipped)
        cost[[j for j in optional if math.isnan(cost[j])]] = 0
        missing = np.flatnonzero(np.isnan(cost))
        if len(missing):
            for name in get_close_matches(self.names[missing[0]], skipped, n=1):
                self.of(name, skipped[name])
            more = f" and {len(missing) - 1} more have" if len(missing) > 1 else " has"
            base = f", or leave out {option('index_base')}: the first may be 1"
            unused = f"; not used: {', '.join(map(repr, [*skipped][:3]))}" if skipped else ""
            zero = base if missing.tolist() == [0] and self.names[0] == "0" else ""
            raise InputError(
                f"{self.file.path}: feature {self.names[missing[0]]!r}{more} no cost "
                f"({len(listing.entries) - len(skipped)} costs for {len(self.names)} columns); "
                f"add a line for each{zero}{unused}"
            )
        self.unused.features += skipped
        return cost, [
            [j for k in group if (j := column[k]) is not None] for group in listing.groups
        ]

    def _refuse_numbers(self, skipped: Mapping[str, str]) -> None:
        """Raise InputError for numbers from 0 of columns that are counted from 1."""
        if "0" in skipped and self.by_number and 0 not in self.by_number:
            raise InputError(
                f"{skipped['0'] or self.file.near('0')}: features are counted from 0 here, but "
                f"from 1 in the data ({', '.join(self.names[:3])}, ...); write those names"
            )


def _prices(
    file: CostFile,
    document: Mapping[str, Any],
    columns: _Columns,
    price_columns: Sequence[str],
    usual_groups: Sequence[str],
) -> tuple[SensorPrices, dict[int, PriceColumn]]:
    """Return the prices of columns, in the ``usual_groups`` unless the file has some, and the
    sensors with prices by row, by number; their price is 0 here."""
    costs, sensors = of_objects(document["costs"], file.fault)
    listing, more = _price_list(file, costs, columns, bool(sensors))
    sensors += more
    columns.unused.columns += listing.unused
    names = [name for _, name, _ in listing.entries if name is not None]
    columns.count_from(names)
    columns.others = {name for name in names if columns.find(name) is None}
    parents_of = document.get("derived", {})
    if not isinstance(parents_of, Mapping):
        raise file.fault("derived", "derived maps a feature to its parents, in { }")
    derived = {
        columns.of(name): columns.members("derived", group) for name, group in parents_of.items()
    }
    groups_by_row = members(sensors, columns, price_columns, file.fault)
    for names_by_row in groups_by_row:
        where = len(listing.entries)
        listing.groups.append([*range(where, where + len(names_by_row))])
        listing.entries.extend((file.near(name), name, 0.0) for name in names_by_row)
    named = any(document.get(key) for key in ("shared", "discounted"))
    has_groups = derived or named or any(len(group) > 1 for group in listing.groups)
    grouped = [] if has_groups else groups_of(usual_groups, columns.names)
    stated = {j for group, price in grouped if price is not None for j in group}
    cost, shared = columns.arrange(listing, optional={*derived, *stated})
    groups = {key: document.get(key, []) for key in ("shared", "discounted")}
    for key, value in groups.items():
        if not isinstance(value, list):
            raise file.fault(key, f"{key} must be a list of groups; put it in [ ]")
    listed_groups = (columns.members("shared", group) for group in groups["shared"])
    rules_of = (_discount(file, rule, columns) for rule in groups["discounted"])
    rules: dict[str, Any] = {
        "shared": [*filter(None, shared), *filter(None, listed_groups)],
        "discounted": [rule for rule in rules_of if rule.members],
        "derived": derived,
    }
    own_groups = rules["discounted"] or derived or any(len(group) > 1 for group in rules["shared"])
    names_of, unit = columns.names, listing.unit or NO_UNIT
    if usual_groups and not own_groups:
        prices = in_groups(cost, usual_groups, names_of, unit=unit)
        if len(replaced := np.flatnonzero((prices.feature_price() != cost) & (cost > 0))):
            few = shortened([names_of[j] for j in replaced.tolist()], 3)
            columns.unused.notes.append(f"prices not used, as a group has its own price: {few}")
    else:
        if usual_groups:
            columns.unused.notes.append(other_groups(usual_groups))
        try:
            prices = price_list(cost, **rules, unit=unit, names=names_of)
        except ContradictionError as error:
            raise file.fault(names_of[error.feature], str(error)) from error
    by_row = dict[int, PriceColumn]()
    for priced, features in zip(sensors, groups_by_row, strict=True):
        needed = {s for name in features for s in prices.sensors_of(columns.of(name)).tolist()}
        sensor = min(needed)
        if len(needed) > 1 or np.count_nonzero(prices.needed == sensor) > len(features):
            what = f"sensor {priced.sensor!r}: its features are in another group too; keep one"
            raise file.fault(priced.sensor, what)
        by_row[sensor] = priced
    return with_requirements(prices, by_row, columns, file.fault), by_row


def _discount(file: CostFile, rule: Any, columns: _Columns) -> DiscountGroup:
    """Parse a group such as {"members": ["TSH", "TT4"], "later": [20.68, 12.41]}."""
    if not isinstance(rule, Mapping) or set(rule) != {"members", "later"}:
        raise file.fault("discounted", "a discounted group has exactly the keys members and later")
    names, later = rule["members"], rule["later"]
    if not isinstance(later, list) or not isinstance(names, list) or len(later) != len(names):
        n = len(names) if isinstance(names, list) else 0
        raise file.fault("later", f"give one later price for each of the {n} members")
    members = columns.members("discounted", names)
    later = [v for name, v in zip(names, later, strict=True) if str(name) not in columns.others]
    place = file.near("later")
    prices = [_cost(file, columns.names[j], v, place) for j, v in zip(members, later, strict=True)]
    return DiscountGroup(members, tuple(prices))


def other_groups(groups: Sequence[str]) -> str:
    """Return the note that costs have groups of their own instead of ``groups``."""
    return f"the costs have their own groups; not used: {shortened(groups, 3)}"


def in_groups(
    cost: FloatArray, groups: Sequence[str], columns: Sequence[str], **others: Any
) -> SensorPrices:
    """Return the prices of columns with these costs (d,), where the columns of a group,
    ``a,b,c:5`` or ``hist_*:5``, share one sensor. A group without a cost costs as much as each of
    its columns. ``others`` are as in ``price_list``. Raises UsageError for invalid groups."""
    cost, shared = cost.copy(), []
    for group, price in groups_of(groups, columns):
        if price is not None:
            cost[group] = price
        shared.append(group)
    try:
        return price_list(cost, shared=shared, names=columns, **others)
    except ContradictionError as error:
        raise UsageError(f"{option('groups')}: {error}") from error


def groups_of(
    groups: Sequence[str], columns: Sequence[str]
) -> list[tuple[list[int], float | None]]:
    """Return the columns of each group as in ``in_groups``, and its price, None without one. Raises
    UsageError for invalid groups."""
    grouped: list[tuple[list[int], float | None]] = []
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
        amount = number(price) if colon else None
        if amount is not None and not 0 <= amount < math.inf:
            raise UsageError(
                f"{option('groups', group)}: {price!r} is not a cost; write COLUMN,COLUMN:COST"
            )
        grouped.append((members, amount))
    return grouped
