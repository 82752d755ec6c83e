"""Text for numbers, settings and notices, the same on the terminal and on the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.statistics import CONFIDENCE, LEVEL

if TYPE_CHECKING:
    from bench_core.results.records import RunInfo
    from bench_core.statistics.comparison import Interval

CHEAPER = "cheaper"
"""Name of the column of savings."""

TINY = 0.001  # below this four decimals show at most one digit of a metric


def quality(value: float, decimals: int = 4) -> str:
    """Format a metric: four decimals, which align; four digits from 10 on; two digits if four
    decimals would show fewer."""
    if math.isnan(value):
        return "-"
    if 0 < abs(value) < TINY:
        return f"{value:.1e}"
    return f"{value + 0:.{decimals}f}" if abs(value) < 10 else f"{value:.4g}"  # zero has no sign


def difference(value: float, size: float = 1.0) -> str:
    """Format a difference of two qualities with its sign: four decimals, and ``<+0.0001`` or
    ``>-0.0001`` if all would be 0. Where the qualities are of a ``size`` that four decimals do not
    show either, format it as they are."""
    if not abs(value) < TINY or 0 < size < TINY:
        return f"{'+' * (value >= 0)}{quality(value)}"
    if 0 < abs(value) < 0.00005:
        return "<+0.0001" if value > 0 else ">-0.0001"
    return f"{value + 0:+.4f}"


def cost(value: float) -> str:
    """Format a cost: no decimals from 100 on, two decimals below, two digits below 0.01."""
    if math.isnan(value):
        return "-"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 0.01 or value == 0 else f"{value:.2g}"


def percent(share: float) -> str:
    """Format a share as ``99%`` or ``99.5%``."""
    return f"{share * 100:.6g}%"


def p_value(p: float, bounded: bool = False) -> str:
    """Format a p-value: four decimals, after ``<`` if it is below them or an upper bound."""
    if math.isnan(p):
        return "-"
    return "<0.0001" if p < 0.00005 else f"{'<' * (bounded and p < 1)}{p:.4f}"


def chance(probability: float, repeats: str = "some repeats") -> str:
    """Format the probability that a model that is not sure keeps a quality, rounded down: ``94%
    sure``. Its mean over ``repeats`` may exceed the level, as most are sure: ``sure in 2 of 3``."""
    if probability >= LEVEL:
        return f"sure in {repeats}"
    return f"{math.floor(100 * probability + 1e-9)}% sure"


def saving(value: float, probability: float = 1.0, repeats: str = "some repeats") -> str:
    """Format a saving, or another ratio of costs: ``3.4x``, with two decimals if one would round to
    1, and ``<1x`` or ``>1x`` if both would; infinite if nothing is paid. Of a model that is not
    sure to keep the quality in all repeats, format the ``chance`` that it does."""
    if probability < 1:
        return chance(probability, repeats)
    if math.isnan(value):
        return "-"
    if math.isinf(value):
        return "free"
    if value != 1 and round(value, 1) == 1:
        if round(value, 2) != 1:
            return f"{value:.2f}x"
        return "<1x" if value < 1 else "1.0x" if round(value, 3) == 1 else ">1x"
    if 0 < value < 0.05:
        return "<0.1x"
    return f"{value:.1f}x" if value < 100 else f"{value:.0f}x"


def interval(ends: Interval, text: Callable[[float], str]) -> str:
    """Format an interval whose ends have a ``text``: ``3.1x to 3.6x``; "-" if it is unknown."""
    if math.isnan(ends.low):
        return "-"
    if math.isinf(ends.high):
        return text(ends.low) if math.isinf(ends.low) else f"at least {text(ends.low)}"
    return f"{text(ends.low)} to {text(ends.high)}"


def saving_ends(ends: Interval) -> str:
    """Format the interval of a saving; "-" for the reference's, which is exactly 1."""
    return "-" if ends.low == ends.high == 1 else interval(ends, saving)


def in_brackets(ends: Interval, text: Callable[[float], str]) -> str:
    """Format an interval to follow its value: `` (95%: 3.1x to 3.6x)``; "" if it is unknown."""
    return "" if math.isnan(ends.low) else f" ({CONFIDENCE}: {interval(ends, text)})"


def half(ends: Interval, decimals: int = 4, value: float = math.nan) -> str:
    """Format half the width of an interval of a metric: ``.0036``. If the ``value`` plus or minus
    it would be below 0 or above 1 and the interval is not, format both sides: ``-.0928/+.0413``,
    without one of 0. A width that would be 0 is ``<.0001``, unless the value would be, too."""
    width = (ends.high - ends.low) / 2
    if math.isnan(width):
        return "-"
    if value - width < 0 <= ends.low or value + width > 1 >= ends.high:
        sides = (f"{side:+.{decimals}f}" for side in (ends.low - value, ends.high - value))
        shown = (side[0] + side[1:].removeprefix("0") for side in sides if float(side))
        return "/".join(shown) or "0"
    if 0 < width < 0.5 * 10**-decimals:  # would be 0
        return f"{width:.0e}" if 0 < abs(value) < TINY else f"<.{1:0{decimals}d}"
    return f"{width:.{decimals}f}".removeprefix("0") if width < 1 else f"{width:.3g}"


def rank_range(ranks: tuple[int, int]) -> str:
    """Format ranks from the best to the worst: ``1-8``, or ``9`` if they are equal."""
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}-{ranks[1]}"


def settings(values: Mapping[str, object]) -> str:
    """Format settings as ``trees=300, tradeoff=0.1``, in the given order."""
    return ", ".join(f"{name}={_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return f"({settings(value)})"
    return str(value)


def count(number: int, noun: str) -> str:
    """Format a count as ``1 trial``, ``2 trials``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str], most: int = 3) -> str:
    """Format names as ``a, b and c``; of many names the first and the number of others."""
    shown = [*names[:most], f"{len(names) - most} more"] if len(names) > most + 1 else [*names]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def either(names: Sequence[str]) -> str:
    """Format names as ``a, b or c``."""
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def counted(counts: Mapping[str, int]) -> str:
    """Format counts as ``12 ok, 3 failed``, without zeros."""
    return ", ".join(f"{n} {what}" for what, n in counts.items() if n > 0)


def stand_in_notice(dataset: str, missing: str) -> str:
    """Return the notice for results on a stand-in for ``missing``."""
    files = f"The files of {missing}" if missing else "The real data"
    return (
        f"{files} were not found; generated data ({dataset}) were used instead. Use them to check "
        "the installation, not to compare methods"
    )


def notices(info: RunInfo) -> list[str]:
    """Return a line for each stand-in of a run."""
    # one notice for a data set with two settings
    uses = {use.name: use.stand_in_for for use in info.datasets if use.stand_in}
    return [f"notice: {stand_in_notice(name, str(missing))}" for name, missing in uses.items()]


def duration(seconds: float) -> str:
    """Format seconds as ``45 s``, ``3 min 20 s`` or ``2 h 5 min``."""
    if seconds < 59.5:
        tenths = seconds < 9.95 and seconds != int(seconds)
        return f"{seconds:.1f} s" if tenths else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def run_line(info: RunInfo) -> str:
    """Return number, name and start of the run, and its state if it is not finished."""
    begun = info.created_at[:16].replace("T", " ")
    done = f"{sum(info.counts.values())} of {count(info.planned, 'trial')} done"
    state = "" if info.state == "finished" else f", {info.state}: {done}"
    return one_line(f"run {info.number}, {info.run}, of {begun} UTC{state}")
