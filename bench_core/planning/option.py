"""Options: how a field of a request is named, read, written, checked and documented.

A field is declared once::

    retries: Annotated[int, Option("How often a failed job is tried again.", whole(0, 100))] = 0

From that come the option of the command with its help and completion (``cli/options.py``), the
argument of ``bench_core.run`` with its documentation (``api/keywords.py``), the check of values,
and the command that repeats a run (``invocation.py``).
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any

from bench_core.errors import one_line, option, unknown


@dataclass(frozen=True, slots=True)
class Form:
    """A way of writing values. ``read`` turns a text of the command into a value (ValueError where
    it cannot), ``fault`` is why a value cannot be used, "" where it can.

    ``many``: the value is a tuple, to which each text adds; ``commas``: several stand in one text.
    """

    read: Callable[[str], Any]
    fault: Callable[[Any], str]
    many: bool = False
    commas: bool = True
    flag: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """The description of a field for its users.

    ``help`` may name other options, as ``{data}`` or ``{data:FILE}``; each front writes them in
    its own way. ``python`` is added where Python takes more than texts. ``flags`` are those of the
    command where the field's name is not enough, ``complete`` says which names a shell offers,
    ``usual`` describes the default, ``variable`` is one of the environment. What decides no result
    (``decides``) is left out of the command that repeats a run.
    """

    help: str
    form: Form
    python: str = ""
    flags: tuple[str, ...] = ()
    metavar: str = ""
    complete: str = ""
    usual: str = ""
    variable: str = ""
    decides: bool = True


@dataclass(frozen=True, slots=True)
class Field:
    """An option with the name and the default of its field."""

    name: str
    default: Any
    option: Option

    @property
    def flags(self) -> tuple[str, ...]:
        """As given in the command, the long one last."""
        return self.option.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def word(self) -> str:
        """The long flag without dashes, by which messages name the option (``errors.option``)."""
        return self.flags[-1].removeprefix("--")

    def fault(self, value: Any) -> str:
        """Why a value cannot be used, in one line, or "" where it can."""
        if value == self.default and isinstance(value, type(self.default)):
            return ""
        form = self.option.form
        if form.many and not isinstance(value, tuple | list):
            return f"{self.text}: {short(value)} is not a list"
        faults = map(form.fault, value if form.many else [value])
        return next((f"{self.text}: {fault}" for fault in faults if fault), "")

    @property
    def text(self) -> str:
        """The option as the reader of a message knows it."""
        return option(self.word)


def options_of(request: Any) -> dict[str, Field]:
    """The options of a class of requests by their fields' names, in order."""
    return _options_of(request)


@cache
def _options_of(request: Any) -> dict[str, Field]:
    found = {}
    for field in fields(request):
        described = [x for x in getattr(field.type, "__metadata__", ()) if isinstance(x, Option)]
        if described and field.default is not MISSING:
            found[field.name] = Field(field.name, field.default, described[0])
    return found


class _Mention:
    """An option in a help text: ``{data}``, or ``{data:FILE}`` with the placeholder of a value."""

    def __init__(self, word: str) -> None:
        self._word = word

    def __format__(self, like: str) -> str:
        return option(self._word, like=like)


def help_of(field: Field, known: Mapping[str, Field]) -> str:
    """The help of an option in the spelling of the front that shows it."""
    return field.option.help.format_map({name: _Mention(f.word) for name, f in known.items()})


def short(value: Any) -> str:
    """A value in a message."""
    return one_line(repr(value), 80)


def _text_fault(value: Any) -> str:
    return "" if isinstance(value, str) else f"must be text, not {short(value)}"


def _name_fault(value: Any) -> str:
    return "" if isinstance(value, str) and value else f"must be names or texts, not {short(value)}"


def _bool_fault(value: Any) -> str:
    return "" if value in (True, False) else f"must be True or False, not {short(value)}"


def _names(text: str) -> tuple[str, ...]:
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise ValueError("an empty list: write a name, or leave the option out")
    return tuple(found)


def _one_text(text: str) -> tuple[str, ...]:
    return (text,)


TEXT = Form(str, _text_fault)
NAMES = Form(_names, _name_fault, many=True)
TEXTS = Form(_one_text, _name_fault, many=True, commas=False)
FLAG = Form(bool, _bool_fault, flag=True)


def choice(*known: str) -> Form:
    """One of these words."""

    def fault(value: Any) -> str:
        return "" if value in known else unknown("value", value, list(filter(None, known)))

    return Form(str, fault)


def whole(least: int, most: int | None = None, unit: str = "number") -> Form:
    """A whole number in a range."""
    between = f"from {least} to {most}" if most is not None else f">= {least}"

    def fault(value: Any) -> str:
        fits = isinstance(value, int) and least <= value and (most is None or value <= most)
        return "" if fits else f"{short(value)} is not a whole {unit} {between}"

    def read(text: str) -> int:
        number = int(text) if re.fullmatch(r"[+-]?\d+", text) else text
        if why := fault(number):
            raise ValueError(why)
        return int(number)

    return Form(read, fault)


def number(least: float) -> Form:
    """A number of at least this size."""

    def fault(value: Any) -> str:
        fits = isinstance(value, int | float) and least <= value < math.inf
        return "" if fits else f"{short(value)} is not a number >= {least:g}"

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if fault(found):
            raise ValueError(f"{text!r} is not a number >= {least:g}")
        return found

    return Form(read, fault)


def whole_numbers(most: int) -> Form:
    """Whole numbers from 0, with ranges: ``0,1,2`` or ``0-2``."""

    def read(text: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for name in _names(text):
            match = re.fullmatch(r"(\d+)(?:-(\d+))?", name)
            last = int(match[2] or match[1]) if match else -1
            if match is None or not int(match[1]) <= last < int(match[1]) + 10_000:
                raise ValueError(f"{name!r} is not a whole number or range: write 0,1,2 or 0-2")
            numbers.extend(range(int(match[1]), last + 1))
        return tuple(numbers)

    return Form(read, whole(0, most).fault, many=True)


def quantity(
    noun: str, number: type[int] | type[float], units: Mapping[str, float], example: str
) -> Form:
    """A ``number`` with a unit out of a table, such as ``10m`` or ``4GiB``; 0 is no limit."""

    def read(text: str) -> float:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
        unit = units.get(match[2].lower()) if match else None
        if match is None or unit is None or float(match[1]) == 0:
            raise ValueError(f"{text!r} is not {noun}: write {example}")
        return number(float(match[1]) * unit)

    def fault(value: Any) -> str:
        fits = isinstance(value, int | float) and value >= 0
        return "" if fits else f"must be a number >= 0, not {short(value)}"

    return Form(read, fault)


def written(value: Any) -> str:
    """A value in the command."""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def is_left_out(value: Any, default: Any) -> bool:
    """True for a value that need not be written: the default, or nothing."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return not value or list(value) == list(default or ())
    return value is None or value is False or value == "" or value == default
