"""States of models inside the state of another: names with a prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def nest(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a state as ``name.entry``."""
    return {f"{name}.{key}": value for key, value in state.items()}


def unnest(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state that was nested under ``name``, empty where none was."""
    mark = f"{name}."
    return {key[len(mark) :]: value for key, value in state.items() if key.startswith(mark)}
