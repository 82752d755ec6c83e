"""A view's curves as a static SVG: what the page shows without JavaScript, as in mail."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from bench_core.errors import one_line
from bench_core.terminal.wording import cost as cost_text
from bench_reports.views import Curve, View

COLOURS = ("#0072b2", "#c24d00", "#007a5a", "#a8457f", "#6f5a00", "#5b4fc4", "#30363d", "#b3261e")
"""On white; the style sheet has those for dark ground. Colour is never the only difference: dashes
and marks differ too."""

GREY = "#57606a"
DASHES = ("", "7 3", "2 3", "8 3 2 3")
MARKS = ("●", "■", "◆", "▲", "✚", "✖", "★", "▼")
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 62, 150, 14, 46
GAP = 14
"""Least distance of two labels."""

COARSE, MOST = 10, 8
"""Of many curves the least step that is drawn, and how many curves are."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a learner is drawn, by its place among all learners."""

    index: int
    baseline: bool

    @property
    def colour(self) -> str:
        """On white."""
        return GREY if self.baseline else COLOURS[self.index % len(COLOURS)]

    @property
    def css(self) -> str:
        """The class that has the colour of the page's theme."""
        return "kb" if self.baseline else f"k{self.index % len(COLOURS)}"

    @property
    def dash(self) -> str:
        """A dash pattern, "" for a solid line."""
        place = self.index if self.baseline else self.index // len(COLOURS)
        return DASHES[place % len(DASHES)]

    @property
    def glyph(self) -> int:
        """The place of its mark; no two of 64 learners share colour and mark."""
        return (self.index + self.index // len(COLOURS)) % len(MARKS)

    @property
    def mark(self) -> str:
        """What its points look like in legends."""
        return MARKS[self.glyph]


@dataclass(frozen=True, slots=True)
class Axes:
    """Where budgets and qualities stand. Budgets are on a logarithmic axis; what is free stands at
    its left end."""

    x: tuple[float, float]
    y: tuple[float, float]
    height: int

    def across(self, budget: float) -> int:
        """The column of a budget."""
        low, high = (math.log10(v) for v in self.x)
        at = (math.log10(max(budget, self.x[0])) - low) / (high - low)
        return round(LEFT + min(max(at, 0), 1) * (WIDTH - LEFT - RIGHT))

    def down(self, quality: float) -> int:
        """The row of a quality, outside of the chart where that is outside of the axis."""
        low, high = self.y
        part = (quality - low) / (high - low)
        part = min(max(part, -1), 2)
        return round(self.height - BOTTOM - part * (self.height - TOP - BOTTOM))


def axes(view: View, baselines: Sequence[str]) -> Axes:
    """Axes for the steps that matter: from the tenth percentile of methods' qualities upwards."""
    methods = [c for c in view.curves if c.learner not in baselines] or view.curves
    quality = np.concatenate([c.quality for c in methods])
    sign = 1 if view.metric.higher_is_better else -1
    worst, best = np.quantile(sign * quality, 0.1), np.max(sign * quality)
    pad = 0.06 * (best - worst) or 0.05 * abs(best) or 0.5
    low, high = sorted((sign * (worst - pad), sign * (best + pad)))
    budgets = np.concatenate([c.budget for c in methods])
    positive = budgets[budgets > 0]
    least = float(positive.min()) if len(positive) else 0.1
    most = float(budgets.max()) if len(positive) else 1.0
    least = max(min(least, most / 2), most / 1e4)
    return Axes((least, most * 1.05), (float(low), float(high)), height_for(len(view.curves)))


def height_for(curves: int) -> int:
    """Tall enough for a label per curve."""
    return max(380, GAP * curves + TOP + BOTTOM)


def chart(
    view: View,
    learners: Sequence[str],
    baselines: Sequence[str],
    title: str,
    unit: str,
    *,
    fine: bool = True,
) -> str:
    """The whole chart: axes, steps, labels at their ends. Unless ``fine`` the ``MOST`` best curves,
    without points and with steps of at least ``COARSE``."""
    if not fine:
        view = replace(view, curves=[curve for curve, _ in view.ranking()][:MOST])
    ax = axes(view, baselines)
    looks = {
        c.learner: Look(learners.index(c.learner), c.learner in baselines) for c in view.curves
    }
    name = escape(one_line(title))
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {ax.height}" role="img" aria-label="{name}"'
        ' xmlns="http://www.w3.org/2000/svg" font-family="system-ui, sans-serif" font-size="12">',
        *_grid(ax, view, unit),
        *_curves(ax, view, looks, fine),
        "</svg>",
    ]
    return "".join(parts)


def _grid(ax: Axes, view: View, unit: str) -> Iterator[str]:
    bottom, end = ax.height - BOTTOM, WIDTH - RIGHT
    yield f'<g stroke="#d0d7de" class="rule"><path fill="none" d="M{LEFT} {TOP}V{bottom}H{end}'
    across, down = log_ticks(*ax.x), ticks(*ax.y)
    yield "".join(f"M{ax.across(v)} {bottom}v4" for v in across)
    yield (
        "".join(f"M{LEFT} {ax.down(v)}H{end}" for v in down)
        + '"/></g><g fill="#57606a" class="words">'
    )
    for value in across:
        at = f'x="{ax.across(value)}" y="{bottom + 18}"'
        yield f'<text {at} text-anchor="middle">{brief(value)}</text>'
    for value in down:
        at = f'x="{LEFT - 6}" y="{ax.down(value) + 4}"'
        yield f'<text {at} text-anchor="end">{brief(value)}</text>'
    better = "higher" if view.metric.higher_is_better else "lower"
    middle = (LEFT + end) // 2
    words = escape(f"{budget_words(view.kind)}{unit}")
    yield f'<text x="{middle}" y="{ax.height - 8}" text-anchor="middle">{words}</text>'
    metric = escape(f"{view.metric.name} on test ({better} is better)")
    turn = f'transform="rotate(-90 14 {(TOP + bottom) // 2})"'
    yield f'<text x="14" y="{(TOP + bottom) // 2}" text-anchor="middle" {turn}>{metric}</text></g>'


def budget_words(kind: str) -> str:
    """What the x axis says."""
    return {
        "mean": "budget: mean cost per row",
        "p95": "budget: what 95% of rows may cost",
        "cap": "budget: what any row may cost",
    }[kind]


def _curves(ax: Axes, view: View, looks: dict[str, Look], fine: bool) -> Iterator[str]:
    """Lines that end at the right edge, for who can pay more has the last point too, and go on to
    their labels; points; labels."""
    low, high, edge = TOP, ax.height - BOTTOM, WIDTH - RIGHT
    raw = [ax.down(curve.quality[-1]) for curve in view.curves]
    ends = [min(max(y, low), high) for y in raw]
    places = spread(ends, GAP, low, high)
    lines, labels = [], []
    for curve, y, end, place in zip(view.curves, raw, ends, places, strict=True):
        look = looks[curve.learner]
        name = one_line(curve.learner)
        text = escape(name if len(name) < 18 else name[:16] + "…")
        beyond = " ↓" if y > high else " ↑" if y < low else ""
        line, dots = _steps(ax, curve, fine)
        own = f'stroke="{look.colour}" class="{look.css}"' if fine else f'class="{look.css}"'
        dash = f' stroke-dasharray="{look.dash}"' if look.dash else ""
        thin = ' stroke-width="1.2"' if look.baseline else ""
        lines.append(f'<path {own}{dash}{thin} d="{line}H{edge}l10 {place - end}"/>')
        if fine:
            lines.append(f'<path {own} stroke-width="5" stroke-linecap="round" d="{dots}"/>')
        at = f'x="{edge + 13}" y="{place + 4}"'
        fill = f'fill="{look.colour}" ' * fine
        labels.append(f'<text {fill}class="{look.css}" {at}>{look.mark} {text}{beyond}</text>')
    yield '<g class="lines" fill="none" stroke-width="1.8">' + "".join(lines) + "</g>"
    yield '<g class="ends">' + "".join(labels) + "</g>"


def _steps(ax: Axes, curve: Curve, fine: bool) -> tuple[str, str]:
    """The path of a curve's steps, and one of its points."""
    low, high = TOP, ax.height - BOTTOM
    at = [
        (ax.across(budget), min(max(ax.down(quality), low), high))
        for budget, quality in zip(curve.budget, curve.quality, strict=True)
    ]
    x, y = at[0]
    line, dots = [f"M{x} {y}"], [f"M{x} {y}h0"]
    for step, to in enumerate(at[1:], 2):
        least = 0 if fine or step == len(at) else COARSE
        if to == (x, y) or abs(to[1] - y) < least:
            continue
        line += [f"h{to[0] - x}"] * (to[0] != x) + [f"v{to[1] - y}"] * (to[1] != y)
        dots.append(f"m{to[0] - x} {to[1] - y}h0")
        x, y = to
    return "".join(line), "".join(dots)


def spread(wanted: Sequence[int], gap: int, low: int, high: int) -> list[int]:
    """Places near the wanted ones, at least ``gap`` apart where there is room, in their order."""
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    gap = min(gap, (high - low) // max(len(wanted) - 1, 1))
    places: list[int] = []
    for i in order:
        places.append(max(wanted[i], places[-1] + gap if places else low))
    limit = high
    for k in range(len(places) - 1, -1, -1):
        places[k] = min(places[k], limit)
        limit = places[k] - gap
    found = [0] * len(wanted)
    for i, place in zip(order, places, strict=True):
        found[i] = place
    return found


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers."""
    raw = (high - low) / 5
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * m for m in (1, 2, 5, 10) if size * m >= raw)
    first = math.ceil(low / step)
    return [round((first + k) * step, 12) for k in range(int((high - first * step) / step) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers, fewer of each decade the more decades there are."""
    decades = math.log10(high / low)
    per = (1,) if decades > 3 else (1, 3) if decades > 2 else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [m * 10.0**p for p in powers for m in per]
    inside = [v for v in found if low <= v <= high]
    return inside if len(inside) > 1 else ticks(low, high)


def brief(value: float) -> str:
    """A tick's number."""
    return f"{value:.12g}" if 1e-3 <= abs(value) < 1e6 or value == 0 else cost_text(value)
