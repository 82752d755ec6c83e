"""Suite files: TOML -> ``Suite``.

title, paper, description           text
datasets    ["letters", {name = "letters", classes = 26}]
costs       a cost file next to the suite, or its table: {model = "per-query", ...}
metrics     the first that applies to a data set's task is primary
accounting  "path" unless a paper counts otherwise; ["model", "path"] gives boards of both
error_costs a number for every error, or as for --error-costs
seeds       integers;   folds  integers, default: the first
budgets     costs at which to compare: [10, 20, "cap 40"], or by data set {letters = [10, 20]}
caps        maximum costs of each row, enforced at prediction and measured; same syntax
configs     number of settings tried per learner, instead of the grids of its table
executor    as --executor, which takes precedence: "dask=my_cluster:cluster"
reference   the learner that all are compared with, on every board of its tasks; without it, and on
            other tasks, the learner with the role of a reference
baselines   trivial learners for comparison, always on the board, below the others
[profiles.quick]                    size, seeds, folds, configs, and [profiles.quick.learners.NAME]
[learners.NAME]                     parameters and grids
[on.DATASET.NAME]                   the same for one data set; profiles take precedence
[on.DATASET]    NAME = false        excludes it there, unless --learners and --data name both
stand_ins   false: missing licensed data are skipped, not replaced by a generator
keys of plugins, such as [[claims]]  checked by the plugin that registered them

A suite of several data sets uses those whose files are present, and the folds that each has.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from bench_core._io.text import parse_toml, read_text
from bench_core.costs.cost_file import CostFile
from bench_core.errors import InputError, UsageError, blaming, option, unknown
from bench_core.option_fields import FLAG, NAMES, TEXT, Form, choice, whole_number
from bench_core.planning.request import EXECUTOR, MOST_CONFIGS, NUMBERS, PROFILES
from bench_core.plugins import Registry
from bench_core.results.budgets import Budget, as_budgets, as_caps

Tables = Mapping[str, Mapping[str, Any]]
"""Tables of values and grids by learner."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Size of a suite's run. ``learners`` overrides the suite's tables field by field."""

    size: str
    seeds: tuple[int, ...]
    folds: tuple[int, ...]
    learners: Tables = field(default_factory=dict)
    configs: int = 0  # 0: the grids of the tables


@dataclass(frozen=True, slots=True)
class DatasetEntry:
    """A data set in a suite, with the options of its class."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Suite:
    """Content of a suite file."""

    name: str = ""
    title: str = ""
    datasets: tuple[DatasetEntry, ...] = ()
    metrics: tuple[str, ...] = ()
    learners: Tables = field(default_factory=dict)
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
    caps: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict)  # by data set, "" all
    executor: str = ""
    error_costs: str = ""

    def budgets_on(self, dataset: str) -> tuple[Budget, ...]:
        """Budgets for a data set."""
        return self.budgets.get(dataset, self.budgets.get("", ()))

    def caps_on(self, dataset: str) -> tuple[Budget, ...]:
        """Caps to measure on a data set, including caps among its budgets."""
        named = (budget for budget in self.budgets_on(dataset) if budget.kind == "cap")
        return (*self.caps.get(dataset, self.caps.get("", ())), *named)

    def profile(self, name: str) -> Profile:
        """Return the profile of that name (default quick), or raise UsageError."""
        name = name or PROFILES[0]
        if name not in self.profiles:
            place = f"suite {self.name}" if self.name else option("profile")
            raise UsageError(f"{place}: {unknown('profile', name, self.profiles)}")
        return self.profiles[name]


NO_SUITE = Suite(profiles={name: Profile(name, (0,), (0,)) for name in PROFILES})
"""Suite of a run without one."""


def find_suite(name: str, registry: Registry) -> Suite:
    """Return the suite of that name, or the suite in the file ``name`` (``./mine.toml``)."""
    if name not in registry.suite_files and not name.endswith(".toml"):
        raise UsageError(unknown("suite", name, registry.suite_files))
    return read_suite(registry.suite_files.get(name, Path(name)), registry)


def read_suite(path: Path, registry: Registry) -> Suite:
    """Read one suite file. Raises InputError with file and key.

    Tables ``[[KEY]]`` of a key unlike all known ones are ignored: they belong to a plugin that is
    not installed.
    """
    text = read_text(path)
    table = parse_toml(path, text)
    try:
        return _suite(path, text, table, registry)
    except UsageError as error:
        raise InputError(f"{path}: {error}") from error


_TABLE = Form("a table", "", fits=lambda value: isinstance(value, Mapping))
_TABLES = Form("a table of tables", "", fits=_TABLE.fits)
_PROFILE = {
    "size": choice(*PROFILES),
    "seeds": NUMBERS,
    "folds": NUMBERS,
    "learners": _TABLES,
    "configs": whole_number(0, MOST_CONFIGS),
}
_EITHER = Form(
    "text, a list or a table", "", fits=lambda value: isinstance(value, str | list | dict)
)
_COSTS = Form("a list of costs", "", fits=lambda value: isinstance(value, list) and value != [])
_TABLE_OR_FALSE = Form("a table or false", "", fits=lambda v: v is False or _TABLE.fits(v))
_SUITE: dict[str, Form] = {
    **dict.fromkeys(("title", "paper", "description", "reference"), TEXT),
    **dict.fromkeys(("metrics", "baselines"), NAMES),
    **dict.fromkeys(("accounting", "budgets", "caps", "costs"), _EITHER),
    **{key: form for key, form in _PROFILE.items() if key != "size"},
    "datasets": replace(NAMES, wanted="a name or a table", fits=_EITHER.fits),
    "profiles": _TABLES,
    "on": _TABLES,
    "executor": EXECUTOR,
    "error_costs": Form(
        "text or a number", "", fits=lambda value: isinstance(value, str | float | int)
    ),
    "stand_ins": FLAG,
}
"""Form of the value of each key of a suite and of a profile."""


def _suite(path: Path, text: str, table: Mapping[str, Any], registry: Registry) -> Suite:
    known = _SUITE | dict.fromkeys(registry.suite_keys, Form("", "", fits=lambda _: True))
    fields = _values({k: v for k, v in table.items() if not _foreign(k, v, known)}, known)
    for key in ("datasets", "metrics", "learners"):
        if not fields.get(key):
            raise UsageError(f"key {key!r}: give at least one entry")
    entries: list[DatasetEntry] = []
    for i, item in enumerate(fields["datasets"]):
        options = {"name": item} if isinstance(item, str) else dict(item)
        name = TEXT.checked(options.pop("name", None), f"key 'datasets[{i}].name'")
        if DatasetEntry(name, options) in entries:
            raise UsageError(f"key 'datasets[{i}]': {name} is listed twice; keep one")
        entries.append(DatasetEntry(name, options))
    datasets = {entry.name for entry in entries}
    learners = {*fields["learners"], *fields.get("baselines", ())}
    extra = {key: fields.pop(key) for key in registry.suite_keys if key in fields}
    for key, value in extra.items():
        with blaming(f"key {key!r}"):
            registry.suite_keys[key](value, datasets, {*learners, fields.get("reference", "")})
    on = _values(fields.get("on", {}), dict.fromkeys(datasets, _TABLE), "on")
    usual: dict[str, Any] = {
        key: fields.pop(key) for key in ("seeds", "folds", "configs") if key in fields
    }
    for name, table in on.items():
        if table.get(fields.get("reference", "")) is False:
            raise UsageError(
                f"key 'on.{name}': {fields['reference']} is the reference, which is on every board;"
                " leave this line out"
            )
    profiles, tables = dict[str, Profile](), fields.get("profiles", {})
    for name in dict.fromkeys((*PROFILES, *tables)):
        values = {"size": name, "seeds": (0,), "folds": (0,), **usual, **tables.get(name, {})}
        profiles[name] = Profile(**_values(values, _PROFILE, f"profiles.{name}"))
    fields |= {
        "datasets": tuple(entries),
        "profiles": profiles,
        "on": {
            name: _values(table, dict.fromkeys(learners, _TABLE_OR_FALSE), f"on.{name}")
            for name, table in on.items()
        },
        "budgets": _budgets(fields.get("budgets", {}), "budgets", datasets, "mean"),
        "caps": _budgets(fields.get("caps", {}), "caps", datasets, "cap"),
    }
    if isinstance(fields.get("accounting"), str):
        fields["accounting"] = [fields["accounting"]]
    fields["accounting"] = tuple(fields.get("accounting", ("path",)))
    if "error_costs" in fields:
        fields["error_costs"] = str(fields["error_costs"])
    if costs := fields.get("costs"):
        is_path = isinstance(costs, str)
        fields["costs"] = path.parent / costs if is_path else CostFile(path, text, costs)
    return Suite(name=path.stem, place=str(path), extra=extra, **{"title": path.stem} | fields)


def _foreign(key: str, value: Any, known: Iterable[str]) -> bool:
    """True for tables of a plugin that is not installed; False for probable misspellings."""
    tables = isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value)
    return bool(tables) and key not in known and not get_close_matches(key, known, cutoff=0.7)


def _values(table: Mapping[str, Any], forms: Mapping[str, Form], at: str = "") -> dict[str, Any]:
    """Check the values of a table by the forms of its keys; ``at`` is its location."""
    checked_values = {}
    for key, value in table.items():
        name = f"{at}.{key}".strip(".")
        if key not in forms:
            raise UsageError(unknown("key", name, [f"{at}.{one}" if at else one for one in forms]))
        checked_values[key] = forms[key].checked(value, f"key {name!r}")
        if forms[key] is _TABLES:
            checked_values[key] = _values(value, dict.fromkeys(value, _TABLE), name)
    return checked_values


def _budgets(
    given: Any, key: str, datasets: Iterable[str], kind: str
) -> dict[str, tuple[Budget, ...]]:
    """Return budgets of a ``kind`` by data set, "" for all."""
    table = given if isinstance(given, Mapping) else {"": given}
    table = _values(table, dict.fromkeys(["", *datasets], _COSTS), key)
    with blaming(f"key {key!r}"):
        for value in table.values() if kind == "cap" else ():
            as_caps(value)  # raises if invalid
        return {name: as_budgets(value, kind) for name, value in table.items()}
