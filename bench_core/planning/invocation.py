"""The command, or the call of Python, that repeats a run from the request kept in the store."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench_core.errors import one_line
from bench_core.planning.option import Field, is_left_out, options_of, written
from bench_core.planning.request import RunRequest

FROM_PYTHON = "(from Python)"
"""Follows the name of data that were given as objects, and stands for such costs."""

_VARIABLES = {"data": "X, y", "costs": "costs=costs"}


def command(request: Mapping[str, Any], kind: type = RunRequest) -> str:
    """The command with all that decides the run's results, not how it is carried out; the call of
    Python where data or costs came from there."""
    if given_from_python(request):
        return python_call(request, request.get("learners") or ())
    kept = {field.name: value for field, value in _given(request, kind) if field.option.decides}
    return shell_line(words(kept, kind))


def words(request: Mapping[str, Any], kind: type = RunRequest) -> list[str]:
    """The words of ``bench run`` for the fields of a request of a kind, in order."""
    made = ["bench", "run"]
    for field, value in _given(request, kind):
        form, flag = field.option.form, f"--{field.word}"
        if form.flag:
            made.append(flag)
        elif form.many and not form.commas:
            made += [word for one in value for word in (flag, str(one))]
        else:
            made += [flag, ",".join(map(written, value if form.many else [value]))]
    return made


def _given(request: Mapping[str, Any], kind: type) -> Iterator[tuple[Field, Any]]:
    """The options of a request that must be written, with their values; one may stand for a list
    of one."""
    for field in options_of(kind).values():
        value = request.get(field.name, field.default)
        if field.option.form.many and not isinstance(value, list | tuple | Mapping):
            value = (value,) if value else ()
        if not is_left_out(value, field.default):
            yield field, value


def given_from_python(request: Mapping[str, Any]) -> bool:
    """True where data or costs of a run were objects, which no command can name."""
    given = [*request.get("data", ()), request.get("costs") or ""]
    return any(str(value).endswith(FROM_PYTHON) for value in given)


def python_call(request: Mapping[str, Any], learners: Any) -> str:
    """The call that repeats the run with these learners; ``X``, ``y`` and ``costs`` stand for the
    objects that it was given."""
    made = []
    for field, value in _given({**request, "learners": learners}, RunRequest):
        name, several = field.name, value if isinstance(value, list | tuple) else [value]
        if not field.option.decides:
            continue
        if name in _VARIABLES and str(several[0]).endswith(FROM_PYTHON):
            made.append(_VARIABLES[name])
        elif name != "settings" or not isinstance(learners, Mapping):
            made.append(f"{name}={value!r}")
    made.sort(key=lambda word: word != _VARIABLES["data"])
    return one_line(f"bench_core.run({', '.join(made)})")


def shell_line(line: Iterable[str]) -> str:
    """Words as a line that bash and zsh take apart into them again; characters that a terminal may
    obey, or would not show, are written as escapes."""
    return " ".join(map(shell_word, line))


def shell_word(word: str) -> str:
    """One word of such a line: ``$'...'`` where a character is not printable, byte by byte."""
    return shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_shell_character, word))}'"


def _shell_character(character: str) -> str:
    if character in "'\\":
        return f"\\{character}"
    if character.isprintable():
        return character
    wild = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", wild))


def toml_literal(value: Any) -> str:
    """A parameter's value as settings and suites spell it; no value is the word none."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {toml_literal(v)}" for key, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_literal, value))}]"
    return str(value)
