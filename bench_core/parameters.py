"""Hyper-parameters: the fields of a learner's frozen dataclass."""

from __future__ import annotations

import dataclasses
from typing import Any


def param(default: Any, doc: str) -> Any:
    """A hyper-parameter: its default and one line of documentation.

    >>> @dataclasses.dataclass(frozen=True)
    ... class MyLearner:
    ...     trees: int = param(300, "number of boosted trees")
    """
    return dataclasses.field(default=default, metadata={"doc": doc})
