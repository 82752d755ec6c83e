"""The arrays of a row on its way through compiled code."""

from typing import Any, NamedTuple


class Cells(NamedTuple):
    """What is known of a row; ``f`` features, ``u`` uses of trees."""

    values: Any  # float32 (f,)
    keys: Any  # uint32 (2 f + 1,), two places of each; the last is for leaves
    have: Any  # uint8 (f,): whether the value is there
    need: Any  # uint8 (2 f + 1,): whether a tree or a column has come to the place
    at: Any  # uint32 or uint64 (u,): the links of the nodes that trees have come to


class Row(NamedTuple):
    """A row on its way."""

    cells: Cells
    asked: Any  # uint32 (f,): room for features to ask for
    left: Any  # uint32 (f,): features that were not needed yet, rising, where not at hand
    bought: Any  # uint8 (s,)
    place: Any
    sums: Any
