"""Cost files: what each feature costs, and which features share a measurement.

Four forms, told apart by their content (``docs/cost-files.md`` has examples):

- CSV with lines ``name,cost`` or ``index,cost`` (a first line with these words is a header);
- JSON, a mapping of names to costs, a list with one cost per feature, or the full form::

      {"costs": {"TSH": 22.78, "TT4": 14.51, "T4U": 11.41, "FTI": 0},
       "shared": [["x", "y"]],
       "discounted": [{"members": ["TSH", "TT4"], "later": [20.68, 12.41]}],
       "derived": {"FTI": ["TT4", "T4U"]},
       "split": 0.25, "tree": 0, "unit": "dollars"}

  Key ``measured`` (how ``bench cost measure`` found the costs) is for people and not read. Key
  ``model`` names another cost model, which reads keys of its own; without ``costs`` it builds on
  the data set's prices. The same as TOML in a file ``*.toml`` or a table ``costs`` of a suite;

- lines ``name:cost``;
- one cost per line, in the order of the features.

Features without names are called 1..d; ``f1``..``fd`` is understood too. Lines that begin with
``#`` and blank lines are skipped. Every feature needs exactly one cost (derived features none).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.text import read_text
from bench_core.arrays import FloatArray
from bench_core.costs.cost_entries import (
    CostFile,
    Entry,
    document_of,
    entries_of,
    entry_of,
    repeated,
)
from bench_core.costs.model import (
    ContradictionError,
    CostModel,
    DiscountGroup,
    SensorPrices,
    price_list,
)
from bench_core.errors import InputError, unknown

ASSUMED_COSTS = "no cost file: every feature costs 1"
KEYS = ("costs", "shared", "discounted", "derived", "split", "tree", "unit", "measured", "model")
FEW_NAMES = 10


def read_costs(
    path: str | Path, feature_names: Sequence[str] = (), features: int | None = None
) -> SensorPrices:
    """The sensor prices in a cost file.

    ``feature_names`` (d,) in column order; where they are empty, ``features`` says how many there
    are. Raises InputError naming file, line and feature for entries that are negative, missing,
    surplus, repeated, infinite or not numbers, and for groups that contradict the costs.
    """
    names = tuple(feature_names) or tuple(str(j) for j in range(1, (features or 0) + 1))
    if not names:
        raise ValueError("read_costs needs the features' names or their number")
    costs = cost_model(cost_text(path), names, None, {SensorPrices.name: SensorPrices})
    assert isinstance(costs, SensorPrices)
    return costs


def cost_text(path: str | Path) -> CostFile:
    """A cost file as it stands there."""
    return CostFile(Path(path), read_text(path))


def cost_model(
    file: CostFile,
    names: Sequence[str],
    own: SensorPrices | None,
    models: Mapping[str, type[CostModel]],
) -> CostModel:
    """The cost model in a file, for features of these names.

    ``own`` are the prices that hold where it has none; ``models`` are known by name. Raises
    InputError as ``read_costs``, also for an unknown model and for what its options lack.
    """
    columns = _Columns(file.path, names)
    document = document_of(file)
    full = isinstance(document, Mapping) and (
        isinstance(document.get("costs"), Mapping | list) or isinstance(document.get("model"), str)
    )
    if not full:
        return SensorPrices.additive(columns.arrange(entries_of(file, document)))
    model = _model(file, document.get("model", SensorPrices.name), models)
    own_keys = (key for key in KEYS if "costs" in document or key == "model")
    _refuse_unknown(file, document, (*own_keys, *model.options))
    if "costs" in document:
        own = _prices(file, document, columns)
    if own is None:
        raise InputError(
            f"{file.path}: key 'costs' is missing, and the data have another cost model, "
            "not prices to build on; add the key"
        )
    options = {key: document[key] for key in model.options if key in document}
    try:
        return model.from_options(own, options, lambda name: columns.find(name, file.near(name)))
    except ValueError as error:
        raise InputError(f"{file.near(next(iter(options), 'model'))}: {error}") from error


def _model(file: CostFile, name: Any, models: Mapping[str, type[CostModel]]) -> type[CostModel]:
    if not isinstance(name, str) or name not in models:
        known = f"known: {', '.join(sorted(models))}"
        line = unknown("cost model", str(name), models)
        raise InputError(f"{file.near('model')}: {line if known in line else f'{line} {known}'}")
    return models[name]


def _refuse_unknown(file: CostFile, document: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in document:
        if key not in keys:
            raise InputError(f"{file.near(key)}: unknown key {key!r}; known: {', '.join(keys)}")


class _Columns:
    """Finds the column that a name in the file means."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path = path
        self.names = names
        self.number = {name: j for j, name in enumerate(names)}
        self.positions = {str(j + 1): j for j in range(len(names))}

    def find(self, name: str, place: str) -> int:
        bare = name[1:] if name[:1] == "f" and name[1:].isdigit() else name
        for known, spelling in ((self.number, name), (self.number, bare), (self.positions, bare)):
            if spelling in known:
                return known[spelling]
        from difflib import get_close_matches

        near = get_close_matches(name, self.names, n=1)
        few = f"; known: {', '.join(self.names)}" if len(self.names) <= FEW_NAMES else ""
        hint = f"did you mean {near[0]!r}?" if near else f"correct or remove the line{few}"
        raise InputError(
            f"{place}: feature {name!r} is none of the {len(self.names)} features; {hint}"
        )

    def _column(self, entry: Entry) -> int:
        if not entry.positional:
            return self.find(entry.name, entry.place)
        if entry.name not in self.positions:
            raise InputError(
                f"{entry.place}: a cost number {entry.name} for {len(self.names)} features; "
                "remove the surplus"
            )
        return self.positions[entry.name]

    def arrange(
        self, entries: Sequence[Entry], optional: frozenset[int] = frozenset()
    ) -> FloatArray:
        """Costs in column order; ``optional`` columns may have none (0 then)."""
        cost = np.full(len(self.names), np.nan)
        for entry in entries:
            j = self._column(entry)
            if not math.isnan(cost[j]):
                raise InputError(repeated(entry))
            cost[j] = entry.cost
        cost[[j for j in optional if math.isnan(cost[j])]] = 0
        missing = np.flatnonzero(np.isnan(cost))
        if len(missing):
            more = f" and {len(missing) - 1} more have" if len(missing) > 1 else " has"
            raise InputError(
                f"{self.path}: feature {self.names[missing[0]]!r}{more} no cost "
                f"({len(entries)} costs for {len(self.names)} features); add a line for each"
            )
        return cost


def _prices(file: CostFile, document: Mapping[str, Any], columns: _Columns) -> SensorPrices:
    derived = _derived(file, document.get("derived", {}), columns)
    entries = entries_of(file, document["costs"])
    cost = columns.arrange(entries, optional=frozenset(derived))
    shared = [_members(file, group, columns, "shared") for group in _list(file, document, "shared")]
    discounted = [_discount(file, rule, columns) for rule in _list(file, document, "discounted")]
    unit = document.get("unit", "cost")
    if not isinstance(unit, str):
        raise InputError(f"{file.near('unit')}: unit is {unit!r}; give it as text")
    try:
        return price_list(
            cost,
            shared=shared,
            discounted=discounted,
            derived=derived,
            split=entry_of("split", document.get("split", 0), file.near("split")).cost,
            tree=entry_of("tree", document.get("tree", 0), file.near("tree")).cost,
            unit=unit,
            names=columns.names,
        )
    except ContradictionError as error:
        raise InputError(f"{file.near(columns.names[error.feature])}: {error}") from error


def _list(file: CostFile, document: Mapping[str, Any], key: str) -> list[Any]:
    value = document.get(key, [])
    if not isinstance(value, list):
        raise InputError(f"{file.near(key)}: {key} must be a list of groups; put it in [ ]")
    return value


def _members(file: CostFile, group: Any, columns: _Columns, key: str) -> tuple[int, ...]:
    if not isinstance(group, list) or not group:
        raise InputError(f"{file.near(key)}: {key} holds {group!r}; give a list of features")
    return tuple(columns.find(str(name), file.near(str(name))) for name in group)


def _discount(file: CostFile, rule: Any, columns: _Columns) -> DiscountGroup:
    if not isinstance(rule, Mapping) or set(rule) != {"members", "later"}:
        raise InputError(
            f"{file.near('discounted')}: a discounted group has exactly the keys members and later"
        )
    members = _members(file, rule["members"], columns, "discounted")
    later = rule["later"]
    if not isinstance(later, list) or len(later) != len(members):
        raise InputError(
            f"{file.near('later')}: give one later price for each of the {len(members)} members"
        )
    prices = (
        entry_of(columns.names[j], value, file.near("later")).cost
        for j, value in zip(members, later, strict=True)
    )
    return DiscountGroup(members, tuple(prices))


def _derived(file: CostFile, rules: Any, columns: _Columns) -> dict[int, tuple[int, ...]]:
    if not isinstance(rules, Mapping):
        raise InputError(f"{file.near('derived')}: derived maps a feature to its parents, in {{ }}")
    return {
        columns.find(name, file.near(name)): _members(file, parents, columns, "derived")
        for name, parents in rules.items()
    }
