"""The arguments that Python takes for a request: their signature, documentation and spelling."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from inspect import Parameter, signature
from textwrap import fill, indent
from typing import Any, TypeVar

from bench_core.errors import spelt
from bench_core.planning.option import help_of, options_of
from bench_core.planning.request import RunRequest

Function = TypeVar("Function", bound=Callable[..., Any])


def in_python(request: type = RunRequest) -> AbstractContextManager[None]:
    """Messages made in the body name arguments (``task='binary'``, or ``task`` alone); an option
    that is none of the request's stays as in the command."""
    names = {option.word: option.name for option in options_of(request).values()}

    def spelling(word: str, like: str, value: object) -> str:
        if word not in names:
            return f"--{word} {like if value is None else value}".rstrip()
        given = like if value is None else repr(value)
        return f"{names[word]}={given}" if given else names[word]

    return spelt(spelling)


def taking(request: type) -> Callable[[Function], Function]:
    """Give a function of ``**options`` the arguments of a request, in its signature and after the
    ``Parameters`` of its docstring. What it is called with is checked against them."""
    known = options_of(request)
    with in_python(request):
        text = "\n".join(
            f"{option.name} : default {option.default!r}\n"
            + indent(fill(f"{help_of(option, known)} {option.python}", 88), "    ")
            for option in known.values()
        )

    def signed(function: Function) -> Function:
        own = signature(function)
        taken = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [
            Parameter(x.name, Parameter.KEYWORD_ONLY, default=x.default) for x in known.values()
        ]
        function.__signature__ = own.replace(parameters=taken + added)  # type: ignore[attr-defined]
        function.__doc__ = f"{(function.__doc__ or '').rstrip()}\n{indent(text, '    ')}\n    "
        return function

    return signed
