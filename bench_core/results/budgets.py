"""Budgets limit the cost of rows (mean or each); targets set a minimum quality."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

from bench_core.errors import UsageError, blaming, option, unknown

COLUMNS = {"mean": "cost", "cap": "cost_max"}
"""Field of an operating point that each kind of budget limits."""

KINDS = (*COLUMNS,)
KEEP = "keep"
"""Kind of a target relative to the reference's best quality."""

SHARE = 0.99
"""Share of the reference's best validation quality that answers keep by default."""

CAP = "cap"
"""Only name in the ``point`` of results under a cap; reserved."""

CONSTANT = "constant"
"""Only name in the ``point`` of the best constant, which is free and begins every path."""

LARGEST = sys.float_info.max

COUNT = 5
"""Default number of budgets shown."""

_WRITTEN = ", as 10 or 5,10,20"

_WORDS = {"mean": "on average", "cap": "for every row"}


class Budget(NamedTuple):
    """A limit on the cost of a row, in the unit of the data set's prices.

    ``mean`` limits the mean cost when a point is chosen on validation. ``cap`` limits the cost of
    every row, and is enforced at prediction.
    """

    amount: float
    kind: str = "mean"

    def __str__(self) -> str:
        """Spelling accepted by ``as_budgets``: ``10`` or ``cap 10``."""
        return f"{'' if self.kind == 'mean' else f'{self.kind} '}{self.amount:.15g}"

    @property
    def words(self) -> str:
        """``10 on average`` or ``10 for every row``; ``any cost``."""
        if math.isinf(self.amount):
            return "any cost"
        return f"{self.amount:.6g} {_WORDS[self.kind]}"


class Target(NamedTuple):
    """A quality to reach on validation at minimum cost.

    ``keep`` is a fraction of the reference's best quality, ``quality`` a value of the metric.
    """

    amount: float
    kind: str = KEEP

    def words(self, metric: str, reference: str) -> str:
        """``99% of gbrt's accuracy`` or ``accuracy 0.85``."""
        if self.kind == KEEP:
            return f"{self.amount * 100:.6g}% of {reference or 'the reference'}'s {metric}"
        return f"{metric} {self.amount:.6g}"


Limit = Budget | Target
"""Criterion for a point: the best quality within a budget, or the lowest cost for a target."""


def limit_words(limit: Limit, metric: str, reference: str) -> str:
    """``at 99% of gbrt's accuracy``, ``within 10 on average`` or ``at any cost``."""
    if isinstance(limit, Target):
        return f"at {limit.words(metric, reference)}"
    return f"{'at' if math.isinf(limit.amount) else 'within'} {limit.words}"


def limit_options(limit: Limit) -> list[str]:
    """Return the words of a command that give this limit: ``--keep 95%`` or ``--budget 10``."""
    if isinstance(limit, Budget):
        return ["--budget", str(limit)]
    if limit.kind == KEEP:
        return ["--keep", f"{limit.amount * 100:.12g}%"]
    return ["--quality", f"{limit.amount:.15g}"]


def limits_of(
    budget: float | str | Budget | Iterable[float | str | Budget] | None = None,
    kind: str = "mean",
    keep: float | str | None = None,
    quality: float | str | None = None,
    unlimited: bool = True,
) -> tuple[Limit, ...]:
    """Return budgets of a ``kind``, or a target as a list of one: the fraction of the reference's
    quality to keep (``0.99`` or ``"99%"``), or a quality; () if none is given.

    Raises UsageError for invalid values, and if more than one is given.
    """
    named = {"budget": budget, "keep": keep, "quality": quality}
    if len(both := [option(name) for name, value in named.items() if value is not None]) > 1:
        raise UsageError(f"{' and '.join(both)}: give only one of them")
    if budget is None and kind != KINDS[0]:
        raise UsageError(f"{option('budget_kind', kind)} needs a {option('budget')}")
    if keep is not None:
        return (Target(as_share(keep)),)
    if quality is not None:
        return (Target(_quality(quality), "quality"),)
    if budget is None:
        return ()
    with blaming(option("budget")):
        return as_budgets(budget, kind, unlimited=unlimited)


def limit_of(
    budget: float | str | Budget | Iterable[float | str | Budget] | None = None,
    kind: str = "mean",
    keep: float | str | None = None,
    quality: float | str | None = None,
) -> Limit | None:
    """Return the only one of ``limits_of``, None for none. Raises UsageError for several."""
    limits = limits_of(budget, kind, keep, quality)
    if len(limits) > 1:
        text = budget if isinstance(budget, str) else None
        raise UsageError(f"{option('budget', text)}: give one budget here, such as {limits[0]}")
    return next(iter(limits), None)


def as_share(keep: float | str) -> float:
    """Convert ``0.95`` or ``"95%"`` to the fraction of a quality to keep. Raises UsageError."""
    text = str(keep).strip()
    try:
        share = parsed_share(text)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise UsageError(f"{option('keep')}: {text!r} is not a share: write 99% or 0.99")
    return share


def parsed_share(text: str) -> float:
    """Convert the text of a share. Raises ValueError."""
    return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)


def _quality(quality: float | str) -> float:
    try:
        value = float(quality)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        share = f"for a share of the reference's quality give {option('keep', quality)}"
        remedy = share if "%" in str(quality) else "write one such as 0.85"
        raise UsageError(f"{option('quality', quality)} is not a finite number: {remedy}")
    return value


def as_budgets(
    values: float | str | Budget | Iterable[float | str | Budget],
    kind: str = "mean",
    *,
    unlimited: bool = False,
) -> tuple[Budget, ...]:
    """Convert numbers, texts or budgets from the command line, a suite or Python to distinct
    budgets in the given order.

    A number is a budget of this ``kind`` unless prefixed by another (``cap 20``). Raises UsageError
    for numbers that are negative or not finite (``unlimited`` allows the mean ``inf``), and for an
    unknown kind.
    """
    if isinstance(values, str):
        values = values.split(",")
    elif isinstance(values, Budget) or not isinstance(values, Iterable):
        values = [values]
    found = (v if isinstance(v, Budget) else _parsed(str(v), kind, unlimited) for v in values)
    return tuple(dict.fromkeys(found))


def as_caps(values: float | str | Iterable[float | str | Budget]) -> tuple[float, ...]:
    """Convert numbers or texts to caps, in ascending order. Raises UsageError."""
    budgets = as_budgets(values, CAP)
    for budget in budgets:
        if budget.kind != CAP or not budget.amount > 0:
            given = f"{budget.amount:.15g}" if budget.kind == CAP else str(budget)
            raise UsageError(f"{given!r} is not a cap: write numbers > 0{_WRITTEN}")
    return tuple(sorted(budget.amount for budget in budgets))


def default_budgets(cheapest: float, whole: float) -> tuple[Budget, ...]:
    """Return five mean budgets, evenly spaced on a logarithmic scale and rounded up to two digits.
    They range from ``cheapest`` to the cost of the reference's best point, ``whole``.

    There are fewer if rounding makes some equal, only the second if the first is not below it, and
    none if everything is free.
    """
    if not 0 < whole < math.inf:
        return ()
    if not 0 < cheapest < whole:
        return (Budget(_rounded_up(whole)),)
    between = (cheapest * (whole / cheapest) ** (k / (COUNT - 1)) for k in range(1, COUNT - 1))
    amounts = (cheapest, *between, whole)
    return tuple(dict.fromkeys(Budget(_rounded_up(amount)) for amount in amounts))


def _parsed(text: str, kind: str, unlimited: bool) -> Budget:
    *before, number = text.split() or [""]
    kind = " ".join(before) or kind
    if kind not in KINDS:
        raise UsageError(f"budget {text.strip()!r}: {unknown('kind', kind, KINDS)}")
    try:
        amount = float(number)
    except ValueError:
        amount = math.nan
    if not 0 <= amount <= (math.inf if unlimited and kind == "mean" else LARGEST):
        raise UsageError(f"budget {text.strip()!r} is not a cost: write numbers >= 0{_WRITTEN}")
    return Budget(amount, kind)


def _rounded_up(amount: float) -> float:
    """Return the smallest number of two significant digits that is at least ``amount``."""
    step = Decimal(1).scaleb(math.floor(math.log10(amount)) - 1)
    # the shortest decimal: the float 0.32 is a little more
    return float(Decimal(str(amount)).quantize(step, ROUND_CEILING))
