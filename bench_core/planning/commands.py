"""The command, or the call of Python, that makes a run again from the request kept in the store."""

import json
import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from bench_core.errors import one_line

FROM_PYTHON = "(from Python)"
"""Follows the name of data that were given as objects, and stands for such costs."""

_FLAGS = {"groups": "group", "metrics": "metric", "plugins": "plugin", "settings": "set"}
_REPEATED = ("groups", "settings")
_LEFT_OUT = {"workers", "threads", "executor", "fresh", "store", "data_dir"}
_LEFT_OUT |= {"timeout", "memory", "retries"}
_USUAL = {"index_base": 1, "audit": "sample"}


def command(request: Mapping[str, Any]) -> str:
    """What decides the run's results, not how it is carried out; the call of Python where data or
    costs came from there."""
    if given_from_python(request):
        return python_call(request, request.get("learners") or ())
    kept = {name: value for name, value in request.items() if name not in _LEFT_OUT}
    return shell_line(words(kept))


def shell_line(words: Iterable[str]) -> str:
    """Words as a line that bash and zsh take apart into them again; what a terminal may obey, or
    would not show, is written as escapes."""
    return " ".join(map(shell_word, words))


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


def words(request: Mapping[str, Any]) -> list[str]:
    """The words of ``bench run`` for the fields of a request, in their order."""
    made = ["bench", "run"]
    for name, value in request.items():
        if not value or value == _USUAL.get(name):
            continue
        flag = f"--{_FLAGS.get(name, name).replace('_', '-')}"
        if value is True:
            made.append(flag)
        elif name in _REPEATED:
            made += [word for one in value for word in (flag, str(one))]
        else:
            several = value if isinstance(value, list | tuple) else [value]
            made += [flag, ",".join(map(_text, several))]
    return made


def _text(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


_VARIABLES = {"data": "X, y", "costs": "costs=costs"}


def given_from_python(request: Mapping[str, Any]) -> bool:
    """Whether data or costs of a run were objects, which no command can name."""
    given = [*request.get("data", ()), request.get("costs") or ""]
    return any(str(value).endswith(FROM_PYTHON) for value in given)


def python_call(request: Mapping[str, Any], learners: Any) -> str:
    """The call that makes the run again with these learners; ``X``, ``y`` and ``costs`` stand for
    what it was given."""
    words = []
    for name, value in {**request, "learners": learners}.items():
        if name in _LEFT_OUT or not value or value == _USUAL.get(name):
            continue
        several = value if isinstance(value, list | tuple) else [value]
        if str(several[0]).endswith(FROM_PYTHON):
            words.append(_VARIABLES[name])
        elif name != "settings" or not isinstance(learners, Mapping):
            words.append(f"{name}={value!r}")
    words.sort(key=lambda word: word != _VARIABLES["data"])
    return one_line(f"bench_core.run({', '.join(words)})")


def toml_literal(value: Any) -> str:
    """A parameter's value as ``--set`` and suites spell it; no value is the word none."""
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
