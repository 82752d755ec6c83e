"""Write what the code knows into docs/learners and docs/learners.md:

    python tests/write_learner_pages.py

A part stands between a mark and ``<!-- end -->``; everything else is left alone. The marks are
``<!-- parameters: NAME ... -->``, one table for these learners (``NAME - p q`` leaves out p and q),
and ``<!-- equations: MODULE -->`` and ``<!-- departures: MODULE -->``, the section of that name of
the module's docstring. In rows ``| `NAME` | ... | [PAGE](learners/PAGE.md) |`` of docs/learners.md
the middle is the learner's summary, as in ``bench list learners``.
"""

import re
from importlib import import_module
from inspect import cleandoc
from itertools import takewhile
from pathlib import Path

from bench_core.cli.catalog import default_text, summary
from bench_core.parameters import parameters
from bench_core.plugins import load_registry

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [DOCS / "learners.md", *sorted((DOCS / "learners").glob("*.md"))]
PART = re.compile(
    r"(<!-- (?P<kind>parameters|equations|departures): (?P<of>[^>]*?) -->\n).*?(?=<!-- end -->)",
    re.DOTALL,
)


ROW = re.compile(
    r"(?<=^\| `)([\w-]+)(` \| ).*(?= \| \[[\w-]+\]\(learners/[\w-]+\.md\) \|$)", re.MULTILINE
)


def main():
    """Write all pages."""
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")


def written(page):
    """The page with its parts as the code has them."""
    learners = load_registry().learners
    page = ROW.sub(lambda m: m[1] + m[2] + summary(learners[m[1]]).removesuffix("."), page)
    return PART.sub(lambda m: m[1] + _part(m["kind"], m["of"]), page)


def _part(kind, of):
    if kind == "parameters":
        names, _, without = of.partition(" - ")
        return "\n".join(_table(names.split(), set(without.split()))) + "\n"
    lines = section(import_module(of).__doc__ or "", kind.capitalize())
    if kind == "equations":
        return "\n".join(["```text", *lines, "```"]) + "\n"
    return "\n".join(line.replace("``", "`") for line in lines) + "\n"


def section(docstring, title):
    """The lines under a title that stands alone on its line, up to the next blank one."""
    lines = cleandoc(docstring).splitlines()
    if title not in lines:
        raise ValueError(f"no section {title!r}")
    text = takewhile(str.strip, lines[lines.index(title) + 1 :])
    return cleandoc("\n" + "\n".join(text)).splitlines()


def references(docstring):
    """The dotted names of a docstring's section Equations, such as ``cut.cut``."""
    text = "\n".join(section(docstring, "Equations"))
    return re.findall(r"(?<![\w.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", text)


def _table(names, without):
    """One row per parameter; learners that differ have rows of their own."""
    registry, rows = load_registry(), dict[tuple[str, ...], list[str]]()
    for name in names:
        for p in parameters(registry.learners[name]):
            if p.name not in without:
                rows.setdefault(_row(p), []).append(name)
    together = [names_of == list(names) for names_of in rows.values()]
    title = ["parameter", *([] if all(together) else ["of"]), "default", "values", "meaning"]
    yield _line(title)
    yield "|" + "---|" * len(title)
    order = list(dict.fromkeys(row[0] for row in rows))
    for row in sorted(rows, key=lambda row: order.index(row[0])):
        of = "all" if rows[row] == list(names) else ", ".join(f"`{n}`" for n in rows[row])
        yield _line([row[0], *([] if all(together) else [of]), *row[1:]])


def _row(p):
    none = " or none" if p.kind.endswith(" or none") else ""
    values = f"{p.range}{none}" if str(p.range) else p.kind.removeprefix("one of ")
    default = default_text(p).replace('"', "")
    return f"`{p.name}`", f"`{default}`" if default else "empty", values, p.doc


def _line(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    main()
