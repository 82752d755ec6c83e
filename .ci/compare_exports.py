"""Compare exports of one run made by different versions of Python and libraries.

    python .ci/compare_exports.py FIRST.csv OTHER.csv...

Verdicts must be the same, costs and metrics to 1e-9. A learner whose own library (LightGBM, ...)
is of another version is compared by its verdict alone. Exit status 1 where something differs.
"""

import csv
import math
import re
import sys
from pathlib import Path

KEY = ("dataset", "fold", "seed", "learner", "params", "point", "split")
EXACT = ("status", "error", "audit", "marks", "features_used", "fingerprint")
NOT_NUMBERS = (*KEY, *EXACT, "run", "trial", "versions", "code", "machine", "created_at")
TIMES = ("fit_seconds", "predict_seconds", "peak_rss_mb")
NEAR = 1e-9


def rows(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """The rows of an export; numbers that name a point are those of its first nine digits."""
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    return {tuple(near(row[name]) for name in KEY): row for row in found}


def near(text: str) -> str:
    """A text in which long fractions are cut to nine digits."""
    return re.sub(r"\d+\.\d{9,}(e-?\d+)?", lambda found: f"{float(found[0]):.9g}", text)


def own_libraries(row: dict[str, str]) -> set[str]:
    """Versions of the library that trains for the learner; the first five are everybody's."""
    named = set(row["versions"].split(", ")[5:])
    return {text for text in named if not text.startswith(("numpy", "scipy", "BLAS", "SIMD"))}


def foreign(one: dict[str, str], two: dict[str, str]) -> bool:
    """Whether another version of a library trained the learner."""
    return own_libraries(one) != own_libraries(two)


def differing(one: dict[str, str], two: dict[str, str]) -> list[str]:
    """The columns that differ."""
    found = [name for name in EXACT if one[name] != two[name]]
    if foreign(one, two):
        return [name for name in ("status", "audit") if name in found]
    for name in one.keys() - {*NOT_NUMBERS, *TIMES}:
        try:
            a, b = float(one[name] or "nan"), float(two[name] or "nan")
        except ValueError:
            found += [name] if one[name] != two[name] else []
            continue
        same = math.isclose(a, b, rel_tol=NEAR, abs_tol=NEAR) or (math.isnan(a) and math.isnan(b))
        found += [] if same else [f"{name} ({a!r}, {b!r})"]
    return found


def compare(first: Path, other: Path) -> int:
    """Print what differs by learner; how many learners do."""
    one, two = rows(first), rows(other)
    bad: dict[str, list[str]] = {}
    for key in {**one, **two}:
        if key not in one or key not in two:
            where = first.stem if key in one else other.stem
            bad.setdefault(key[3], []).append(f"{key[5:]} only in {where}")
        elif columns := differing(one[key], two[key]):
            bad.setdefault(key[3], []).append(f"{key[5:]}: {', '.join(columns)}")
    learners = len({key[3] for key in one})
    others = {key[3] for key in one.keys() & two.keys() if foreign(one[key], two[key])}
    where = f"{first} and {other}: {len(one)} rows"
    print(f"{where}, {len(bad)} of {learners} learners differ")
    if others:
        print(f"  by their verdict alone: {', '.join(sorted(others))} (other libraries)")
    for learner, lines in sorted(bad.items()):
        print(f"  {learner}: {len(lines)} rows, such as {lines[0]}")
    return len(bad)


if __name__ == "__main__":
    first, *others = map(Path, sys.argv[1:])
    sys.exit(1 if sum(compare(first, other) for other in others) else 0)
