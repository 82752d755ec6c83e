"""Options: fields of a dataclass, each with its help, check and default.

    retries: int = declared(0, "How often a failed job is tried again.", whole_number(0, 100))

Such a field of ``RunRequest`` or ``TableOptions`` defines the command's option with its completion
(``cli/options.py``) and the argument of ``bench_core.run`` with its documentation
(``api/arguments.py``). It also defines the check of values, the command that repeats a run
(``planning/request.py``) and, of ``TableOptions``, the key of ``datasets.toml``.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench_core.errors import UsageError, one_line, option, require


@dataclass(frozen=True, slots=True)
class Form:
    """Type of an option's values."""

    wanted: str  # name in messages
    metavar: str  # placeholder in help
    read: Callable[[str], Any] = str  # converts a text of the command; ValueError if invalid
    fits: Callable[[Any], bool] = lambda value: isinstance(value, str) and value != ""
    many: bool = False  # the value is a tuple; each text adds to it
    commas: bool = True  # one text may hold several values

    def of_text(self, text: str) -> Any:
        """Convert a text to a value. Raises ValueError if it is invalid."""
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
        """Convert a value to its stored form; UsageError, with ``where``, if it is invalid."""
        if self.many and not isinstance(value, tuple | list):
            raise UsageError(f"{where}: {short(value)} is not a list")
        for one in value if self.many else [value]:
            if not self.fits(one):
                raise UsageError(f"{where}: {short(one)} is not {self.wanted}")
        return tuple(value) if self.many else value


def listed(text: str, exists: Callable[[str], bool] = lambda _: False) -> tuple[str, ...]:
    """Return the names in a text, separated by commas.

    A name that exists is meant as it is written, with its commas. Others may have commas in
    parentheses, as ``ndcg@5(a=1,b=2)``.
    """
    words = re.split(r",(?![^(]*\))", text) if not exists(text) else [text]
    names: list[str] = []
    while words:
        most = min(len(words), _MOST_COMMAS)
        several = (k for k in range(most, 1, -1) if exists(",".join(words[:k]).strip()))
        count = next(several, 1)
        names.append(",".join(words[:count]).strip())
        del words[:count]
    return tuple(filter(None, names))


def chosen(kind: str, texts: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names in lists. Raises UsageError for an unknown one."""
    every = list(known)
    names = dict.fromkeys(n for text in texts for n in listed(text, every.__contains__))
    require(kind, names, every)
    return tuple(names)


_MOST_COMMAS = 20  # in a name that is looked up

TEXT = Form("text", "NAME", fits=lambda value: isinstance(value, str))
NAMES = Form("a name", "NAMES", listed, many=True)
TEXTS = Form("text", "TEXT", lambda text: (text,), many=True, commas=False)
FLAG = Form("True or False", "", fits=lambda value: value in (True, False))
FILE = replace(TEXT, metavar="FILE")
COLUMN = replace(TEXT, metavar="COLUMN")


def choice(*known: str) -> Form:
    """Form of one of these words, or "" for none."""
    return Form(f"one of {', '.join(known)}", "WORD", fits=lambda value: value in ("", *known))


def whole_number(least: int, most: float = math.inf) -> Form:
    """Form of an integer in a range."""
    between = f"from {least} to {most}" if most < math.inf else f">= {least}"
    wanted = f"a whole number {between}"
    return Form(wanted, "N", int, lambda v: isinstance(v, int) and least <= v <= most)


def whole_numbers(most: int) -> Form:
    """Form of integers from 0, with ranges: ``0,1,2`` or ``0-2``."""

    def read(text: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for name in listed(text):
            first, dash, last = name.partition("-")
            if dash and not 0 <= int(last) - int(first) <= 10_000:
                raise ValueError("none, or too many")
            numbers += range(int(first), int(last) + 1) if dash else [int(name)]
        return tuple(numbers)

    wanted = f"a whole number from 0 to {most} or several, as 0,1,2 or 0-2"
    return Form(wanted, "NUMBERS", read, whole_number(0, most).fits, many=True)


def quantity(
    wanted: str,
    metavar: str,
    kind: type[int] | type[float],
    units: Mapping[str, float],
    least: float = 0,
) -> Form:
    """Form of a number with a unit from a table, such as ``10m`` or ``4GiB``; 0 means no limit."""

    def read(text: str) -> float:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
        if match is None or match[2].lower() not in units:
            raise ValueError("no number with a unit")
        return kind(float(match[1]) * units[match[2].lower()])

    def fits(value: Any) -> bool:
        return isinstance(value, int | float) and (value == 0 or least <= value < math.inf)

    return Form(wanted, metavar, read, fits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field of a request as users see it."""

    name: str = ""  # name of the field and in Python
    default: Any
    help: str  # ``{data}`` is another option, in the interface's spelling
    form: Form
    python: str = ""  # additional help for Python
    short: str = ""  # the short flag of the command, such as ``-d``
    long: str = ""  # long flag, if not the field's name
    metavar: str = ""  # placeholder, if not the form's
    usual: str = ""  # description of the default, instead of its value
    variable: str = ""  # environment variable
    decides: bool = True  # False: omitted from the command that repeats a run

    @property
    def word(self) -> str:
        """The long flag without dashes, used in messages (``errors.option``)."""
        return self.long or self.name.replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of the command, the long one last."""
        return (*filter(None, [self.short]), f"--{self.word}")

    def check(self, value: Any) -> None:
        """Raise UsageError, which names the option, for an invalid value."""
        # Frames and arrays, accepted from Python, cannot be compared with a text.
        if type(value) is not type(self.default) or value != self.default:
            self.form.checked(value, option(self.name))


_BY_DEFAULT: dict[Any, Form] = {"": TEXT, (): NAMES, False: FLAG}


def declared(default: Any, help: str, form: Form | None = None, **more: Any) -> Any:
    """Declare a field as an option; without a ``form`` the default determines text, names and
    flags. ``more`` are other fields of ``Option``."""
    made = Option(default=default, help=help, form=form or _BY_DEFAULT[default], **more)
    return dataclasses.field(default=default, metadata={"option": made})


def options_of(request: Any) -> dict[str, Option]:
    """Return the options of a class of requests by field name, in order."""
    return {
        f.name: replace(f.metadata["option"], name=f.name)
        for f in dataclasses.fields(request)
        if "option" in f.metadata
    }


def short(value: Any) -> str:
    """Shorten a value for a message."""
    return one_line(repr(value), 80)
