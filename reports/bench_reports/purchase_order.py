"""The order of purchases: steps in which rows buy each sensor, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench_core.leaderboard.bought_sensors import Purchase
from bench_core.terminal.tables import Table
from bench_core.terminal.wording import cost

SHADES = "·░▒▓█"
"""Shades of a step: no row buys; some rows buy; at least 25%, 50%, 75% of all rows."""


def order_table(title: str, bought: Sequence[Purchase]) -> Table:
    """Return a line for each sensor that some rows buy, with steps from left to right."""
    titles = "features", "price", "bought for", "mean step", f"steps 1 to {len(bought[0].steps)}"
    rows = [
        [one.short, cost(one.price), f"{one.share:.1%}", f"{one.step:.1f}", shaded(one.steps)]
        for one in bought
    ]
    legend = f"{SHADES[4]} 75% of rows or more buy in that step, {SHADES[3]} 50%, {SHADES[2]} 25%, "
    legend += f"{SHADES[1]} fewer, {SHADES[0]} none; step 0: free, for all"
    return Table(titles, rows, "features", titles[1:4], ("features",), title=title, footer=[legend])


def shaded(steps: Sequence[float]) -> str:
    """Return a character for each step, darker if more rows buy in it."""
    return "".join(SHADES[min(1 + int(4 * share), 4) if share > 0 else 0] for share in steps)


def order_lines(bought: Mapping[str, Sequence[Purchase]]) -> Table:
    """Return all numbers by data set, for a file."""
    width = max(len(one.steps) for own in bought.values() for one in own)
    titles = ("data set", *Purchase._fields[:4], *(f"step {k + 1}" for k in range(width)))
    rows = []
    for name, own in bought.items():
        for one in own:
            numbers = one.price, one.share, one.step, *one.steps, *[0] * (width - len(one.steps))
            rows.append([name, one.features, *(f"{number:.6g}" for number in numbers)])
    return Table(titles, rows)
