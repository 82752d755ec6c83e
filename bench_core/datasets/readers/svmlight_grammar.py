"""One line of an SVMlight file, read the slow and exact way.

    line    = label [ "qid:" whole-number ] { index ":" value } [ "#" comment ]

This is the reference of the fast reader (``svmlight_kernel``): it reads or refuses the lines
that the kernel leaves open, and files too small to be worth compiling for.
"""

import math
import re
from dataclasses import dataclass

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
WHOLE = re.compile(rb"\d{1,18}")
NO_NUMBER = frozenset((b"nan", b"+nan", b"-nan"))
LARGEST = float.fromhex("0x1.fffffefffffffp+127")
"""The largest number that float32 rounds to a finite one."""


class LineError(Exception):
    """What is wrong with a line, and the remedy; the caller adds file and line."""


@dataclass(frozen=True, slots=True)
class Line:
    """The parts of a line; ``qid`` -1 where it has none, ``indices`` from 0."""

    label: float
    qid: int
    indices: list[int]
    values: list[float]


def parse_line(
    text: bytes,
    index_base: int = 1,
    features: int | None = None,
    huge_is_missing: bool = False,
) -> Line | None:
    """The parts of a line, or None for a blank or comment line.

    Raises LineError, also for an index beyond ``features`` if that is given. A value beyond float32
    is NaN if ``huge_is_missing``, else an error.
    """
    tokens = text.partition(b"#")[0].split()
    if not tokens:
        return None
    label = _label(tokens[0])
    qid, rest = -1, tokens[1:]
    if rest and rest[0].startswith(b"qid:"):
        qid, rest = _qid(rest[0]), rest[1:]
    indices: list[int] = []
    values: list[float] = []
    for token in rest:
        index, value = _cell(token, huge_is_missing)
        at, last = index - index_base, indices[-1] if indices else -1
        if at < 0:
            raise LineError(
                f"index {index} in a file counted from {index_base}; "
                "say --index-base 0 if its first feature is 0"
            )
        if at == last:
            raise LineError(f"index {index} comes twice; remove one of the two")
        if at < last:
            raise LineError(f"index {index} after {last + index_base}; sort the line by index")
        if features is not None and at >= features:
            raise LineError(f"index {index} in a file of {features} features; correct it")
        indices.append(at)
        values.append(value)
    return Line(label, qid, indices, values)


def _number(token: bytes, what: str) -> float:
    """A decimal number, infinite where it overflows, or NaN for ``nan``."""
    if NUMBER.fullmatch(token):
        return float(token)
    if token.lower() in NO_NUMBER:
        return math.nan
    raise LineError(f"{what} {_shown(token)} is not a number; correct it")


def _label(token: bytes) -> float:
    label = _number(token, "label")
    if not math.isfinite(label):
        raise LineError(f"label {_shown(token)} is not finite; correct it or remove the line")
    return label


def _qid(token: bytes) -> int:
    if not WHOLE.fullmatch(token[4:]):
        raise LineError(f"{_shown(token)}: a query id is a whole number >= 0; correct it")
    return int(token[4:])


def _cell(token: bytes, huge_is_missing: bool) -> tuple[int, float]:
    left, colon, right = token.partition(b":")
    if left == b"qid":
        raise LineError(f"{_shown(token)} must follow the label, once; correct the line")
    if not colon or not WHOLE.fullmatch(left):
        raise LineError(f"{_shown(token)} is not index:value; correct it")
    value = _number(right, f"feature {left.decode()}:")
    if abs(value) > LARGEST:
        if huge_is_missing:
            return int(left), math.nan
        raise LineError(f"feature {left.decode()}: {_shown(right)} is too large; correct it")
    return int(left), value


def _shown(token: bytes) -> str:
    return repr(token[:40].decode("utf-8", "replace"))
