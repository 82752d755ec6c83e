"""Options: fields of a request, each declared once with its help and its form.

    retries: int = declared(0, "How often a failed job is tried again.", whole(0, 100))

From that come the option of the command with its completion (``cli/options.py``), the argument of
``bench_core.run`` with its documentation (``api/arguments.py``), the check of values, and the
command that repeats a run (``invocation.py``).
"""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench_core.errors import UsageError, one_line, option


@dataclass(frozen=True, slots=True)
class Form:
    """A kind of values."""

    wanted: str  # what messages call them
    metavar: str  # stands for one in help
    read: Callable[[str], Any] = str  # takes a text of the command; ValueError where it cannot
    fits: Callable[[Any], bool] = lambda value: isinstance(value, str) and value != ""
    many: bool = False  # the value is a tuple, to which each text adds
    commas: bool = True  # several may stand in one text

    def of_text(self, text: str) -> Any:
        """The value of a text. Raises ValueError where it is none that can be used."""
        try:
            value = self.read(text)
            usable = bool(value) and all(map(self.fits, value)) if self.many else self.fits(value)
        except ValueError:
            usable = False
        if not usable:
            remedy = "" if text.strip() else "; leave the option out"
            raise ValueError(f"{text!r} is not {self.wanted}{remedy}")
        return value

    def checked(self, value: Any, where: str) -> Any:
        """A value as it is kept. Raises UsageError, which begins with ``where``, for one that
        cannot be used."""
        if self.many and not isinstance(value, tuple | list):
            raise UsageError(f"{where}: {short(value)} is not a list")
        for one in value if self.many else [value]:
            if not self.fits(one):
                raise UsageError(f"{where}: {short(one)} is not {self.wanted}")
        return tuple(value) if self.many else value


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


TEXT = Form("text", "NAME", fits=lambda value: isinstance(value, str))
NAMES = Form("a name", "NAMES", _names, many=True)
TEXTS = Form("text", "TEXT", lambda text: (text,), many=True, commas=False)
FLAG = Form("True or False", "", fits=lambda value: value in (True, False))


def choice(*known: str) -> Form:
    """One of these words, or "" for none."""
    return Form(f"one of {', '.join(known)}", "WORD", fits=lambda value: value in ("", *known))


def whole(least: int, most: float = math.inf) -> Form:
    """A whole number in a range."""
    between = f"from {least} to {most}" if most < math.inf else f">= {least}"
    wanted = f"a whole number {between}"
    return Form(wanted, "N", int, lambda v: isinstance(v, int) and least <= v <= most)


def whole_numbers(most: int) -> Form:
    """Whole numbers from 0, with ranges: ``0,1,2`` or ``0-2``."""

    def read(text: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for name in _names(text):
            first, dash, last = name.partition("-")
            if dash and int(last) - int(first) > 10_000:
                raise ValueError("so many were not meant")
            numbers += range(int(first), int(last) + 1) if dash else [int(name)]
        return tuple(numbers)

    wanted = f"a whole number from 0 to {most} or several, as 0,1,2 or 0-2"
    return Form(wanted, "NUMBERS", read, whole(0, most).fits, many=True)


def quantity(
    wanted: str, metavar: str, kind: type[int] | type[float], units: Mapping[str, float]
) -> Form:
    """A number with a unit out of a table, such as ``10m`` or ``4GiB``; 0 is no limit."""

    def read(text: str) -> float:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
        if match is None or match[2].lower() not in units:
            raise ValueError("no number with a unit")
        return kind(float(match[1]) * units[match[2].lower()])

    return Form(wanted, metavar, read, lambda v: isinstance(v, int | float) and 0 <= v < math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field of a request as its users see it."""

    name: str = ""  # of the field, and in Python
    default: Any
    help: str  # may name other options, as ``{data}``; each front writes them in its own way
    form: Form
    python: str = ""  # added to the help where Python takes more than texts
    short: str = ""  # the short flag of the command, such as ``-d``
    long: str = ""  # the long flag where it is not the field's name
    metavar: str = ""  # where it is not that of the form
    complete: str = ""  # the names that a shell offers
    usual: str = ""  # describes the default where its value does not
    variable: str = ""  # of the environment
    decides: bool = True  # else it is left out of the command that repeats a run

    @property
    def word(self) -> str:
        """The long flag without dashes, by which messages name the option (``errors.option``)."""
        return self.long or self.name.replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """As given in the command, the long one last."""
        return (*filter(None, [self.short]), f"--{self.word}")

    def check(self, value: Any) -> None:
        """Raise UsageError, which names the option, for a value that cannot be used."""
        # Frames and arrays, which Python takes too, cannot be compared with a text.
        if type(value) is not type(self.default) or value != self.default:
            self.form.checked(value, option(self.word))


_BY_DEFAULT: dict[Any, Form] = {"": TEXT, (): NAMES, False: FLAG}


def declared(default: Any, help: str, form: Form | None = None, **more: Any) -> Any:
    """A field that is an option; without a ``form`` the default tells text, names and flags.
    ``more`` are other fields of ``Option``."""
    made = Option(default=default, help=help, form=form or _BY_DEFAULT[default], **more)
    return dataclasses.field(default=default, metadata={"option": made})


def options_of(request: Any) -> dict[str, Option]:
    """The options of a class of requests by their fields' names, in order."""
    return {
        f.name: replace(f.metadata["option"], name=f.name)
        for f in dataclasses.fields(request)
        if "option" in f.metadata
    }


def help_of(described: Option, known: Mapping[str, Option]) -> str:
    """The help of an option in the spelling of the front that shows it."""
    return described.help.format_map({name: option(one.word) for name, one in known.items()})


def short(value: Any) -> str:
    """A value in a message."""
    return one_line(repr(value), 80)
