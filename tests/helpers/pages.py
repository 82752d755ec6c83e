"""Pages of the documentation: their fenced blocks are written to files, or run and compared."""

import re
import shlex
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from doctest import ELLIPSIS, OutputChecker
from io import StringIO
from pathlib import Path

import pytest

from bench_core.cli import main
from helpers.cli_fixtures import Terminal
from helpers.commands import Ended

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```(\w+)\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.S)
NAME = re.compile(r"(?:#|//|/\*) ([\w/.]+\.\w+)(?: \*/)?\n")
NUMBER = re.compile(r"(\.\.\.|(?<![\w.])\d*\.?\d+)")


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text):
    """Each block as (language, content, output or "") in order."""
    for kind, content, shown in BLOCK.findall(text):
        if kind == "console":
            lines = re.findall(r"^\$ (.*)", content, flags=re.M)
            yield "sh", "\n".join(lines), re.sub(r"^\$ .*\n", "", content, flags=re.M)
        elif kind != "text":
            yield kind, content, shown


def code(text, language):
    """The contents of all blocks of a language."""
    return [content for kind, content, _ in blocks(text) if kind == language]


def files(text):
    """Blocks that begin with the name of a file, by that name."""
    named = ((NAME.match(content), content) for kind, content, _ in blocks(text) if kind != "sh")
    return {found[1]: content for found, content in named if found}


def write(text, folder):
    """Write the files of a page."""
    for name, content in files(text).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


def called(line, stdout=StringIO):
    """How a command of ``bench`` ends in this process, without workers."""
    words = shlex.split(line)[1:]
    words += ["--executor", "inline"] if words[0] == "run" else []
    ends = pytest.raises(SystemExit)
    with redirect_stdout(stdout()) as out, redirect_stderr(StringIO()) as err, ends as end:
        main(tuple(words))
    return Ended(int(end.value.code or 0), out.getvalue(), err.getvalue())


def output(line):
    """What a command prints, of ``bench`` or of a shell, once it ends well."""
    if line.startswith("bench "):
        ended = called(line, Terminal)
        assert ended.status == 0, f"{line}\n{ended.err}"
        return ended.out
    line = line.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
    done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def follow(text, alike, run=output):
    """Run the blocks of Python and, line by line, of a shell; ``alike`` compares what is shown with
    what is printed on a terminal, without blanks at the ends of lines. Other blocks are files."""
    names = {"__name__": "page"}
    for kind, content, shown in blocks(text):
        if kind == "python":
            with redirect_stdout(Terminal()) as out:
                exec(compile(content, "page", "exec"), names)
            got = out.getvalue()
        elif kind == "sh":
            got = "".join(map(run, content.splitlines()))
        else:
            continue
        got = "".join(f"{line.rstrip()}\n" for line in got.splitlines()).rstrip("\n") + "\n"
        if shown:
            alike(shown, got)


def same(shown, got):
    """The same text, where ``...`` stands for any."""
    assert OutputChecker().check_output(shown, got, ELLIPSIS), f"{shown}\n{got}"


def near(shown, got):
    """The same words, where ``...`` stands for any, and nearly the same numbers."""
    words = NUMBER.split(" ".join(shown.split()))
    wanted = [word for word in words[1::2] if word != "..."]
    kinds = [".*?" if word == "..." else r"(?<![\w.])(\d*\.?\d+)" for word in words[1::2]]
    pattern = "".join(re.escape(a) + b for a, b in zip(words[::2], [*kinds, ""], strict=True))
    found = re.search(pattern, " ".join(got.split()))
    assert found, f"{shown}\n{got}"
    numbers = [float(number) for number in found.groups()]
    assert numbers == pytest.approx([float(number) for number in wanted], rel=0.05), got
