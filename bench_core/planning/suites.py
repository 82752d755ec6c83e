"""Suite files: TOML -> ``Suite``.

title, paper, description           text
datasets    ["letters", {name = "letters", classes = 26}]
costs       a cost file beside the suite, or a table as in one: {model = "per-query", ...}
metrics     the first that suits a data set's task is primary
accounting  "path" unless a paper counts otherwise; ["model", "path"] gives boards of both
seeds       whole numbers;   folds  whole numbers, default: the first
budgets     costs to compare learners at: [10, 20, "p95 40"], or by data set {letters = [10, 20]}
caps        what no row may cost, enforced at prediction and measured: written likewise
configs     how many settings of each learner are tried, instead of the grids of its table
executor    where trials run, as --executor, which has the last word: "dask=my_cluster:cluster"
reference   the learner everything is compared with, always on the board
baselines   trivial learners for comparison, always on the board, below the others
[profiles.quick]                    size, seeds, folds, configs, and [profiles.quick.learners.NAME]
[learners.NAME]                     parameters and grids
[on.DATASET.NAME]                   the same for one data set; profiles have the last word
[on.DATASET]    NAME = false        leaves it out there, unless --learners and --data name both
stand_ins   false: absent licensed data are skipped, not replaced by a generator
keys of plugins, such as [[claims]]  checked by the plugin that registered them

A suite of several data sets runs on those that are there, and on the folds that each has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bench_core._io.text import parse_toml, read_text
from bench_core.costs.cost_file import CostFile
from bench_core.errors import InputError, UsageError, option, unknown
from bench_core.planning.request import EXECUTOR, MOST_CONFIGS, MOST_SEED, PROFILES
from bench_core.plugins import Registry
from bench_core.protocols import SuiteKey
from bench_core.results.budgets import Budget, as_budgets, as_caps


@dataclass(frozen=True, slots=True)
class Profile:
    """The size of a run of a suite. ``learners`` overrides the suite's tables field by field."""

    size: str
    seeds: tuple[int, ...]
    folds: tuple[int, ...]
    learners: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    configs: int = 0  # 0: the grids of the tables


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A data set as a suite names it, with the options of its class."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """The content of a suite file."""

    name: str = ""
    title: str = ""
    datasets: tuple[DatasetEntry, ...] = ()
    metrics: tuple[str, ...] = ()
    learners: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    reference: str = ""
    baselines: tuple[str, ...] = ()
    paper: str = ""
    description: str = ""
    accounting: tuple[str, ...] = ("path",)
    extra: Mapping[str, Any] = field(default_factory=dict)  # values of plugins' keys
    on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # data set -> learner
    stand_ins: bool = True
    costs: Path | CostFile | None = None
    place: str = ""  # the file, for messages
    budgets: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict)  # by data set, "" all
    caps: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict)  # likewise
    executor: str = ""

    def budgets_on(self, dataset: str) -> tuple[Budget, ...]:
        """The budgets named for a data set."""
        return self.budgets.get(dataset, self.budgets.get("", ()))

    def caps_on(self, dataset: str) -> tuple[Budget, ...]:
        """The caps to be measured on a data set, those among its budgets included."""
        named = (budget for budget in self.budgets_on(dataset) if budget.kind == "cap")
        return (*self.caps.get(dataset, self.caps.get("", ())), *named)

    def profile(self, name: str) -> Profile:
        """The profile of that name (default quick), or UsageError."""
        name = name or PROFILES[0]
        if name not in self.profiles:
            place = f"suite {self.name}" if self.name else option("profile")
            raise UsageError(f"{place}: {unknown('profile', name, self.profiles)}")
        return self.profiles[name]


NO_SUITE = Suite(profiles={name: Profile(name, (0,), (0,)) for name in PROFILES})
"""The suite of a run without one."""


def read_suite(path: Path, suite_keys: Mapping[str, SuiteKey]) -> Suite:
    """Read one suite file. Raises InputError naming file and key.

    ``suite_keys`` are the keys of plugins. Tables ``[[KEY]]`` of a key that is unlike all known
    ones are left out: they belong to a plugin that is not installed.
    """
    text = read_text(path)
    return _Reader(path, text, suite_keys).suite(parse_toml(path, text))


def find_suite(name: str, registry: Registry) -> Suite:
    """The suite of that name, or the one in the file ``name`` (``./mine.toml``)."""
    known = registry.suite_files
    if name in known:
        return read_suite(known[name], registry.suite_keys)
    if name.endswith(".toml"):
        return read_suite(Path(name), registry.suite_keys)
    raise UsageError(unknown("suite", name, known))


def _foreign(key: str, value: Any, known: set[str]) -> bool:
    tables = isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value)
    near = get_close_matches(key, known, cutoff=0.7)
    return key not in known and tables and bool(value) and not near


_TEXT = {"title", "paper", "description", "reference"}
_LISTS = {"accounting", "datasets", "metrics", "seeds", "folds", "baselines"}
_COSTS = {"costs", "budgets", "caps"}
_SUITE = (
    _TEXT | _LISTS | _COSTS | {"profiles", "learners", "on", "stand_ins", "configs", "executor"}
)
_PROFILE = {"size", "seeds", "folds", "learners", "configs"}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks keys and types; every refusal names the file and the key."""

    path: Path
    content: str
    suite_keys: Mapping[str, SuiteKey]

    def suite(self, table: Mapping[str, Any]) -> Suite:
        known = {*_SUITE, *self.suite_keys}
        self.keys({k: v for k, v in table.items() if not _foreign(k, v, known)}, known, "")
        text: dict[str, Any] = {key: self.text(table.get(key, ""), key) for key in _TEXT}
        datasets = self.need(table, "datasets")
        learners = self.tables(table.get("learners", {}), "learners")
        self.check(bool(learners), "learners", "at least one table [learners.NAME] is needed")
        entries = tuple(self.dataset(d, f"datasets[{i}]") for i, d in enumerate(datasets))
        for i, entry in enumerate(entries):
            why = f"{entry.name} stands there twice; keep one"
            self.check(entry not in entries[:i], f"datasets[{i}]", why)
        baselines = table.get("baselines", [])
        self.want(isinstance(baselines, list), "baselines", "a list of learners", baselines)
        names = {e.name for e in entries}
        known = {*learners, *(baselines := self.texts(baselines, "baselines"))}
        stand_ins = table.get("stand_ins", True)
        self.want(isinstance(stand_ins, bool), "stand_ins", "true or false", stand_ins)
        text["title"] = text["title"] or self.path.stem
        counted = table.get("accounting") or "path"
        return Suite(
            **text,
            name=self.path.stem,
            accounting=self.each([counted] if isinstance(counted, str) else counted, "accounting"),
            datasets=entries,
            metrics=self.texts(self.need(table, "metrics"), "metrics"),
            learners=learners,
            profiles=self.profiles(table),
            baselines=baselines,
            extra=self.extra(table, names, {*known, text["reference"]}),
            on=self.on(table, names, known),
            stand_ins=stand_ins,
            costs=self.costs(table.get("costs")),
            place=str(self.path),
            budgets=self.budgets(table, "budgets", names, "mean"),
            caps=self.budgets(table, "caps", names, "cap"),
            executor=self.executor(table),
        )

    def executor(self, table: Mapping[str, Any]) -> str:
        given = self.text(table.get("executor", ""), "executor")
        self.want(EXECUTOR.fits(given), "executor", EXECUTOR.wanted, given)
        return given

    def budgets(
        self, table: Mapping[str, Any], key: str, datasets: set[str], kind: str
    ) -> dict[str, tuple[Budget, ...]]:
        given = table.get(key, {})
        given = given if isinstance(given, Mapping) else {"": given}
        self.keys({name: value for name, value in given.items() if name}, datasets, key)
        made = {}
        for name, value in given.items():
            at = f"{key}.{name}" if name else key
            self.check(isinstance(value, list) and bool(value), at, "a list of costs is wanted")
            try:
                made[name] = as_budgets(value, kind)
                as_caps(made[name]) if kind == "cap" else None
            except UsageError as error:
                self.check(False, at, str(error))
        return made

    def costs(self, value: Any) -> Path | CostFile | None:
        if isinstance(value, str) and value:
            return self.path.parent / value
        if isinstance(value, Mapping):
            return CostFile(self.path, self.content, value)
        self.want(value is None, "costs", "a file or a table of costs", value)
        return None

    def profiles(self, table: Mapping[str, Any]) -> dict[str, Profile]:
        seeds = self.numbers(table.get("seeds", [0]), "seeds")
        folds = self.numbers(table.get("folds", [0]), "folds")
        given = self.tables(table.get("profiles", {}), "profiles")
        configs = self.configs(table.get("configs", 0), "configs")
        made = {}
        for name in dict.fromkeys((*PROFILES, *given)):
            at, own = f"profiles.{name}", given.get(name, {})
            self.keys(own, _PROFILE, at)
            size = own.get("size", name)
            self.want(size in PROFILES, f"{at}.size", f"one of {', '.join(PROFILES)}", size)
            made[name] = Profile(
                size=size,
                seeds=self.numbers(own.get("seeds", list(seeds)), f"{at}.seeds"),
                folds=self.numbers(own.get("folds", list(folds)), f"{at}.folds"),
                learners=self.tables(own.get("learners", {}), f"{at}.learners"),
                configs=self.configs(own.get("configs", configs), f"{at}.configs"),
            )
        return made

    def configs(self, value: Any, key: str) -> int:
        fits = type(value) is int and 0 <= value <= MOST_CONFIGS
        self.want(fits, key, f"a whole number from 0 to {MOST_CONFIGS}", value)
        return int(value)

    def dataset(self, entry: Any, at: str) -> DatasetEntry:
        table = {"name": entry} if isinstance(entry, str) else entry
        named = isinstance(table, Mapping) and isinstance(table.get("name"), str)
        self.check(named, at, 'a name or a table {name = "...", ...} is wanted')
        return DatasetEntry(table["name"], {k: v for k, v in table.items() if k != "name"})

    def extra(
        self, table: Mapping[str, Any], datasets: set[str], learners: set[str]
    ) -> dict[str, Any]:
        values = {key: table[key] for key in self.suite_keys if key in table}
        for key, value in values.items():
            try:
                self.suite_keys[key](value, datasets, learners)
            except UsageError as error:
                self.check(False, key, str(error))
        return values

    def on(
        self, suite: Mapping[str, Any], datasets: set[str], learners: set[str]
    ) -> dict[str, dict[str, Any]]:
        made = self.tables(suite.get("on", {}), "on")
        self.keys(made, datasets, "on")
        for name, inner in made.items():
            self.keys(inner, learners, f"on.{name}")
            for learner, table in inner.items():
                at, fits = f"on.{name}.{learner}", table is False or isinstance(table, Mapping)
                self.check(fits, at, "a table or false is wanted")
                why = "it is the reference, which is on every board; leave this line out"
                self.check(table is not False or learner != suite.get("reference"), at, why)
        return made

    def check(self, holds: bool, key: str, why: str) -> None:
        if not holds:
            raise InputError(f"{self.path}: key {key!r}: {why}")

    def want(self, holds: bool, key: str, wanted: str, value: Any) -> None:
        self.check(holds, key, f"{wanted} is wanted, not {value!r}")

    def keys(self, table: Mapping[str, Any], known: set[str], at: str) -> None:
        for key in table:
            if key not in known:
                place = f"{at}.{key}" if at else key
                what = unknown("key", key, known).replace(repr(key), repr(place), 1)
                raise InputError(f"{self.path}: {what}")

    def need(self, table: Mapping[str, Any], key: str) -> list[Any]:
        self.check(key in table, key, "is missing")
        found = table[key] if isinstance(table[key], list) else []
        self.check(bool(found), key, "a list with at least one entry is wanted")
        return found

    def text(self, value: Any, key: str) -> str:
        self.want(isinstance(value, str), key, "text", value)
        return str(value)

    def each(self, value: Any, key: str) -> tuple[str, ...]:
        self.want(isinstance(value, list), key, "text or a list", value)
        return tuple(dict.fromkeys(self.texts(value, key)))

    def texts(self, value: Sequence[Any], key: str) -> tuple[str, ...]:
        return tuple(self.text(v, f"{key}[{i}]") for i, v in enumerate(value))

    def numbers(self, value: Any, key: str) -> tuple[int, ...]:
        whole = isinstance(value, list) and value and all(type(v) is int for v in value)
        self.want(bool(whole), key, "a list of whole numbers", value)
        for number in value:
            why = f"whole numbers from 0 to {MOST_SEED} are wanted, not {number}"
            self.check(0 <= number <= MOST_SEED, key, why)
        return tuple(dict.fromkeys(value))

    def tables(self, value: Any, key: str) -> dict[str, dict[str, Any]]:
        self.check(isinstance(value, Mapping), key, "a table is wanted")
        for name, inner in value.items():
            self.check(isinstance(inner, Mapping), f"{key}.{name}", "a table is wanted")
        return {name: dict(inner) for name, inner in value.items()}
