"""The arguments that Python takes for a request: their signature, documentation and spelling."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from inspect import Parameter, signature
from textwrap import fill, indent
from typing import Any, TypeVar, cast

from bench_core.errors import spelt, unknown
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


def taking(request: type, *names: str) -> Callable[[Function], Function]:
    """Give a function of ``**options`` the arguments of a request, or those of these ``names``: in
    its signature, at the end of its docstring, and for the check of its calls."""
    known = options_of(request)
    with in_python(request):
        about = {
            name: f"{help_of(option, known)} {option.python}" for name, option in known.items()
        }
    known = {name: option for name, option in known.items() if not names or name in names}
    text = "\n".join(
        f"{name} : default {option.default!r}\n{indent(fill(about[name], 88), '    ')}"
        for name, option in known.items()
    )

    def signed(function: Function) -> Function:
        own = signature(function)
        taken = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken += [
            Parameter(x.name, Parameter.KEYWORD_ONLY, default=x.default) for x in known.values()
        ]
        allowed = [parameter.name for parameter in taken]

        @wraps(function)
        def checked(*args: Any, **given: Any) -> Any:
            for name in given:
                if name not in allowed:
                    raise TypeError(unknown("argument", name, allowed))
            return function(*args, **given)

        made: Any = checked
        made.__signature__ = own.replace(parameters=taken)
        made.__doc__ = f"{(function.__doc__ or '').rstrip()}\n{indent(text, '    ')}\n    "
        return cast(Function, checked)

    return signed
