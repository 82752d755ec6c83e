"""Hyper-parameters of boosting."""

from dataclasses import dataclass
from typing import Literal

_CHOICES = {"order": ("best", "level"), "stop": ("net", "raw"), "charge": ("tree", "node")}


@dataclass(frozen=True, slots=True)
class Settings:
    """Hyper-parameters of ``boost``. Raises ValueError for values out of range.

    ``second_order``: Newton steps from the loss's hessians; otherwise every row has hessian 1
    (times weight and multiplicity), which is least squares on the residuals.
    ``order``: ``"best"`` splits the open leaf of highest net gain next; ``"level"`` the first one
    with positive net gain, level by level and left to right.
    ``stop``: ``"net"`` ends a tree when no net gain is positive, and training when a root is left
    unsplit; ``"raw"`` continues while a raw gain is positive, choosing by net gain.
    ``charge``: ``"tree"`` pays a coupled sensor once, effective at once; ``"node"`` charges at
    every node of the first tree that uses it and always splits (level order only).
    """

    trees: int = 300  # boosting iterations, each of one tree per output
    learning_rate: float = 0.1
    max_depth: int | None = 4  # split levels, None = no limit
    max_leaves: int | None = 16  # None = no limit
    min_rows: int = 20  # least multiplicity in a child
    min_hessian: float = 1e-3  # least sum of hessians in a child, second order only
    l2: float = 0.0  # added to every denominator
    second_order: bool = True
    order: Literal["best", "level"] = "best"
    stop: Literal["net", "raw"] = "net"
    charge: Literal["tree", "node"] = "tree"

    def __post_init__(self) -> None:
        for name, least in (("trees", 0), ("max_depth", 0), ("max_leaves", 1), ("min_rows", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        if self.max_depth is None and self.max_leaves is None:
            raise ValueError("max_depth and max_leaves cannot both be without limit")
        if not (self.learning_rate > 0 and self.l2 >= 0 and self.min_hessian >= 0):
            raise ValueError("learning_rate must be positive, l2 and min_hessian not negative")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        if self.charge == "node" and self.order != "level":
            raise ValueError('charge="node" needs order="level"')
