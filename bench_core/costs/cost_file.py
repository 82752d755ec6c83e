"""Cost files: the cost of each feature, and the features that share a measurement.

Four forms, distinguished by their content (``docs/cost-files.md`` has examples):

- CSV with lines ``name,cost`` or ``index,cost``, or a table of more columns (``price_table``);
- JSON, a mapping of names to costs, a list with one cost per feature, or the full form::

      {"costs": {"TSH": 22.78, "TT4": 14.51, "T4U": 11.41, "FTI": 0},
       "shared": [["x", "y"]],
       "discounted": [{"members": ["TSH", "TT4"], "later": [20.68, 12.41]}],
       "derived": {"FTI": ["TT4", "T4U"]},
       "split": 0.25, "tree": 0, "unit": "dollars"}

  Key ``measured`` (the method of ``bench cost measure``) is for human readers and is ignored. Key
  ``model`` names another cost model, which has additional keys. Without ``costs`` the data set's
  prices and groups stay. The same as TOML in a file ``*.toml`` or a table ``costs`` of a suite;

- lines ``name:cost``;
- one cost per line, in the order of the features.

Features without names are called 1..d; ``f1``..``fd`` are accepted too. Lines that begin with
``#`` and blank lines are skipped. Every feature needs exactly one cost (derived features none);
costs of other names are ignored.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.text import parse_toml, read_text
from bench_core.arrays import FloatArray
from bench_core.costs.model import (
    NO_UNIT,
    ContradictionError,
    CostModel,
    DiscountGroup,
    SensorPrices,
    price_list,
)
from bench_core.costs.price_table import Entry, listed, unused_columns
from bench_core.errors import InputError, option, unknown

ASSUMED_COSTS = "no cost file: every feature costs 1"
_OF_COSTS = ("costs", "shared", "discounted", "derived")
_ALONE = ("split", "tree", "unit", "measured", "model")  # also without costs
KEYS = (*_OF_COSTS, *_ALONE)
FEW_NAMES = 10
LARGEST_COST = 1e100  # sums over features and rows stay finite


@dataclass(frozen=True, slots=True)
class CostFile:
    """Text of a cost file, and locations for messages.

    ``table``: parsed costs if the file holds more than costs (a suite).
    """

    path: Path
    text: str
    table: Mapping[str, Any] | None = None  # from a suite

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield lines that are neither blank nor comments, each with its location."""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                yield f"{self.path}, line {number}", line.strip()

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


def cost_text(path: str | Path, encoding: str | None = None) -> CostFile:
    """Read a cost file as text, in ``encoding`` if it is not UTF-8."""
    return CostFile(Path(path), read_text(path, encoding))


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
    spare: list[str] | None = None,
    complete: Callable[[SensorPrices], SensorPrices] = lambda prices: prices,
) -> CostModel:
    """Return the cost model in a file, for features of these names, or for features made of the
    columns ``origins``, which the file then names.

    ``prices`` are the prices used if the file has none. ``models`` are the known models by name.
    Priced names that are not features are appended to ``spare``. ``complete`` changes the prices of
    columns in the file. Raises InputError as ``read_costs``, also for an unknown model and for
    invalid options.
    """
    columns = _Columns(file, tuple(dict.fromkeys(origins)) or names, [] if spare is None else spare)
    made_of = [columns.number[name] for name in origins]  # column of each feature
    document = _document(file)

    def of_features(prices: SensorPrices) -> SensorPrices:
        prices = complete(prices)
        return prices.of_columns(made_of) if made_of else prices

    if not _full(document, columns):
        entries, unit = _entries(file, document)
        return of_features(SensorPrices.additive(columns.arrange(entries), unit=unit or NO_UNIT))
    name = document.get("model", SensorPrices.name)
    if not isinstance(name, str) or name not in models:
        line = unknown("cost model", str(name), models)
        known = f"known: {', '.join(sorted(models))}"
        raise file.fault("model", line if known in line else f"{line} {known}")
    model = models[name]
    keys = [*(KEYS if "costs" in document else ("costs", *_ALONE)), *model.options]
    for key in document:
        if key not in keys:
            owner = next((name for name, other in models.items() if key in other.options), "")
            without = f' without model = "{owner}"' if owner else ""
            raise file.fault(key, f"unknown key {key!r}{without}; known: {', '.join(keys)}")
    evaluations = [key for key in ("split", "tree") if key in document]
    changed: dict[str, Any] = {k: _cost(file.near(k), k, document[k]) for k in evaluations}
    if "unit" in document:
        changed["unit"] = document["unit"]
        if not isinstance(changed["unit"], str):
            raise file.fault("unit", f"unit is {changed['unit']!r}; give it as text")
    if "costs" in document:
        prices = of_features(replace(_prices(file, document, columns), **changed))
    elif prices is None:
        raise InputError(
            f"{file.path}: key 'costs' is missing, and the data have another cost model, "
            "not prices to build on; add the key"
        )
    else:
        prices = replace(prices, **changed)

    def feature(name: str) -> int:
        """First feature made of a column."""
        return made_of.index(columns.find(name)) if made_of else columns.find(name)

    options = {key: document[key] for key in model.options if key in document}
    try:
        return model.from_options(prices, options, feature)
    except ValueError as error:
        raise file.fault(next(iter(options), "model"), str(error)) from error


def columns_not_used(file: CostFile) -> list[str]:
    """Titles of a price table's columns that hold neither features nor prices."""
    return unused_columns([*file.lines()]) if _document(file) is None else []


def _full(document: Any, columns: "_Columns") -> bool:
    """True for the full form, False for costs alone."""
    if not isinstance(document, Mapping):
        return False
    if isinstance(document.get("costs"), Mapping | list) or isinstance(document.get("model"), str):
        return True
    return bool(document) and all(key in _ALONE and not columns.has(key) for key in document)


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


def _entries(file: CostFile, document: Any) -> tuple[list[Entry], str]:
    """Costs as written in a file or in its parsed JSON (all of it, or its ``costs``), and the unit
    if lines have one."""
    entries: list[Entry]
    unit = ""
    if isinstance(document, Mapping):
        entries = [(file.near(name), name, value) for name, value in document.items()]
    elif isinstance(document, list):
        entries = [(f"{file.path}, entry {k}", None, v) for k, v in enumerate(document, start=1)]
    elif document is None:
        entries, unit = listed([*file.lines()])
    else:
        raise InputError(f"{file.path}: expected a mapping or a list of costs; see --help")
    if not entries:
        raise InputError(
            f"{file.path}: no costs in this file; write one line name,cost per feature"
        )
    return entries, unit


def number(value: Any) -> float:
    """Convert a value to a number, NaN if it is not numeric."""
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, OverflowError):
        return math.nan


def _cost(place: str, name: str, value: Any) -> float:
    """Check a cost: a number from 0 to ``LARGEST_COST``."""
    cost, dotted = number(value), name
    while isinstance(value, Mapping) and value:
        key, value = next(iter(value.items()))
        dotted = f"{dotted}.{key}"
    if dotted != name:
        raise InputError(
            f"{place}: feature {name!r} has a table instead of a cost; if its name has a dot, "
            f'quote it: "{dotted}" = {value}'
        )
    if not 0 <= cost <= LARGEST_COST:
        raise InputError(
            f"{place}: feature {name!r} costs {value!r}, not a number from 0 to "
            f"{LARGEST_COST:g}; correct it"
        )
    return cost


def _bare(name: str) -> str:
    """``7`` for ``f7``."""
    return name[1:] if name[:1] == "f" and name[1:].isdigit() else name


class _Columns:
    """Column look-up for names in the file."""

    def __init__(self, file: CostFile, names: Sequence[str], spare: list[str]) -> None:
        self.file, self.spare = file, spare
        self.names = names
        self.number = {name: j for j, name in enumerate(names)}
        self.positions = {str(j + 1): j for j in range(len(names))}
        self.others: set[str] = set()  # priced in the file, but not in the data

    def has(self, name: str) -> bool:
        """True if the name is a feature."""
        bare = _bare(name)
        return name in self.number or bare in self.number or bare in self.positions

    def find(self, name: str, place: str = "") -> int:
        bare = _bare(name)
        for known, spelling in ((self.number, name), (self.number, bare), (self.positions, bare)):
            if spelling in known:
                return known[spelling]
        few = f"; known: {', '.join(self.names)}" if len(self.names) <= FEW_NAMES else ""
        why = f"correct or remove it{few}"
        line = unknown("feature", name, self.names, why)
        raise InputError(f"{place or self.file.near(name)}: {line}")

    def members(self, key: str, group: Any) -> tuple[int, ...]:
        if not isinstance(group, list) or not group:
            raise self.file.fault(key, f"{key} holds {group!r}; give a list of features")
        return tuple(self.find(str(name)) for name in group if str(name) not in self.others)

    def arrange(self, entries: Sequence[Entry], optional: Iterable[int] = ()) -> FloatArray:
        """Return costs in column order; ``optional`` columns may have none (then 0). Names of other
        features are skipped, as price lists may cover more than the data. A feature without a cost,
        such as after a misspelt name, is an error."""
        cost = np.full(len(self.names), np.nan)  # NaN: not given yet
        skipped: dict[str, str] = {}  # locations of names that are not features
        for position, (place, name, value) in enumerate(entries, start=1):
            if name is not None and not self.has(name) and not isinstance(value, Mapping):
                skipped[name] = place
                continue
            price = _cost(place, name or str(position), value)
            j = position - 1 if name is None else self.find(name, place)
            if j >= len(self.names):
                raise InputError(
                    f"{place}: a cost number {position} for {len(self.names)} columns; "
                    "remove the surplus"
                )
            if not math.isnan(cost[j]):
                raise _repeated(place, name or str(position))
            cost[j] = price
        cost[[j for j in optional if math.isnan(cost[j])]] = 0
        missing = np.flatnonzero(np.isnan(cost))
        if len(missing):
            for name in get_close_matches(self.names[missing[0]], skipped, n=1):
                self.find(name, skipped[name])
            more = f" and {len(missing) - 1} more have" if len(missing) > 1 else " has"
            base = f", or leave out {option('index_base')}: the first may be 1"
            unused = f"; not used: {', '.join(map(repr, [*skipped][:3]))}" if skipped else ""
            zero = base if missing.tolist() == [0] and self.names[0] == "0" else ""
            raise InputError(
                f"{self.file.path}: feature {self.names[missing[0]]!r}{more} no cost "
                f"({len(entries) - len(skipped)} costs for {len(self.names)} columns); add a line "
                f"for each{zero}{unused}"
            )
        self.spare += skipped
        return cost


def _prices(file: CostFile, document: Mapping[str, Any], columns: _Columns) -> SensorPrices:
    rules = document.get("derived", {})
    if not isinstance(rules, Mapping):
        raise file.fault("derived", "derived maps a feature to its parents, in { }")
    derived = {
        columns.find(name): columns.members("derived", parents) for name, parents in rules.items()
    }
    entries, _ = _entries(file, document["costs"])
    columns.others = {name for _, name, _ in entries if name and not columns.has(name)}
    cost = columns.arrange(entries, optional=derived)
    groups = {key: document.get(key, []) for key in ("shared", "discounted")}
    for key, value in groups.items():
        if not isinstance(value, list):
            raise file.fault(key, f"{key} must be a list of groups; put it in [ ]")
    try:
        return price_list(
            cost,
            shared=[m for group in groups["shared"] if (m := columns.members("shared", group))],
            discounted=[
                found
                for rule in groups["discounted"]
                if (found := _discount(file, rule, columns)).members
            ],
            derived=derived,
            names=columns.names,
        )
    except ContradictionError as error:
        raise file.fault(columns.names[error.feature], str(error)) from error


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
    prices = [_cost(place, columns.names[j], v) for j, v in zip(members, later, strict=True)]
    return DiscountGroup(members, tuple(prices))
