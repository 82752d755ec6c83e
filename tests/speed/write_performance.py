"""Write the tables of ``docs/performance.md`` from the JSON files of the speed tests.

    pytest -m speed tests/speed --benchmark-json speed.json
    python tests/speed/write_performance.py speed.json [more.json ...]

A table stands between ``<!-- speed: NAME -->`` and ``<!-- end -->``; everything else is left alone.
``bars`` holds the comparisons that have a bar, ``others of GROUP`` those of one group of tests that
have none, and ``facts of GROUP`` its other figures. A row that no file measured stays as it is,
with its own date and command; where two files measured the same, the later run counts. Figures of
smaller data (``BENCH_SPEED_SCALE``) are left out.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs" / "performance.md"
BLOCK = re.compile(r"(<!-- speed: (?P<name>[^>]*?) -->\n).*?(?=<!-- end -->)", re.DOTALL)
SOURCE = ["measured", "command"]
COMPARED = ["work", "peer", "bar", "ratio (quartiles)", "ours", "peer's"]
PREFIX = "pytest -m speed 'tests/speed/"  # the document calls it T

Cells = list[str]
Table = tuple[Cells, dict[tuple[str, ...], Cells]]  # the header, and rows by their key


def number(x: float, digits: int = 3) -> str:
    """Significant digits, or all of a larger whole part."""
    return f"{x:.0f}" if abs(x) >= 1000 else f"{x:.{digits}g}"


def entries(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """The sides of all comparisons at full size, the later run last; ``source`` says whence."""
    runs = [json.loads(path.read_text()) for path in paths]
    found = []
    for run in sorted(runs, key=lambda run: run["datetime"]):
        for entry in run["benchmarks"]:
            if entry["extra_info"].get("scale") == 1:
                found.append({**entry["extra_info"], **_source(run, entry)})
    return found


def _source(run: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    info, cpu = entry["extra_info"], run["machine_info"]["cpu"]
    machine = f"{cpu.get('brand_raw', run['machine_info']['machine'])}, {cpu['count']} cores"
    tree = run["commit_info"]["id"][:7] + "+" * run["commit_info"]["dirty"]
    versions = [f"{name} {version}" for name, version in info["versions"].items()]
    parts = [run["datetime"][:10], tree, *versions, machine, f"load {info['load']:.1f}"]
    command = info["command"].replace(PREFIX, "T/").rstrip("'")
    return {"group": entry["group"], "source": [", ".join(parts), f"`{command}`"]}


def compared(found: Iterable[Mapping[str, Any]], group: str | None) -> Iterator[Cells]:
    """Rows of all figures that have a bar, or else of a group's ratios that have none."""
    for info in found:
        if group is not None and not info["group"].startswith(f"{group}: "):
            continue
        work = info["work"] if info["side"] == "ours" else f"{info['work']}: {info['side']}"
        for peer, r in info["ratios"].items():
            if (r["bar"] is None) == (group is not None):
                sides = [f"{number(r[side])} {r['unit']}" for side in ("ours", "theirs")]
                ratio = f"{number(r['median'])} ({number(r['q1'])} to {number(r['q3'])})"
                yield [work, peer, _bar(r), ratio, *sides, *info["source"]]
        for name, v in info.get("values", {}).items() if group is None else ():
            ours = f"{number(v['value'])} {v['unit']}"
            yield [f"{info['work']}: {name}", "", _bar(v, v["unit"]), "", ours, "", *info["source"]]


def _bar(measured: Mapping[str, Any], unit: str = "") -> str:
    if measured["bar"] is None:
        return ""
    words = f"{measured['bar']:g} {unit}".strip()
    return words if measured["met"] else f"{words}, **missed**"


def facts(found: Iterable[Mapping[str, Any]], group: str) -> list[tuple[Cells, Cells]]:
    """Header and cells of every comparison of a group that has facts."""
    return [
        (
            ["work", *info["facts"], *SOURCE],
            [info["work"], *(number(x, 4) for x in info["facts"].values()), *info["source"]],
        )
        for info in found
        if info.get("facts") and info["group"].startswith(f"{group}: ")
    ]


def merged(name: str, old: Table, found: list[dict[str, Any]]) -> Table:
    """The table with what was measured in place of what stood there."""
    kind, _, group = name.partition(" of ")
    keys = 1 if kind == "facts" else 2
    if keys == 2:
        header = [*COMPARED, *SOURCE]
        new = [(header, cells) for cells in compared(found, group or None)]
    else:
        new = facts(found, group)
        header = list(dict.fromkeys(c for names, _ in new for c in names[:-2]))
        header = [*dict.fromkeys([*old[0][:-2], *header]), *SOURCE]
    rows = {key: _fitted(header, old[0], cells) for key, cells in old[1].items()}
    rows |= {tuple(cells[:keys]): _fitted(header, names, cells) for names, cells in new}
    return (header, rows) if rows else old


def _fitted(header: Cells, names: Cells, cells: Cells) -> Cells:
    known = dict(zip(names, cells, strict=True))
    return [known.get(name, "") for name in header]


def parsed(name: str, text: str) -> Table:
    """A table as it stands in the document."""
    lines = [_cells(line) for line in text.splitlines() if line.startswith("|")]
    keys = 1 if name.startswith("facts of ") else 2
    return (lines[0] if lines else []), {tuple(cells[:keys]): cells for cells in lines[2:]}


def _cells(line: str) -> Cells:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def written(text: str, found: list[dict[str, Any]]) -> str:
    """The document with its tables brought up to date."""

    def block(match: re.Match[str]) -> str:
        name = match["name"]
        header, rows = merged(name, parsed(name, match[0]), found)
        lines = [header, ["---"] * len(header), *rows.values()] if header else []
        return match[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)

    return BLOCK.sub(block, text)


def main(paths: list[str]) -> None:
    """Rewrite the document."""
    if not paths:
        raise SystemExit(__doc__)
    found = entries(map(Path, paths))
    DOCUMENT.write_text(written(DOCUMENT.read_text(), found))
    print(f"{DOCUMENT}: {len(found)} sides of comparisons at full size")


if __name__ == "__main__":
    main(sys.argv[1:])
