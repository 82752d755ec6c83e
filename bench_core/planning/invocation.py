"""The command, or the call of Python, that repeats a run from the request kept in the store."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench_core.errors import one_line
from bench_core.planning.request import FLAG, Option, RunRequest, options_of

FROM_PYTHON = "(from Python)"
"""Follows the name of data that were given as objects, and stands for such costs."""


def command(request: Mapping[str, Any], kind: type = RunRequest) -> str:
    """The command with all that decides the run's results, not how it is carried out; the call of
    Python where data or costs came from there."""
    if given_from_python(request):
        return python_call(request, request.get("learners") or ())
    kept = {option.name: value for option, value in _given(request, kind) if option.decides}
    return shell_line(words(kept, kind))


def words(request: Mapping[str, Any], kind: type = RunRequest) -> list[str]:
    """The words of ``bench run`` for the fields of a request of a kind, in order."""
    made = ["bench", "run"]
    for option, value in _given(request, kind):
        flag = f"--{option.word}"
        if option.form is FLAG:
            made.append(flag)
        elif option.form.many and not option.form.commas:
            made += [word for one in value for word in (flag, str(one))]
        else:
            made += [flag, ",".join(map(_written, value if option.form.many else [value]))]
    return made


def _given(request: Mapping[str, Any], kind: type) -> Iterator[tuple[Option, Any]]:
    """The options of a request that must be written, with their values; one may stand for a list
    of one."""
    for option in options_of(kind).values():
        value = request.get(option.name, option.default)
        if option.form.many and not isinstance(value, list | tuple | Mapping):
            value = (value,) if value else ()
        default = option.default or ()
        same = list(value) == list(default) if option.form.many else value == option.default
        if not same and value not in (None, False, ""):
            yield option, value


def _written(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def given_from_python(request: Mapping[str, Any]) -> bool:
    """True where data or costs of a run were objects, which no command can name."""
    given = [*request.get("data", ()), request.get("costs") or ""]
    return any(str(value).endswith(FROM_PYTHON) for value in given)


def python_call(request: Mapping[str, Any], learners: Any) -> str:
    """The call that repeats the run with these learners; ``X``, ``y`` and ``costs`` stand for the
    objects that it was given."""
    made: list[str] = []
    for option, value in _given({**request, "learners": learners}, RunRequest):
        if option.name == "data" and str(value[0]).endswith(FROM_PYTHON):
            made.insert(0, "X, y")
        elif value == FROM_PYTHON:
            made.append("costs=costs")
        elif option.decides and not (option.name == "settings" and isinstance(learners, Mapping)):
            made.append(f"{option.name}={value!r}")
    return one_line(f"bench_core.run({', '.join(made)})")


def shell_line(line: Iterable[str]) -> str:
    """Words as a line that bash and zsh take apart into them again."""
    return " ".join(map(shell_word, line))


def shell_word(word: str) -> str:
    """A word of such a line; characters that a terminal may obey are written as escapes."""
    # the quote in front makes ``repr`` escape the other kind
    return shlex.quote(word) if word.isprintable() else f"$'{repr(chr(34) + word)[2:]}"


def toml_literal(value: Any) -> str:
    """A parameter's value as settings and suites spell it; no value is the word none."""
    if value is None:
        return '"none"'
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {toml_literal(v)}" for key, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_literal, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)
