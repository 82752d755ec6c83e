"""Models as arrays and JSON: states inside the state of another, and those of plain dataclasses."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self, get_type_hints


def nest(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a state as ``name.entry``."""
    return {f"{name}.{key}": value for key, value in state.items()}


def unnest(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state that was nested under ``name``, empty where none was."""
    mark = f"{name}."
    return {key[len(mark) :]: value for key, value in state.items() if key.startswith(mark)}


class Stored:
    """A dataclass whose state is its fields; one that has a state of its own is nested."""

    __slots__ = ()

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        state: dict[str, Any] = {}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            whole = hasattr(value, "state")
            state |= nest(field.name, value.state()) if whole else {field.name: value}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild what ``state`` described."""
        kinds, values = get_type_hints(cls), {}
        for name in (field.name for field in fields(cls)):  # type: ignore[arg-type]
            here = name in state
            values[name] = state[name] if here else kinds[name].from_state(unnest(name, state))
        return cls(**values)
