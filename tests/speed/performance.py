"""Print the table of ``docs/reference/measurements.md`` from a JSON file of the speed tests.

    pytest -m speed tests/speed --benchmark-json speed.json
    python tests/speed/performance.py speed.json

A row for each comparison with a bar, at most 30. Of comparisons that differ in the shape of the
data alone it is the one nearest to its bar. Figures of smaller data (``BENCH_SPEED_SCALE``) are
left out.
"""

import json
import re
import sys
from pathlib import Path

HEADER = ["work", "peer", "ours", "peer's", "ours is (quartiles)", "bar"]
MOST = 30
SHAPE = re.compile(r"\d+ x \d+")


def rows(run):
    """The rows of all comparisons with a bar."""
    alike = {}
    for entry in run["benchmarks"]:
        if entry["extra_info"].get("scale") == 1:
            for row, nearness in _with_bars(entry["extra_info"]):
                alike.setdefault((SHAPE.sub("", row[0]), row[1]), []).append((nearness, row))
    if len(alike) > MOST:
        raise SystemExit(f"{len(alike)} comparisons have a bar: the table takes {MOST}")
    return [_worst(rows) for rows in alike.values()]


def _worst(rows):
    row = max(rows, key=lambda pair: pair[0])[1]
    of = f", the worst of {len(rows)} shapes" if len(rows) > 1 else ""
    return [row[0] + of, *row[1:]]


def _with_bars(info):
    work = info["work"] if info["side"] == "ours" else f"{info['work']}: {info['side']}"
    for peer, r in info["ratios"].items():
        if r["bar"] is not None:
            sides = [f"{r[side]:.3g} {r['unit']}" for side in ("ours", "theirs")]
            bar = _speed(r["bar"]) + _missed(r)
            yield (
                [work, peer, *sides, _speed(r["median"], r["q1"], r["q3"]), bar],
                r["median"] / r["bar"],
            )
    for name, v in info.get("values", {}).items():
        bar = f"{v['bar']:g}" + _missed(v)
        row = [f"{work}: {name}", "", f"{v['value']:.3g} {v['unit']}", "", "", bar]
        yield row, v["value"] / v["bar"]


def _speed(ratio, *quartiles):
    """A ratio of times, ours to the peer's, in words: ``2x as fast``, ``1.2x the time``."""
    fast = ratio <= 1
    middle, *ends = (f"{1 / r if fast else r:.3g}" for r in (ratio, *quartiles))
    between = f" ({' to '.join(sorted(ends, key=float))})" if ends else ""
    return f"{middle}x {'as fast' if fast else 'the time'}{between}"


def _missed(measured):
    return "" if measured["met"] else ", missed"


def printed(run):
    """The table, each column as wide as its longest cell."""
    table = [HEADER, *rows(run)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        yield "  ".join(map(str.ljust, row, widths)).rstrip()


if __name__ == "__main__":
    print(*printed(json.loads(Path(*sys.argv[1:]).read_text(encoding="utf-8"))), sep="\n")
