"""Errors that a user can correct: one line with location, cause and remedy."""

import errno
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from unicodedata import category


class BenchError(Exception):
    """Base of all errors that the command line shows as one line, with exit status 2."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback: one line, as on the command line."""
        return [f"{type(self).__name__}: {self}"]


class InputError(BenchError):
    """Unusable input: the message names the file (and line), the error and the remedy."""


class UsageError(BenchError):
    """An unknown name, a wrong parameter or a contradiction between options."""


NO_MEMORY = ("out of memory", "bad_alloc", "bad allocation", "allocate memory", "memoryerror")
"""Parts of messages of compiled libraries, which seldom raise MemoryError."""


def lacks_memory(error: BaseException) -> bool:
    """True if an error, of any library, says that memory ran out."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return not isinstance(error, BenchError) and any(p in str(error).lower() for p in NO_MEMORY)


def check_memory(error: BaseException, place: object = "") -> None:
    """Raise MemoryError, with the place, for an error that lacks memory. Handlers call it before
    they blame a file or a plugin."""
    if lacks_memory(error):
        raise MemoryError(": ".join(filter(None, map(str, (place, error))))) from error


Spelling = Callable[[str, str, object], str]
"""Function of an option's name, a placeholder and a value that returns the option as text."""


def as_argument(name: str, like: str, value: object) -> str:
    """Format an option as an argument of Python: ``task='binary'``, ``task`` or ``suite=NAME``."""
    value = str(value) if isinstance(value, str) else value  # not an enumeration
    text = like if value is None else repr(value)
    return f"{name}={text}" if text else name


_spelling: Spelling = as_argument


def option(name: str, value: object = None, like: str = "") -> str:
    """Format an option for a message, by its name in ``RunRequest``; ``like`` is a placeholder for
    a value. The command line writes ``--task binary`` instead of ``task='binary'``."""
    return _spelling(name, like, value)


@contextmanager
def spelt(spelling: Spelling) -> Iterator[None]:
    """Format options in messages of the body, in all threads, by this function."""
    global _spelling
    before, _spelling = _spelling, spelling
    try:
        yield
    finally:
        _spelling = before


@contextmanager
def blaming(place: str) -> Iterator[None]:
    """Prefix messages of errors with a location."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


@contextmanager
def charging(culprit: str) -> Iterator[None]:
    """Turn an exception of a plugin's code into one line with the plugin's object and the location.
    Errors meant for users are passed on."""
    try:
        yield
    except BenchError:
        raise
    except Exception as error:
        check_memory(error, culprit)
        raise InputError(f"{culprit} fails ({fault(error)}); --debug shows more") from error


def fault(error: BaseException) -> str:
    """``ZeroDivisionError: division by zero, mine.py:51``."""
    # the innermost frame: the line that raised
    at = extract_tb(error.__traceback__)
    place = f", {Path(at[-1].filename).name}:{at[-1].lineno}" if at else ""
    return f"{type(error).__name__}: {error}{place}"


def one_line(text: str, most: int = 0) -> str:
    """Text without line breaks; control characters are escaped, as they could affect a terminal.

    The text is cut to ``most`` characters if not 0.
    """
    flat = " ".join((text[: 8 * most] if most else text).split())  # messages may be long
    flat = printable(flat)
    return flat if not most or len(flat) <= most else f"{flat[: most - 1]}…"


def printable(text: str) -> str:
    """Text with line breaks; control characters and changes of text direction are escaped, spaces
    of any width are kept."""
    odd = {c for c in set(text) if not c.isprintable() and c not in "\n\t" and category(c) != "Zs"}
    return text.translate({ord(c): ascii(c)[1:-1] for c in odd}) if odd else text


def no_formula(text: str) -> str:
    """Text for a spreadsheet cell that is not read as a formula; a number stays a number."""
    number = re.fullmatch(r"[+-]?\d*\.?\d+(e[+-]?\d+)?", text)
    return text if number or text[:1] not in tuple("=+-@\t\r") else f"'{text}"


def shortened(names: Iterable[str], most: int = 8) -> str:
    """Names, separated by commas; of a longer list the first: ``a, b, c and 31 more``."""
    every = [*names]
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if every[most:] else "")


def require(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for the first unknown name."""
    listed = list(known)
    if lacking := [name for name in names if name not in listed]:
        raise UsageError(unknown(kind, lacking[0], listed))


def _containing(word: str, names: Iterable[str]) -> list[str]:
    """Names that contain a word of three letters or more, if there are few: "cstc" suggests
    cstc-synthetic."""
    found = [name for name in names if word.lower() in name.lower()]
    return found if len(word) > 2 and len(found) <= 3 else []


def unknown(kind: str, name: object, names: Iterable[str], why: str = "") -> str:
    """Message for an unknown name: the nearest names, or the reason ``why``, or all names."""
    from difflib import get_close_matches

    # "misre" suggests miser instead of listing all forty names
    near = [other for other in names if other.lower() == str(name).lower()]
    near = near or _containing(str(name), names) or get_close_matches(str(name), list(names), n=3)
    hints = [f"did you mean {' or '.join(near)}?"] if near else []
    hints += [why] if why else []
    hints = hints or [f"known: {shortened(sorted(names)) or 'none'}"]
    return f"unknown {kind} {name!r}: {' '.join(hints)}"
