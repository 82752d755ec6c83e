"""Hook of mkdocs: completes the pages of learners from the code.

Marks on a line of their own are replaced when the site is built:

- ``<!-- learners -->``: learners by page, with their summaries
- ``<!-- parameters: NAME ... -->``: one table for these learners; ``NAME - p q`` leaves out p and q
- ``<!-- equations: MODULE -->``, ``<!-- departures: MODULE -->``: that section of the docstring
"""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from bench_core.cli.catalog import default_text, section, summary
from bench_core.parameters import Parameter, parameters
from bench_core.plugins import load_registry

MARK = re.compile(r"^<!-- (learners|parameters|equations|departures):? ?(.*?) ?-->$", re.MULTILINE)
FOLDER = Path(__file__).parent / "reference" / "learners"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return the page with its marks replaced; called by mkdocs for each page."""
    return MARK.sub(lambda mark: "\n".join(["", *_part(mark[1], mark[2]), ""]), markdown)


def pages() -> dict[str, str]:
    """Return the page of each learner that a mark names, in the order of the marks."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
    return {
        name: page
        for page, text in texts.items()
        for kind, of in MARK.findall(text)
        if kind == "parameters"
        for name in of.partition(" - ")[0].split()
    }


def _part(kind: str, of: str) -> Iterator[str]:
    if kind == "learners":
        yield from ("| learner | what it is | page |", "|---|---|---|")
        for name, page in pages().items():
            text = summary(load_registry().learners[name]).removesuffix(".")
            yield _line([f"`{name}`", text, f"[{page}](learners/{page}.md)"])
    elif kind == "parameters":
        names, _, without = of.partition(" - ")
        yield from _table(names.split(), set(without.split()))
    else:
        lines = section(import_module(of).__doc__ or "", kind.capitalize())
        if not lines:
            raise ValueError(f"docstring of {of} has no section {kind.capitalize()}")
        if kind == "equations":
            yield from ("```text", *lines, "```")
        else:
            yield from ("**Departures**", "", *(line.replace("``", "`") for line in lines))


def _table(names: list[str], without: set[str]) -> Iterator[str]:
    """Yield one row per parameter; learners that differ have rows of their own."""
    registry, rows = load_registry(), dict[tuple[str, ...], list[str]]()
    for name in names:
        for p in parameters(registry.learners[name]):
            if p.name not in without:
                rows.setdefault(_row(p), []).append(name)
    alike = all(of == names for of in rows.values())
    title = ["parameter", *([] if alike else ["of"]), "default", "values", "meaning"]
    yield _line(title)
    yield "|" + "---|" * len(title)
    order = list(dict.fromkeys(row[0] for row in rows))
    for row in sorted(rows, key=lambda row: order.index(row[0])):
        of = "all" if rows[row] == names else ", ".join(f"`{n}`" for n in rows[row])
        yield _line([row[0], *([] if alike else [of]), *row[1:]])


def _row(p: Parameter) -> tuple[str, ...]:
    none = " or none" if p.kind.endswith(" or none") else ""
    values = f"{p.range}{none}" if str(p.range) else p.kind.removeprefix("one of ")
    default = default_text(p).replace('"', "")
    return f"`{p.name}`", f"`{default}`" if default else "empty", values, p.doc


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
