"""Renew what README and the documents show of programs: ``python docs/renew.py [PAGE ...]``.

Runs the fenced blocks of the pages and writes what they print in place of what is shown, makes the
pictures and executes the notebook. Of README it runs what is shown with its output. Look at
``git diff`` afterwards: prose is not renewed, and tables of measurements have their own commands
next to them. ``...`` keeps its place: the lines around it are found by their words.
"""

import os
import re
import subprocess
import sys
import tempfile
from contextlib import chdir
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.pages import follow, same, write  # noqa: E402 - of the tests

PAGES = (
    "README.md",
    "docs/guide/tutorial.md",
    "docs/guide/python.md",
    "docs/guide/ranking.md",
    "docs/reference/reading-the-board.md",
)


def words_of(line: str) -> str:
    """A line without its numbers, which may change."""
    return re.sub(r"[\d.,]+", "0", line)


def place(line: str, lines: list[str], start: int) -> int:
    """The place of the line that is most like another, from ``start`` on."""
    likeness = [SequenceMatcher(None, words_of(line), words_of(x)).ratio() for x in lines[start:]]
    return start + likeness.index(max(likeness))


def merged(shown: str, got: str) -> str:
    """Return the printed text, with as much left out as in the shown one."""
    lines, kept, start = got.splitlines(), [], 0
    for part in re.split(r"^\.\.\.$", shown, flags=re.M):
        if some := part.strip("\n").splitlines():
            first = place(some[0], lines, start)
            start = place(some[-1], lines, first) + 1
            kept.append("\n".join(lines[first:start]))
        else:
            kept.append("")
    return "\n...\n".join(kept).strip("\n") + "\n"


def renew(path: Path) -> None:
    """Run the blocks of a page in an empty folder and write what they print into the page."""
    text = path.read_text(encoding="utf-8")
    changed = text

    def replace(shown: str, got: str) -> None:
        nonlocal changed
        try:
            same(shown, got)
        except AssertionError:
            new = merged(shown, got)
            print(f"{path.name}: {len(shown.splitlines())} lines, now {len(new.splitlines())}")
            changed = changed.replace(shown, new)

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write(text, Path(folder))
        if path.name == "README.md":
            text = "".join(re.findall(r"```console\n.*?```\n", text, flags=re.S))
        for name in re.findall(r"^python (\S+)$", text, flags=re.M):  # the page runs this file
            text = text.replace(f"```python\n# {name}\n", f"```file\n# {name}\n")
        follow(text.replace(" 2>/dev/null", ""), replace)
    path.write_text(changed, encoding="utf-8")


def main(pages: list[str]) -> None:
    """Renew the named pages, or all of them, the pictures and the notebook."""
    os.environ |= {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    for page in pages or PAGES:
        renew(ROOT / page)
    if not pages:
        run = partial(subprocess.run, check=True, cwd=ROOT)
        run([sys.executable, "docs/make_gallery.py"])
        run([sys.executable, "-m", "jupyter", "execute", "--inplace", "docs/notebook.ipynb"])


if __name__ == "__main__":
    main(sys.argv[1:])
