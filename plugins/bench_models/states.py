"""Models as arrays and JSON: nested states, and states of plain dataclasses."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self, get_args, get_origin, get_type_hints

from bench_core import find_class, remember_class


def nest(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a state as ``name.entry``."""
    return {f"{name}.{key}": value for key, value in state.items()}


def unnest(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state nested under ``name``; empty if there is none."""
    mark = f"{name}."
    return {key[len(mark) :]: value for key, value in state.items() if key.startswith(mark)}


class Stored:
    """A dataclass whose state is its fields. Fields with a state are nested, also inside a
    sequence. If a field allows several classes, the class is kept by name."""

    __slots__ = ()

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        kinds, state = get_type_hints(type(self)), dict[str, Any]()
        for field in fields(self):  # type: ignore[arg-type]
            name, value = field.name, getattr(self, field.name)
            if _member(kinds[name]):
                state[name] = len(value)
                for k, one in enumerate(value):
                    state |= nest(f"{name}.{k}", one.state())
            elif hasattr(value, "state"):
                state |= nest(name, value.state())
                if not _is_class(kinds[name]):
                    state[f"{name}.class"] = remember_class(type(value))
            else:
                state[name] = value
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the object from ``state``."""
        kinds, values = get_type_hints(cls), dict[str, Any]()
        for name in (field.name for field in fields(cls)):  # type: ignore[arg-type]
            member, inner = _member(kinds[name]), unnest(name, state)
            if member:
                parts = (unnest(str(k), inner) for k in range(state[name]))
                values[name] = [member.from_state(part) for part in parts]
            elif name in state:
                values[name] = state[name]
            else:
                plain = _is_class(kinds[name])
                kind: Any = kinds[name] if plain else find_class(inner["class"])
                values[name] = kind.from_state(inner)
        return cls(**values)


def _is_class(kind: Any) -> bool:
    return isinstance(kind, type) and kind is not Any  # a class from Python 3.11 on


def _member(kind: Any) -> Any:
    """The type of a sequence's members if it has a state, else None."""
    member = get_args(kind)[0] if get_origin(kind) is Sequence else None
    return member if hasattr(member, "from_state") else None
