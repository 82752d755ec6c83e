"""docs/ranking.md leads from files to models in Python and C; its commands print what it shows."""

import re
import shutil
from pathlib import Path

import pytest
from helpers.pages import alone, command, printed

PAGE = (Path(__file__).parents[1] / "docs" / "ranking.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(python|c|sh|console)\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.S)
NUMBER = re.compile(r"(\.\.\.|(?<![\w.])\d*\.?\d+)")


def parts():
    """Files of the page as (name, text), and its commands as (lines, output or "")."""
    for kind, text, shown in BLOCK.findall(PAGE):
        first = text.partition("\n")[0].strip("#/* ")
        if kind == "console":
            lines = re.findall(r"^\$ (.*)", text, flags=re.M)
            yield lines, re.sub(r"^\$ .*\n", "", text, flags=re.M)
        else:
            yield (first, text) if kind in ("python", "c") else (text.splitlines(), shown)


def assert_alike(shown, got):
    """The output has these words, ``...`` is any, and nearly these numbers.

    LightGBM's releases differ a little.
    """
    words = NUMBER.split(" ".join(shown.split()))
    wanted = [word for word in words[1::2] if word != "..."]
    kinds = [".*?" if word == "..." else r"(?<![\w.])(\d*\.?\d+)" for word in words[1::2]]
    pattern = "".join(re.escape(a) + b for a, b in zip(words[::2], [*kinds, ""], strict=True))
    found = re.search(pattern, " ".join(got.split()))
    assert found, f"{shown}\n{got}"
    numbers = [float(number) for number in found.groups()]
    assert numbers == pytest.approx([float(number) for number in wanted], rel=0.05), got


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_the_page_leads_from_files_to_a_model_in_python_and_c(tmp_path, monkeypatch):
    alone(tmp_path, monkeypatch)
    for what, text in parts():
        if isinstance(what, str):
            Path(what).write_text(text, encoding="utf-8")
        else:
            got = "".join(printed(command, line) for line in what)
            assert_alike(text, got)
