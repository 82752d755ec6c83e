"""Write the table of ``docs/reference/measurements.md`` from the JSON files of the speed tests.

    pytest -m speed tests/speed --benchmark-json speed.json
    python tests/speed/write_performance.py speed.json [more.json ...]

The table has a row for each comparison with a bar, at most 30, and stands between
``<!-- speed -->`` and ``<!-- end -->``. Of comparisons that differ in the shape of the data alone
it shows the one nearest to its bar. Where two files measured the same, the later run counts.
Figures of smaller data (``BENCH_SPEED_SCALE``) are left out.
"""

import json
import re
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs/reference/measurements.md"
BLOCK = re.compile(r"(?<=<!-- speed -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEADER = ["work", "peer", "ours", "peer's", "ours is (quartiles)", "bar"]
MOST = 30
SHAPE = re.compile(r"\d+ x \d+")


def rows(runs):
    """The rows of all comparisons with a bar, of the latest run of each."""
    found = {}
    for run in sorted(runs, key=lambda run: run["datetime"]):
        for entry in run["benchmarks"]:
            if entry["extra_info"].get("scale") == 1:
                found |= {
                    (row[0], row[1]): (row, by) for row, by in _with_bars(entry["extra_info"])
                }
    alike = {}
    for row, nearness in found.values():
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
    return "" if measured["met"] else ", **missed**"


def sources(runs):
    """Sentences below the table: dates and machines of the runs, with their commits."""
    commits = {}
    for run in runs:
        cpu, tree = run["machine_info"]["cpu"], run["commit_info"]
        machine = cpu.get("brand_raw", run["machine_info"]["machine"])
        place = f"Measured {run['datetime'][:10]} on {machine}, {cpu['count']} cores, at "
        dirty = " with uncommitted changes" * tree["dirty"]
        commits.setdefault(place, {})[tree["id"][:7] + dirty] = None
    return [place + ", ".join(names) + "." for place, names in commits.items()]


def written(text, runs):
    """The document with its table replaced."""
    lines = [f"| {' | '.join(row)} |" for row in (HEADER, ["---"] * len(HEADER), *rows(runs))]
    table = "\n".join([*lines, "", *sources(runs), ""])
    if not BLOCK.search(text):
        raise SystemExit(f"{DOCUMENT}: no <!-- speed --> and <!-- end --> to write between")
    return BLOCK.sub(lambda _: table, text)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    found = [json.loads(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]]
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8"), found), encoding="utf-8")
