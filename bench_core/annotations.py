"""Values of parameters against their annotated types, and these types in words."""

import json
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from bench_core.contracts import name_of
from bench_core.errors import UsageError

_HUGE = 10**300


def convert(value: Any, annotation: Any, where: str) -> Any:
    """``value`` as the annotated type, or UsageError naming ``where``."""
    try:
        return _convert(value, annotation)
    except (TypeError, OverflowError):
        raise UsageError(
            f"{where}: {in_words(annotation)} is wanted, not {_shown(value)}"
        ) from None


def _shown(value: Any) -> str:
    if isinstance(value, str | bool | list | dict):
        return json.dumps(value, default=str)  # dates of a TOML file
    if isinstance(value, int) and abs(value) >= _HUGE:  # Python prints none of many digits
        return "a number of more than 300 digits"
    return repr(value)


def _convert(value: Any, annotation: Any) -> Any:  # TypeError where it does not fit
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return _convert_union(value, args)
    if origin is tuple:
        return _convert_tuple(value, args)
    if annotation in (None, NoneType):
        if value is None or value == "none":
            return None
    elif annotation is float:
        if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
            return float(value)
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        if isinstance(value, annotation) or value in [member.value for member in annotation]:
            return annotation(value)
    elif _fits(value, annotation, origin, args):
        return value
    raise TypeError


def _fits(value: Any, annotation: Any, origin: Any, args: tuple[Any, ...]) -> bool:
    if annotation in (int, str, bool):
        return type(value) is annotation
    if origin is Literal:
        return any(value == a and type(value) is type(a) for a in args)
    kind = dict if origin is dict else annotation
    return annotation is Any or (isinstance(kind, type) and isinstance(value, kind))


def _convert_union(value: Any, args: tuple[Any, ...]) -> Any:
    for exact in args:  # 3 stays an int in ``int | float``
        if exact in (int, float, str, bool) and type(value) is exact and value != "none":
            return value
    for one in sorted(args, key=lambda a: a is str):  # "none" is None in ``str | None``
        try:
            return _convert(value, one)
        except TypeError:
            continue
    raise TypeError


def _convert_tuple(value: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    if len(args) == 2 and args[1] is Ellipsis:
        return tuple(_convert(v, args[0]) for v in value)
    if len(value) != len(args):
        raise TypeError
    return tuple(_convert(v, a) for v, a in zip(value, args, strict=True))


def members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, or the one type."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def learner_type(annotation: Any) -> Any:
    """The learner class or protocol among an annotation's members, or None."""
    for member in members(annotation):
        if isinstance(member, type) and hasattr(member, "fit"):
            return member
    return None


_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a word",
    bool: "true or false",
    NoneType: "none",
    None: "none",
    Any: "any value",
}


def in_words(annotation: Any) -> str:
    """The type as an error message names it, such as ``a whole number``."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin in (Union, UnionType):
        return " or ".join(in_words(a) for a in args)
    if origin is Literal:
        return "one of " + ", ".join(str(a) for a in args)
    if origin is dict:
        return "a table"
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return f"a list, each {in_words(args[0])}"
    if origin is tuple:
        return "a list of " + ", ".join(in_words(a) for a in args)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "one of " + ", ".join(str(m.value) for m in annotation)
    if learner_type(annotation) is not None:
        return name_of(annotation) or "learner"
    return str(getattr(annotation, "__name__", annotation))
