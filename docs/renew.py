"""Renew what README and the documents show of programs: ``python docs/renew.py [PAGE ...]``.

Runs the fenced blocks of the pages and writes what they print in place of what is shown, makes the
pictures and executes the notebook. Of README it runs what is shown with its output. Look at
``git diff`` afterwards: prose is not renewed. ``...`` keeps its place: the lines around it are
found by their words.

``python docs/renew.py docs/reference/measurements.md`` measures all again, on an idle machine, in
hours; with ``#NAME`` after the page it renews the sections whose headings have these words.
``BENCH_DATA`` and ``BENCH_TEST_DATA`` are the folder with the files of the data sets.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from datetime import date
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[1]
MEASUREMENTS = ROOT / "docs/reference/measurements.md"
sys.path.insert(0, str(ROOT / "tests"))

from helpers.pages import follow, output, same, write  # noqa: E402 - of the tests

from bench_core._io.machine import processor  # noqa: E402

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


def renewed(text: str, blocks: str, name: str, run: Callable[[str], str] = output) -> str:
    """Return a text with what its blocks print, run in the current folder."""

    def replace(shown: str, got: str) -> None:
        nonlocal text
        try:
            same(shown, got)
        except AssertionError:
            new = merged(shown, got)
            print(f"{name}: {len(shown.splitlines())} lines, now {len(new.splitlines())}")
            assert shown in text, f"a command follows what another one prints:\n{got}"
            text = text.replace(shown, new)

    follow(blocks, replace, run)
    return text


def renew(path: Path) -> None:
    """Run the blocks of a page in an empty folder and write what they print into the page."""
    text = blocks = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write(text, Path(folder))
        if path.name == "README.md":
            blocks = "".join(re.findall(r"```console\n.*?```\n", text, flags=re.S))
        for name in re.findall(r"^python (\S+)$", text, flags=re.M):  # the page runs this file
            blocks = blocks.replace(f"```python\n# {name}\n", f"```file\n# {name}\n")
        changed = renewed(text, blocks.replace(" 2>/dev/null", ""), path.name)
    path.write_text(changed, encoding="utf-8")


def measure(heading: str) -> None:
    """Run the commands of the sections of measurements whose headings have these words, and write
    what they print and when it was measured."""
    for section in re.split(r"^(?=##+ )", MEASUREMENTS.read_text(encoding="utf-8"), flags=re.M):
        title = section.partition("\n")[0]
        if heading.lower() not in title.lower() or "```console" not in section:
            continue
        print(title, flush=True)
        with tempfile.TemporaryDirectory() as folder, chdir(ROOT):
            os.environ["BENCH_STORE"] = f"{folder}/bench.db"
            new = renewed(section, section, MEASUREMENTS.name, shell)
        new = re.sub(r"^Measured \d.*$", stamp(), new, flags=re.M)
        text = MEASUREMENTS.read_text(encoding="utf-8")  # it may have been edited meanwhile
        MEASUREMENTS.write_text(text.replace(section, new), encoding="utf-8")


def shell(line: str) -> str:
    """Return the output of a command."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": here}
    done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, text=True, env=env, check=True)
    return done.stdout


def stamp() -> str:
    """The day, the commit and the machine."""
    tree = shell("git rev-parse --short HEAD").strip()
    changed = shell("git status --porcelain bench_core plugins reports suites tests").strip()
    tree += " with uncommitted changes" * bool(changed)
    return f"Measured {date.today()} at {tree}, {processor()}, {os.cpu_count()} cores."


def main(pages: list[str]) -> None:
    """Renew the named pages, or all of them, the pictures and the notebook."""
    os.environ |= {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    for page in pages or PAGES:
        name, _, heading = page.partition("#")
        if Path(name).name == MEASUREMENTS.name:
            measure(heading)
        else:
            renew(ROOT / name)
    if not pages:
        run = partial(subprocess.run, check=True, cwd=ROOT)
        run([sys.executable, "docs/make_gallery.py"])
        run([sys.executable, "-m", "jupyter", "execute", "--inplace", "docs/notebook.ipynb"])


if __name__ == "__main__":
    main(sys.argv[1:])
