"""The arguments that Python takes for a request: their signature, documentation and spelling."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from inspect import Parameter, Signature, signature
from textwrap import indent, wrap
from typing import Any, TypeVar

from bench_core.errors import spelt
from bench_core.planning.option import Field, help_of, options_of
from bench_core.planning.request import RunRequest

Function = TypeVar("Function", bound=Callable[..., Any])


def python_spelling(request: type) -> Callable[[str, str, object], str]:
    """Writes options as arguments: ``task='binary'``, and ``task`` alone; an option that is none
    of the request's stays as in the command."""
    names = {field.word: field.name for field in options_of(request).values()}

    def spelling(word: str, like: str, value: object) -> str:
        if word not in names:
            return f"--{word} {like if value is None else value}".rstrip()
        if value is None:
            return f"{names[word]}={like}" if like else names[word]
        return f"{names[word]}={value!r}"

    return spelling


def in_python() -> AbstractContextManager[None]:
    """Messages made in the body name arguments, not options of the command."""
    return spelt(python_spelling(RunRequest))


def taking(request: type) -> Callable[[Function], Function]:
    """Give a function of ``**options`` the arguments of a request, in its signature and after the
    ``Parameters`` of its docstring. What it is called with is checked against them."""

    def signed(function: Function) -> Function:
        function.__signature__ = _signature(function, request)  # type: ignore[attr-defined]
        function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n{_documentation(request)}"
        return function

    return signed


def _signature(function: Callable[..., Any], request: type) -> Signature:
    own = [p for p in signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
    known = {p.name for p in own}
    added = [
        Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default)
        for field in options_of(request).values()
        if field.name not in known
    ]
    return Signature([*own, *added], return_annotation=signature(function).return_annotation)


def _documentation(request: type) -> str:
    known = options_of(request)
    with spelt(python_spelling(request)):
        described = [_described(field, help_of(field, known)) for field in known.values()]
    return indent("\n".join(described), "    ") + "\n    "


def _described(field: Field, help: str) -> str:
    text = f"{help} {field.option.python}".rstrip()
    lines = wrap(text, 92, initial_indent="    ", subsequent_indent="    ")
    return "\n".join([f"{field.name} : default {field.default!r}", *lines])
