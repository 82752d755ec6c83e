"""Suite files: TOML -> ``Suite``.

title, paper, description           text
datasets    ["letters", {name = "letters", classes = 26}]
costs       a cost file beside the suite, or a table as in one: {model = "per-query", ...}
metrics     the first that suits a data set's task is primary
accounting  "path" unless a paper counts otherwise
seeds       whole numbers;   folds  whole numbers, default: the first
reference   the learner everything is compared with, always on the board
baselines   trivial learners for comparison, always on the board, below the others
[profiles.quick]                    size, seeds, folds, and [profiles.quick.learners.NAME]
[learners.NAME]                     parameters and grids
[on.DATASET.NAME]                   the same for one data set; profiles have the last word
[on.DATASET]    NAME = false        leaves a learner out there
stand_ins   false: absent licensed data are skipped, not replaced by a generator
keys of plugins, such as [[claims]]  checked by the plugin that registered them

A suite of several data sets runs on those that are there, and on the folds that each has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core._io.text import parse_toml, read_text
from bench_core.costs.cost_file import CostFile
from bench_core.errors import InputError, UsageError
from bench_core.planning.request import MOST_SEED, PROFILES

if TYPE_CHECKING:
    from bench_core.plugins import Registry
    from bench_core.protocols import SuiteKey


@dataclass(frozen=True, slots=True)
class Profile:
    """How large a run of a suite is. ``learners`` overrides the suite's tables field by field."""

    size: str
    seeds: tuple[int, ...]
    folds: tuple[int, ...]
    learners: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A data set as a suite names it, with the options of its class."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """The content of a suite file."""

    name: str
    title: str
    datasets: tuple[DatasetEntry, ...]
    metrics: tuple[str, ...]
    learners: Mapping[str, Mapping[str, Any]]
    profiles: Mapping[str, Profile]
    reference: str = ""
    baselines: tuple[str, ...] = ()
    paper: str = ""
    description: str = ""
    accounting: str = "path"
    extra: Mapping[str, Any] = field(default_factory=dict)  # values of plugins' keys
    on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # data set -> learner
    stand_ins: bool = True
    costs: Path | CostFile | None = None
    place: str = ""  # the file, for messages

    def profile(self, name: str) -> Profile:
        """The profile of that name (default quick), or UsageError."""
        from bench_core.errors import unknown

        name = name or PROFILES[0]
        if name not in self.profiles:
            raise UsageError(f"suite {self.name}: {unknown('profile', name, self.profiles)}")
        return self.profiles[name]


def read_suite(path: Path, suite_keys: Mapping[str, SuiteKey]) -> Suite:
    """Read one suite file. Raises InputError naming file and key.

    ``suite_keys`` are the keys of plugins. Tables ``[[KEY]]`` of a key that is unlike all known
    ones are left out: they belong to a plugin that is not installed.
    """
    text = read_text(path)
    return _Reader(path, text, suite_keys).suite(parse_toml(path, text))


def find_suite(name: str, registry: Registry) -> Suite:
    """The suite of that name, or the one in the file ``name`` (``./mine.toml``)."""
    from bench_core.errors import unknown

    known = registry.suites()
    if name in known:
        return read_suite(known[name], registry.suite_keys)
    if name.endswith(".toml"):
        return read_suite(Path(name), registry.suite_keys)
    raise UsageError(unknown("suite", name, known))


def _foreign(key: str, value: Any, known: set[str]) -> bool:
    tables = isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
    return key not in known and tables and bool(value) and not get_close_matches(key, known)


_TEXT = {"title", "paper", "description", "accounting", "reference"}
_LISTS = {"datasets", "metrics", "seeds", "folds", "baselines"}
_SUITE = _TEXT | _LISTS | {"profiles", "learners", "on", "stand_ins", "costs"}
_PROFILE = {"size", "seeds", "folds", "learners"}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks keys and types; every refusal names the file and the key."""

    path: Path
    content: str
    suite_keys: Mapping[str, SuiteKey]

    def suite(self, table: Mapping[str, Any]) -> Suite:
        known = {*_SUITE, *self.suite_keys}
        self.keys({k: v for k, v in table.items() if not _foreign(k, v, known)}, known, "")
        text = {key: self.text(table.get(key, ""), key) for key in _TEXT}
        datasets = self.need(table, "datasets")
        learners = self.tables(table.get("learners", {}), "learners")
        if not learners:
            raise self.refuse("learners", "at least one table [learners.NAME] is needed")
        entries = tuple(self.dataset(d, i) for i, d in enumerate(datasets))
        for i, entry in enumerate(entries):
            if entry in entries[:i]:
                raise self.refuse(f"datasets[{i}]", f"{entry.name} stands there twice; keep one")
        baselines = self.baselines(table.get("baselines", []))
        names = {e.name for e in entries}
        known = {*learners, *baselines}
        extra = {key: table[key] for key in self.suite_keys if key in table}
        self.extra(extra, names, {*known, text["reference"]})
        return Suite(
            name=self.path.stem,
            title=text["title"] or self.path.stem,
            datasets=entries,
            metrics=self.texts(self.need(table, "metrics"), "metrics"),
            learners=learners,
            profiles=self.profiles(table),
            reference=text["reference"],
            baselines=baselines,
            paper=text["paper"],
            description=text["description"],
            accounting=text["accounting"] or "path",
            extra=extra,
            on=self.on(table, names, known),
            stand_ins=self.flag(table.get("stand_ins", True), "stand_ins"),
            costs=self.costs(table.get("costs")),
            place=str(self.path),
        )

    def costs(self, value: Any) -> Path | CostFile | None:
        if isinstance(value, str) and value:
            return self.path.parent / value
        if isinstance(value, Mapping):
            return CostFile(self.path, self.content, value)
        if value is not None:
            raise self.refuse("costs", f"a file or a table of costs is wanted, not {value!r}")
        return None

    def profiles(self, table: Mapping[str, Any]) -> dict[str, Profile]:
        seeds = self.numbers(table.get("seeds", [0]), "seeds")
        folds = self.numbers(table.get("folds", [0]), "folds")
        given = self.tables(table.get("profiles", {}), "profiles")
        made = {}
        for name in (*PROFILES, *(n for n in given if n not in PROFILES)):
            at, own = f"profiles.{name}", given.get(name, {})
            self.keys(own, _PROFILE, at)
            made[name] = Profile(
                size=self.size(own.get("size", name), f"{at}.size"),
                seeds=self.numbers(own.get("seeds", list(seeds)), f"{at}.seeds"),
                folds=self.numbers(own.get("folds", list(folds)), f"{at}.folds"),
                learners=self.tables(own.get("learners", {}), f"{at}.learners"),
            )
        return made

    def dataset(self, entry: Any, index: int) -> DatasetEntry:
        at = f"datasets[{index}]"
        if isinstance(entry, str):
            return DatasetEntry(entry)
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise self.refuse(at, 'a name or a table {name = "...", ...} is wanted')
        return DatasetEntry(entry["name"], {k: v for k, v in entry.items() if k != "name"})

    def baselines(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.refuse("baselines", f"a list of learners is wanted, not {value!r}")
        return self.texts(value, "baselines")

    def extra(self, values: Mapping[str, Any], datasets: set[str], learners: set[str]) -> None:
        for key, value in values.items():
            try:
                self.suite_keys[key](value, datasets, learners)
            except UsageError as error:
                raise self.refuse(key, str(error)) from error

    def on(
        self, suite: Mapping[str, Any], datasets: set[str], learners: set[str]
    ) -> dict[str, dict[str, Any]]:
        made = self.tables(suite.get("on", {}), "on")
        self.keys(made, datasets, "on")
        for name, inner in made.items():
            self.keys(inner, learners, f"on.{name}")
            for learner, table in inner.items():
                if table is not False and not isinstance(table, Mapping):
                    raise self.refuse(f"on.{name}.{learner}", "a table or false is wanted")
                if table is False and learner == suite.get("reference"):
                    why = "it is the reference, which is on every board; leave this line out"
                    raise self.refuse(f"on.{name}.{learner}", why)
        return made

    def flag(self, value: Any, key: str) -> bool:
        if not isinstance(value, bool):
            raise self.refuse(key, f"true or false is wanted, not {value!r}")
        return value

    def refuse(self, key: str, why: str) -> InputError:
        return InputError(f"{self.path}: key {key!r}: {why}")

    def keys(self, table: Mapping[str, Any], known: set[str], at: str) -> None:
        from bench_core.errors import unknown

        for key in table:
            if key not in known:
                place = f"{at}.{key}" if at else key
                raise InputError(f"{self.path}: {unknown('key', place, known)}")

    def need(self, table: Mapping[str, Any], key: str) -> list[Any]:
        if key not in table:
            raise self.refuse(key, "is missing")
        if not isinstance(table[key], list) or not table[key]:
            raise self.refuse(key, "a list with at least one entry is wanted")
        found: list[Any] = table[key]
        return found

    def text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise self.refuse(key, f"text is wanted, not {value!r}")
        return value

    def texts(self, value: list[Any], key: str) -> tuple[str, ...]:
        return tuple(self.text(v, f"{key}[{i}]") for i, v in enumerate(value))

    def numbers(self, value: Any, key: str) -> tuple[int, ...]:
        if not isinstance(value, list) or not value or any(type(v) is not int for v in value):
            raise self.refuse(key, f"a list of whole numbers is wanted, not {value!r}")
        for number in value:
            if not 0 <= number <= MOST_SEED:
                raise self.refuse(
                    key, f"whole numbers from 0 to {MOST_SEED} are wanted, not {number}"
                )
        return tuple(dict.fromkeys(value))

    def size(self, value: Any, key: str) -> str:
        if value not in PROFILES:
            raise self.refuse(key, f"one of {', '.join(PROFILES)} is wanted, not {value!r}")
        return str(value)

    def tables(self, value: Any, key: str) -> dict[str, dict[str, Any]]:
        if not isinstance(value, Mapping):
            raise self.refuse(key, "a table is wanted")
        for name, inner in value.items():
            if not isinstance(inner, Mapping):
                raise self.refuse(f"{key}.{name}", "a table is wanted")
        return {name: dict(inner) for name, inner in value.items()}
