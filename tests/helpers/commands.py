"""Helpers for tests of the command line: a call of the command, and a small data file."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from helpers.kit import assert_line

BENCH = Path(sys.executable).with_name("bench")
DATA = ("--data", "data.csv", "--label", "label", "--task", "binary")
QUICK = (*DATA, "-p", "mine", "--executor", "inline")


@dataclass(frozen=True)
class Ended:
    """Outcome of a command."""

    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Its output, whatever the breaks of lines."""
        return " ".join(self.out.split())

    def ok(self) -> "Ended":
        """Itself, of a command that did what was asked."""
        assert self.status == 0, self.err
        return self

    def refused(self, words: str) -> None:
        """Check that it was refused in a last line that has all these words, separated by bars."""
        assert self.status == 2, self.err
        assert_line(self.err.splitlines()[-1], words)


Run = Callable[..., Ended]


def write_csv(path, rows=120):
    """Three columns; the first decides the label, the second a little."""
    lines = ["a,b,c,label"]
    for i in range(rows):
        a, b, c = (i * 7) % 11 - 5, (i * 5) % 7 - 3, (i * 3) % 5 - 2
        lines.append(f"{a},{b},{c},{int(a + 0.5 * b > 0)}")
    path.write_text("\n".join(lines) + "\n")
