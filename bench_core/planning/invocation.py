"""Command that repeats a run, from its stored request."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench_core.option_fields import FLAG, Option, options_of
from bench_core.planning.request import RunRequest

FROM_PYTHON = "(from Python)"
"""Suffix of names of data given as objects, and placeholder of such costs."""


def command(request: Mapping[str, Any], kind: type = RunRequest) -> str:
    """Return the command with all options that affect results; "" for data or costs that were
    objects."""
    if given_from_python(request):
        return ""
    kept = {option.name: value for option, value in _given(request, kind) if option.decides}
    return shell_line(words(kept, kind))


def words(request: Mapping[str, Any], kind: type = RunRequest) -> list[str]:
    """Return the words of ``bench run`` for the fields of a request of a kind, in order."""
    command = ["bench", "run"]
    for option, value in _given(request, kind):
        flag = f"--{option.word}"
        if option.form is FLAG:
            command.append(flag)
        elif option.form.many and not option.form.commas:
            command += [word for one in value for word in (flag, str(one))]
        else:
            values = value if option.form.many else [value]
            command += [
                flag,
                ",".join(f"{x:.15g}" if isinstance(x, float) else str(x) for x in values),
            ]
    return command


def _given(request: Mapping[str, Any], kind: type) -> Iterator[tuple[Option, Any]]:
    """Yield the options to write, with values; a single value may represent a list of one."""
    for option in options_of(kind).values():
        value = request.get(option.name, option.default)
        if option.form.many and not isinstance(value, list | tuple | Mapping):
            value = (value,) if value else ()
        default = option.default or ()
        same = list(value) == list(default) if option.form.many else value == option.default
        if not same and value not in (None, False, ""):
            yield option, value


def given_from_python(request: Mapping[str, Any]) -> bool:
    """True if data or costs of a run were objects, which a command cannot name."""
    given = [*request.get("data", ()), request.get("costs") or ""]
    return any(str(value).endswith(FROM_PYTHON) for value in given)


def shell_line(line: Iterable[str]) -> str:
    """Quote words as a line that bash and zsh split into the same words."""
    return " ".join(map(shell_word, line))


def shell_word(word: str) -> str:
    """Quote a word for a shell; characters that could control a terminal are escaped."""
    # the leading quote makes ``repr`` escape the other kind
    return shlex.quote(word) if word.isprintable() else f"$'{repr(chr(34) + word)[2:]}"


def toml_literal(value: Any) -> str:
    """Format a parameter's value for settings and suites; None is the word none."""
    if value is None:
        return '"none"'
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {toml_literal(v)}" for key, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
