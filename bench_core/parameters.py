"""Hyper-parameters: the fields of a learner's (or data set's) frozen dataclass.

Values come from suite tables and from ``--set``. A list is a grid; for a tuple field, a list of
lists. A field that holds another learner takes a registered name or a table
(``{learner = "gbrt", trees = 40}``; without ``learner`` the table changes the field's default).
Types are strict, except that integers are accepted for floats.
"""

import builtins
import dataclasses
import json
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from functools import cache
from itertools import product
from math import inf, isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from bench_core.class_names import find_class, remember_class
from bench_core.contracts import name_of
from bench_core.errors import UsageError, one_line, unknown


class Registry(Protocol):
    """Registry that finds learner classes by name (``plugins.Registry``)."""

    def learner(self, name: str) -> type:
        """Return the learner class of that name. Raises UsageError."""


@dataclasses.dataclass(frozen=True, slots=True)
class Range:
    """Finite numbers from ``least`` to ``most``, more than ``above``, less than ``below``."""

    # closed ends
    least: float = -inf
    most: float = inf
    # open ends
    above: float = -inf
    below: float = inf

    def check(self, name: str, value: Any) -> None:
        """Raise ValueError if a number, or one of a tuple, is outside the range."""
        for v in value if isinstance(value, tuple) else (value,):
            if not isinstance(v, int | float) or self == Range():
                continue
            if not (self.least <= v <= self.most and self.above < v < self.below):
                finite = " and finite" if self.most == self.below else ""  # no upper end
                raise ValueError(f"{name} must be {self}{finite}, got {value}")

    def __str__(self) -> str:
        if isfinite(self.least) and isfinite(self.most):
            return f"{self.least:g} to {self.most:g}"
        ends = {"at least": self.least, "above": self.above}
        ends |= {"at most": self.most, "below": self.below}
        return " and ".join(f"{word} {end:g}" for word, end in ends.items() if isfinite(end))


@dataclasses.dataclass(frozen=True, slots=True)
class Search:
    """Search space of a parameter (``--configs``): an interval, ``logarithmic`` or linear; a set of
    ``choices``; or, if ``inside``, the parameters of the learner it holds."""

    least: float = 0.0
    most: float = 0.0
    logarithmic: bool = False
    choices: tuple[Any, ...] = ()
    inside: bool = False

    def value(self, share: float, whole: bool = False) -> Any:
        """Value at a fraction in [0, 1) of the interval; ``whole``: rounded to an integer."""
        if self.choices:
            return self.choices[int(share * len(self.choices))]
        if self.logarithmic:
            found = self.least * (self.most / self.least) ** share
        else:
            found = self.least + share * (self.most - self.least)
        return round(found) if whole else float(f"{found:.4g}")  # short enough to be typed

    def __str__(self) -> str:
        if self.inside:
            return "search its parameters"
        if self.choices:
            return f"search among {', '.join(map(str, self.choices))}"
        ends = f"search {self.least:g} to {self.most:g}"
        return f"{ends} (log scale)" if self.logarithmic else ends


def log(least: float, most: float) -> Search:
    """Search between two positive ends, evenly in the logarithm."""
    return Search(least, most, logarithmic=True)


def linear(least: float, most: float) -> Search:
    """Search evenly between two ends."""
    return Search(least, most)


def among(*choices: Any) -> Search:
    """Search among a few values."""
    return Search(choices=choices)


def inside() -> Search:
    """Search the parameters of the learner that this parameter holds."""
    return Search(inside=True)


def param(
    default: Any,
    doc: str,
    *,
    least: float = -inf,
    most: float = inf,
    above: float = -inf,
    below: float = inf,
    search: Search | None = None,
) -> Any:
    """Declare a hyper-parameter: default, one-line documentation, valid range and search space.

    ``search`` (``log``, ``linear``, ``among``, ``inside``) is used by ``--configs``; None: fixed.
    Ranges are checked when the harness resolves a learner (``resolved``). The default of a
    parameter that holds a learner is best a registered name (``"gbrt"``): that learner with its own
    defaults.

    >>> @dataclasses.dataclass(frozen=True)
    ... class MyLearner:
    ...     trees: int = param(300, "number of boosted trees", least=1)
    ...     step: float = param(0.1, "shrinkage", above=0, search=log(0.02, 1))
    """
    if not isinstance(search, Search | None):
        raise TypeError(f"search={search!r}: give log(0.01, 100), linear, among or inside")
    metadata = {"doc": doc, "range": Range(least, most, above, below), "search": search}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """A hyper-parameter as ``bench show`` prints it; ``required`` if it has no default."""

    name: str
    annotation: Any
    default: Any
    required: bool
    doc: str
    range: Range = Range()
    search: Search | None = None

    @property
    def kind(self) -> str:
        """Its type in words, such as ``whole number``."""
        return in_words(self.annotation)

    @property
    def holds_learner(self) -> bool:
        """True if its values are learners."""
        return learner_type(self.annotation) is not None


def parameters(cls: type) -> tuple[Parameter, ...]:
    """Return the hyper-parameters of a class in order, () for a class that is not a dataclass."""
    return _parameters(cls)


@cache  # resolving annotations is slow, and planning repeats it
def _parameters(cls: type) -> tuple[Parameter, ...]:
    if not dataclasses.is_dataclass(cls):
        return ()
    hints = _hints(cls)
    return tuple(
        Parameter(
            f.name,
            hints.get(f.name, Any),
            *_default(f),
            f.metadata.get("doc", ""),
            f.metadata.get("range", Range()),
            f.metadata.get("search"),
        )
        for f in dataclasses.fields(cls)
        if f.init
    )


def _hints(cls: type) -> dict[str, Any]:
    """Types of fields; Any for names that cannot be resolved."""
    from bench_core.data import Task
    from bench_core.protocols import BudgetedLearner, Dataset

    # plugins may import these only for type checking
    names = {"BudgetedLearner": BudgetedLearner, "Dataset": Dataset, "Task": Task}
    try:
        return get_type_hints(cls, localns=names)
    except NameError:  # imported only for type checking, or local to a function
        return get_type_hints(cls, localns=_Names(names))


class _Names(dict[str, Any]):
    """Namespace of annotations; an unknown name is replaced by Any."""

    def __missing__(self, name: str) -> Any:
        return getattr(typing, name, None) or getattr(builtins, name, Any)


def _default(f: dataclasses.Field[Any]) -> tuple[Any, bool]:
    if f.default is not dataclasses.MISSING:
        return f.default, False
    if f.default_factory is not dataclasses.MISSING:
        return f.default_factory(), False
    return None, True


def expand(
    cls: type, table: Mapping[str, Any], registry: Registry, where: str = ""
) -> tuple[Any, ...]:
    """Return all instances given by a table of values and grids, in the table's order.

    ``where`` begins error messages (``suites/yahoo.toml, [learners.miser]``). Raises UsageError,
    one line with the nearest names, for a wrong name or type.
    """
    by_name = {p.name: p for p in parameters(cls)}
    where = where or name_of(cls) or cls.__name__
    # {"trees": [10, 20], "rate": 0.1} has axes (10, 20) and (0.1,): two instances
    axes: dict[str, tuple[Any, ...]] = {}
    for key, value in table.items():
        if key not in by_name:
            raise UsageError(f"{where}: {unknown('parameter', key, by_name)}")
        axes[key] = _choices(by_name[key], value, registry, f"{where}: {key}")
    missing = [p.name for p in by_name.values() if p.required and p.name not in table]
    if missing:
        raise UsageError(f"{where}: parameter {missing[0]!r} has no default and must be given")
    # every combination, the last parameter changing fastest
    made = (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
    try:
        return tuple(resolved(cls(**values), registry.learner) for values in made)
    except ValueError as error:  # the class refuses a value or a combination
        raise UsageError(f"{where}: {error}") from error


def resolved(learner: Any, find: Callable[[str], type]) -> Any:
    """Replace names of learners among the parameters by those learners with their defaults.
    ``find`` is the registry's ``learner``; its errors are passed on.

    Raises ValueError if a value is out of its declared range, also in a nested learner.
    """
    for p in parameters(type(learner)):
        p.range.check(p.name, getattr(learner, p.name))
    held = {p.name: getattr(learner, p.name) for p in parameters(type(learner)) if p.holds_learner}
    learners = {
        name: resolved(find(value)() if isinstance(value, str) else value, find)
        for name, value in held.items()
    }
    # unchanged learners keep their identity, which distinguishes trials
    same = all(learners[name] is value for name, value in held.items())
    return learner if same else dataclasses.replace(learner, **learners)


def is_grid(p: Parameter, value: Any) -> bool:
    """True if a value is a grid: a list, or a list of lists for a tuple field."""
    if isinstance(value, list) and any(get_origin(m) is tuple for m in members(p.annotation)):
        return bool(value) and all(isinstance(v, list) for v in value)
    return isinstance(value, list)


def _choices(p: Parameter, value: Any, registry: Registry, where: str) -> tuple[Any, ...]:
    values = value if is_grid(p, value) else [value]
    if p.holds_learner:
        choices = [x for v in values for x in _nested(p, v, registry, where)]
    else:
        choices = [convert(v, p.annotation, where) for v in values]
    if not choices:
        raise UsageError(f"{where}: the grid is empty; give at least one value")
    return tuple(choices)


def _nested(p: Parameter, value: Any, registry: Registry, where: str) -> tuple[Any, ...]:
    # BudgetedLearner accepts any learner, Trees only tree learners
    wanted = learner_type(p.annotation)
    if value is None or (value == "none" and NoneType in members(p.annotation)):
        learners: tuple[Any, ...] = (None,)
    elif isinstance(value, str | Mapping):
        at = f"{where} = {value}" if isinstance(value, str) else where
        learners = expand(*held(p, value, registry, where), registry, at)
    elif hasattr(value, "fit"):
        learners = (value,)
    else:
        raise UsageError(f"{where}: expected a learner's name or table, got {value!r}")
    for learner in learners:
        if learner is not None and isinstance(wanted, type) and not isinstance(learner, wanted):
            raise UsageError(f"{where}: expected {in_words(wanted)}, got {_name_of(learner)}")
    return learners


def held(
    p: Parameter, value: str | Mapping[str, Any], registry: Registry, where: str
) -> tuple[type, dict[str, Any]]:
    """Class and table of the learner given by a name or table as a value of ``p``."""
    table = {"learner": value} if isinstance(value, str) else dict(value)
    name = table.pop("learner", p.default if isinstance(p.default, str) else None)
    if name is not None and not isinstance(name, str):
        shown = one_line(repr(name), 60)
        raise UsageError(f"{where}.learner: expected a learner's name, got {shown}")
    if name is not None:
        return registry.learner(name), table
    if p.default is None:
        raise UsageError(f"{where}: name the learner, as {where.split()[-1]}.learner = NAME")
    names = [f.name for f in dataclasses.fields(p.default) if f.init]
    values = {name: getattr(p.default, name) for name in names}
    lists = {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
    return type(p.default), lists | table


def _name_of(learner: Any) -> str:
    return name_of(learner) or type(learner).__name__


def as_json(instance: Any) -> dict[str, Any]:
    """Parameters of a learner or data set as canonical JSON values, in field order."""
    # part of keys and of the store, so a float's 1 and 1.0 must be written alike
    values = [(p, getattr(instance, p.name)) for p in parameters(type(instance))]
    return {
        p.name: {"learner": _name_of(v), **as_json(v)} if is_learner(v) else plain(v, p)
        for p, v in values
    }


def flat(values: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    """Return a learner's parameters, with nested learners' parameters as ``base.trees``."""
    flattened: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            inner = dict(value)
            flattened |= {of + name: inner.pop("learner", "...")} | flat(inner, f"{of}{name}.")
        else:
            flattened[of + name] = value
    return flattened


def encode(instance: Any) -> dict[str, Any]:
    """Encode a learner as JSON for another process: its class and its fields."""
    cls = type(instance)
    fields: dict[str, Any] = {}
    for p in parameters(cls):
        value = getattr(instance, p.name)
        fields[p.name] = encode(value) if is_learner(value) else plain(value, p)
    return {"class": remember_class(cls), "fields": fields}


def decode(spec: Mapping[str, Any]) -> Any:
    """Inverse of ``encode``."""
    cls = find_class(spec["class"])
    by_name = {p.name: p for p in parameters(cls)}
    values: dict[str, Any] = {}
    for name, value in spec["fields"].items():
        # a nested learner
        if isinstance(value, Mapping) and set(value) == {"class", "fields"}:
            values[name] = decode(value)
        else:
            values[name] = convert(value, by_name[name].annotation, f"{spec['class']}.{name}")
    return cls(**values)


def is_learner(value: Any) -> bool:
    """True if a value is a learner: a dataclass, whose fields are its settings, or without any."""
    return hasattr(value, "fit") and (dataclasses.is_dataclass(value) or not vars(value))


def plain(value: Any, p: Parameter) -> Any:
    """A parameter's value (not a learner) as one JSON value, independent of its spelling."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        items = [get_args(m)[:1] for m in members(p.annotation) if get_origin(m) is tuple]
        return [float(v) if items[:1] == [(float,)] else _scalar(v) for v in value]
    value = _scalar(value)
    wants_float = float in members(p.annotation) and int not in members(p.annotation)
    if wants_float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _scalar(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and not isinstance(value, type) else value


# Conversion of values to annotated types, and names of types


def convert(value: Any, annotation: Any, where: str) -> Any:
    """Convert ``value`` to the annotated type; UsageError begins with ``where``."""
    try:
        return _convert(value, annotation)
    except (TypeError, OverflowError):
        # in TOML and JSON syntax where possible; dates of a TOML file as text
        plain = isinstance(value, str | bool | list | dict)
        shown = json.dumps(value, default=str) if plain else repr(value)
        raise UsageError(f"{where}: expected {in_words(annotation)}, got {shown}") from None


def _convert(value: Any, annotation: Any) -> Any:
    """Convert a value; TypeError if it does not fit."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        # 3 stays an int in ``int | float``, and "none" is None in ``str | None``
        exact = [a for a in args if a in _PLAIN and type(value) is a and value != "none"]
        for one in exact or sorted(args, key=lambda a: a is str):
            with suppress(TypeError):
                return _convert(value, one)
    elif origin is tuple and isinstance(value, list | tuple):
        kinds = args[:1] * len(value) if args[1:] == (Ellipsis,) else args
        if len(kinds) == len(value):
            return tuple(map(_convert, value, kinds))
    elif annotation in (None, NoneType) and value in (None, "none"):
        return None
    elif annotation is float and isinstance(value, int | float) and not isinstance(value, bool):
        if value == value:  # NaN would give every trial a new key
            return float(value)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        if isinstance(value, annotation) or value in [member.value for member in annotation]:
            return annotation(value)
    elif annotation in (int, str, bool):
        if type(value) is annotation:
            return value
    elif origin is Literal:
        if any(value == a and type(value) is type(a) for a in args):
            return value
    else:
        kind = dict if origin is dict else annotation  # dict[str, int] is checked only as dict
        if annotation is Any or (isinstance(kind, type) and isinstance(value, kind)):
            return value
    raise TypeError


def members(annotation: Any) -> tuple[Any, ...]:
    """Members of a union, or the type alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def learner_type(annotation: Any) -> Any:
    """Learner class or protocol among an annotation's members, or None."""
    for member in members(annotation):
        if isinstance(member, type) and hasattr(member, "fit"):
            return member
    return None


_PLAIN = (int, float, str, bool)
_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a word",
    bool: "true or false",
    NoneType: "none",
    None: "none",
    Any: "any value",
}


def in_words(annotation: Any) -> str:
    """Name of a type in error messages, such as ``a whole number``."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin in (Union, UnionType):
        return " or ".join(map(in_words, args))
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin is dict:
        return "a table"
    if origin is tuple:
        if args[1:] == (Ellipsis,):
            return f"a list, each {in_words(args[0])}"
        return f"a list of {', '.join(map(in_words, args))}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "one of " + ", ".join(str(member.value) for member in annotation)
    if learner_type(annotation) is not None:
        return name_of(annotation) or "learner"
    return str(getattr(annotation, "__name__", annotation))
