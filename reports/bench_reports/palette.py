"""Looks of learners: colour, dash and mark depend only on a learner's name, so that they are the
same on every page, figure and notebook.

Any two of the 16 colours are at least .1 apart in OKLab on a light background and .09 on a dark
one. Each has a contrast of 4.5 with its background. Learners that often share a board have fixed
colours and solid lines; others are dashed, in a colour by a hash of the name, which is none of the
first four. Baselines are grey.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

COLOURS = (
    *(("#0072b2", "#56b4e9"), ("#c24d00", "#ff9a52"), ("#007a5a", "#35c9a0")),
    *(("#a8457f", "#ec9bcb"), ("#6f5a00", "#f0e442"), ("#5b4fc4", "#b3a6ff")),
    *(("#30363d", "#e6e9ec"), ("#640078", "#c86edc"), ("#82000a", "#f0646e")),
    *(("#0a28a0", "#a0d2fa"), ("#005000", "#78fabe"), ("#a050d2", "#a08cc8")),
    *(("#b40032", "#fabeaa"), ("#8c1ea0", "#fabefa"), ("#005082", "#6e96fa")),
    ("#8c0a5a", "#f06eb4"),
)
"""Each colour on a light and on a dark background."""

DASHES = ("", "7 3", "2 3", "8 3 2 3")
"""Line styles in SVG; the first is solid."""

MARKS = "●■◆▲✚✖★▼"
"""Marks before names in tables."""

_SOLID = (
    *("gbrt", "miser", "cegb", "budget-boosting", "cronus", "early-exit", "cost-tree"),
    *("forward-selection", "budget-prune", "l1", "astc", "confidence-cascade", "budget-rf"),
    *("selection-cascade", "random-forest", "lightgbm-cegb"),
)
_FIXED = {name: (place, 0) for place, name in enumerate(_SOLID)} | {
    "adapt-gbrt": (8, 1),
    "imported": (4, 1),
    "constant": (13, 0),
    "random-order": (6, 1),
    "cheapest-first": (6, 2),
    "greedy-order": (6, 3),
}
"""Colour and dash of learners that often share a board."""

_FIRST = 4
"""Colours of the learners that are on most boards; no other learner has them."""

_SALT = "4335"
"""Salt of the hash: few learners of a shipped suite share a colour, none share colour and dash."""


class Look(NamedTuple):
    """Indices into ``COLOURS``, dashes and marks."""

    colour: int
    dash: int
    mark: int


def look(learner: str) -> Look:
    """Return the look of a learner."""
    if learner in _FIXED:
        colour, dash = _FIXED[learner]
        return Look(colour, dash, (colour + dash) % len(MARKS))
    rest, colour = divmod(zlib.crc32(f"{_SALT}{learner}".encode()), len(COLOURS) - _FIRST)
    rest, dash = divmod(rest, len(DASHES) - 1)
    return Look(_FIRST + colour, 1 + dash, (_FIRST + colour + rest) % len(MARKS))


def css() -> str:
    """Return the colours as CSS: a variable for each, and a class that uses it for a curve."""
    pairs = [*enumerate(COLOURS)]
    named = " ".join(f"--c{k}: light-dark({light}, {dark});" for k, (light, dark) in pairs)
    return f":root {{ {named} }}\n" + "\n".join(f".k{k} {{ --k: var(--c{k}); }}" for k, _ in pairs)
