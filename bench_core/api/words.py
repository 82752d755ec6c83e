"""Messages for people who call ``bench_core.run``: keywords in place of the command's options."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from types import MappingProxyType

from bench_core.errors import BenchError
from bench_core.planning.request import RunRequest

OPTIONS = {f.name.replace("_", "-"): f.name for f in fields(RunRequest)}
OPTIONS |= {"metric": "metrics", "set": "settings", "group": "groups", "plugin": "plugins"}
FLAGS = ("fresh", "strict-data")
NOTHING = "give --suite NAME or --data NAME_OR_FILE"
_NAMES = "|".join(sorted(OPTIONS, key=len, reverse=True))
_OPTION = re.compile(rf"--({_NAMES})\b(?: ([A-Z_]+|\d)\b| (\S+)(?=: ))?")
_SETTING = re.compile(r"--set (\S+?)(?=[:,]? |$)")
_MODULE = re.compile(r"(?<![\w-])-p (\S+?)(?=[:,]? |$)")
_SUBJECT = re.compile(r":| must| means| is | are | holds| with ")


def in_python(message: str, given: Mapping[str, str] = MappingProxyType({})) -> str:
    """The message with ``task=`` in place of ``--task``, ``fresh=True`` in place of ``--fresh``;
    settings as the caller gave them (``given``, by setting) where that is known."""
    message = message.replace(NOTHING, "give X and y, suite=NAME or data=NAME_OR_FILE")
    for setting in sorted(given, key=len, reverse=True):
        message = message.replace(f"--set {setting}", given[setting])
    message = _SETTING.sub(lambda found: f"settings={found[1]!r}", message)
    message = _MODULE.sub(lambda found: f"plugins={found[1]!r}", message)
    return _OPTION.sub(_keyword, message)


def _keyword(option: re.Match[str]) -> str:
    name = OPTIONS[option[1]]
    if option[3]:
        return f"{name}={option[3]!r}"
    if option[1] in FLAGS and not option[2]:
        return f"{name}=True"
    subject = not option[2] and _SUBJECT.match(option.string, option.end())
    return name if subject else f"{name}={option[2] or ''}"


@contextmanager
def speaking_python(of_python: bool = True) -> Iterator[dict[str, str]]:
    """Errors of what is done inside speak of keywords, not of options; the value takes settings and
    how the caller gave them."""
    given: dict[str, str] = {}
    try:
        yield given
    except BenchError as error:
        if not of_python:
            raise
        raise type(error)(in_python(str(error), given)) from None
