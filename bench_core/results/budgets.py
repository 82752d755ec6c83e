"""Budgets: what a row may cost, on average, for 95% of rows, or for every row; and targets, the
quality that a point has to reach."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, NamedTuple

from bench_core.errors import UsageError, unknown

if TYPE_CHECKING:
    from bench_core.arrays import FloatArray
    from bench_core.metrics.frontier import Choice, Hull

COLUMNS = {"mean": "total_cost", "p95": "cost_p95", "cap": "cost_max"}
"""By kind of budget the figure of an operating point that it limits."""

KINDS = (*COLUMNS,)
KEEP = "keep"
"""The kind of a target that is a share of the reference's best quality."""

CAP = "cap"
"""The one name in the ``point`` of what was measured under a cap; no model's point may have it."""

CONSTANT = "constant"
"""The one name in the ``point`` of the best constant, which costs nothing and begins every path."""

COUNT = 5
"""Number of budgets shown where none are named."""

_WRITTEN = ", as 10 or 5,10,20"

_WORDS = {"mean": "on average", "p95": "for 95% of rows", "cap": "for every row"}


class Budget(NamedTuple):
    """A limit on the cost of a row, in the unit of the data set's prices.

    ``kind``: ``mean`` bounds the mean cost, ``p95`` the cost of 95% of rows, both when a point is
    chosen on validation; ``cap`` bounds every row's own cost, and is enforced at prediction.
    """

    amount: float
    kind: str = "mean"

    def __str__(self) -> str:
        """``10``, ``p95 10`` or ``cap 10``: as ``as_budgets`` reads it."""
        return f"{'' if self.kind == 'mean' else f'{self.kind} '}{self.amount:.15g}"

    @property
    def words(self) -> str:
        """``10 on average``, ``10 for 95% of rows`` or ``10 for every row``."""
        return f"{self.amount:.6g} {_WORDS[self.kind]}"


class Target(NamedTuple):
    """A quality to reach on validation at the least cost.

    ``kind``: ``keep`` means this share of the reference's best quality, ``quality`` a value of the
    metric.
    """

    amount: float
    kind: str = KEEP

    def words(self, metric: str, reference: str) -> str:
        """``99% of gbrt's accuracy`` or ``accuracy 0.85``."""
        if self.kind == KEEP:
            return f"{self.amount * 100:.6g}% of {reference or 'the reference'}'s {metric}"
        return f"{metric} {self.amount:.6g}"


Limit = Budget | Target
"""What a point is chosen under: the best quality within a budget, or the least cost at a target."""


def as_target(keep: float | str | None, quality: float | None) -> Target | None:
    """The target of a share to keep (``0.99`` or ``"99%"``) or of a quality; None without either.

    Raises UsageError for a share that is not above 0 and at most 1.
    """
    if keep is None:
        return None if quality is None else Target(float(quality), "quality")
    text = str(keep).strip()
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise UsageError(f"{text!r} is not a share: write 99% or 0.99")
    return Target(share)


def budget_of(value: float | Budget) -> Budget:
    """A number as a budget of mean cost; infinity is no limit."""
    return value if isinstance(value, Budget) else Budget(float(value))


def choice_within(
    budget: Budget | None,
    cost: FloatArray,
    quality: FloatArray,
    p95: FloatArray,
    higher: bool,
    corners: Hull | None = None,
) -> Choice:
    """The rule by which everything is chosen: by draw the best on validation within a budget (None:
    at all), of points with ``cost`` and ``quality`` (draws, p) and ``p95`` (p,).

    A mean cost is met by a mixture of two points; ``corners``, if given, are the hull of all. The
    cost of 95% of rows is kept by a single point. Points measured under a cap are all within it.
    """
    import numpy as np  # here, since help needs the kinds alone

    from bench_core.metrics.frontier import hull, mixed_within

    if budget is not None and budget.kind == "p95":
        corners = hull(cost, np.where(p95 <= budget.amount, quality, np.nan), higher)
    limit = budget.amount if budget is not None and budget.kind == "mean" else math.inf
    return mixed_within(corners or hull(cost, quality, higher), limit)


def as_budgets(
    values: float | str | Budget | Iterable[float | str | Budget], kind: str = "mean"
) -> tuple[Budget, ...]:
    """Budgets from one or several numbers, texts or budgets, as the command line, a suite or Python
    gives them, each once, in the order given.

    A number stands for a budget of this ``kind`` unless a kind precedes it (``p95 20``). Raises
    UsageError for what is no finite number >= 0 and for an unknown kind.
    """
    if isinstance(values, str):
        values = values.split(",")
    elif isinstance(values, Budget) or not isinstance(values, Iterable):
        values = [values]
    found = (v if isinstance(v, Budget) else _parsed(str(v), kind) for v in values)
    return tuple(dict.fromkeys(found))


def as_caps(values: float | str | Iterable[float | str | Budget]) -> tuple[float, ...]:
    """Caps from one or several numbers or texts, in ascending order. Raises UsageError."""
    found = as_budgets(values, CAP)
    for budget in found:
        if budget.kind != CAP or not budget.amount > 0:
            given = f"{budget.amount:.15g}" if budget.kind == CAP else str(budget)
            raise UsageError(f"{given!r} is no cap: write numbers > 0{_WRITTEN}")
    return tuple(sorted(budget.amount for budget in found))


def default_budgets(cheapest: float, whole: float) -> tuple[Budget, ...]:
    """Five mean budgets, evenly spaced on a logarithmic scale from the cost of the cheapest useful
    point to that of the reference's best, rounded up to two digits so that both can be afforded.

    Fewer where rounding makes two equal, only the second where the first is not below it, none
    where nothing costs anything.
    """
    if not 0 < whole < math.inf:
        return ()
    if not 0 < cheapest < whole:
        return (Budget(_rounded_up(whole)),)
    between = (cheapest * (whole / cheapest) ** (k / (COUNT - 1)) for k in range(1, COUNT - 1))
    amounts = (cheapest, *between, whole)
    return tuple(dict.fromkeys(Budget(_rounded_up(amount)) for amount in amounts))


def _parsed(text: str, kind: str) -> Budget:
    *before, number = text.split() or [""]
    kind = " ".join(before) or kind
    if kind not in KINDS:
        raise UsageError(f"budget {text.strip()!r}: {unknown('kind', kind, KINDS)}")
    try:
        amount = float(number)
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        raise UsageError(f"budget {text.strip()!r} is not a cost: write numbers >= 0{_WRITTEN}")
    return Budget(amount, kind)


def _rounded_up(amount: float) -> float:
    """The next number of two significant digits that is not below ``amount``."""
    step = Decimal(1).scaleb(math.floor(math.log10(amount)) - 1)
    return float(Decimal(amount).quantize(step, ROUND_CEILING))
