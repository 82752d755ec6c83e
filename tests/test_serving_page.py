"""The example of docs/serving.md runs as it stands, and prints what the page says."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "serving.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.S))
(SHELL,) = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
BENCH = Path(sys.executable).with_name("bench")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What every file and command printed, in the order of the page."""
    folder = tmp_path_factory.mktemp("serving")
    kept = {k: v for k, v in os.environ.items() if k not in ("BENCH_STORE", "BENCH_DATA")}
    environment = kept | {"BENCH_CACHE": str(folder / "cache"), "COLUMNS": "120"}

    def run(*words):
        done = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    found = {}
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name in ("make_data.py", "today.py"):
        found[name] = run(sys.executable, name)
    for line in SHELL.splitlines():
        words = shlex.split(line)[1:]
        words += ["--executor", "inline"] if words[0] == "run" else []
        found[" ".join(words[:2])] = run(str(BENCH), *words)
    return found | {"serve.py": run(sys.executable, "serve.py")}


def beside(text):
    """How many times cheaper, and the qualities after and before."""
    after = re.search(r"ndcg@5 [\d.]+ on validation, ([\d.]+) on test at ([\d.]+)", text)
    before = re.search(r"at its best: ndcg@5 ([\d.]+) at ([\d.]+)", text)
    assert after
    assert before
    return float(before[2]) / float(after[2]), float(after[1]), float(before[1])


def test_the_export_says_what_the_page_says(said):
    here, page = beside(said["model export"]), beside(PAGE)
    assert here == pytest.approx(page, rel=0.05)  # LightGBM's releases differ a little
    assert here[0] > 3.5
    assert here[1] > 0.97 * here[2]


def test_show_and_check_agree_with_the_export(said):
    assert beside(said["model show"]) == beside(said["model export"])
    assert "the same as when exported" in said["model check"]


def test_the_function_costs_what_the_page_says(said):
    line = r"(before|after): ([\d.]+) ms a document, (\d+) hours and (\d+) dollars"
    here, page = re.findall(line, said["serve.py"]), re.findall(line, PAGE)
    assert [w for w, *_ in here] == [w for w, *_ in page] == ["before", "after"]
    for mine, theirs in zip(here, page, strict=True):
        assert [float(x) for x in mine[1:]] == pytest.approx(
            [float(x) for x in theirs[1:]], rel=0.05
        )
