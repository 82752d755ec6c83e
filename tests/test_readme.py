"""What the README shows is what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench_core.plugins import load_registry

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    block = re.search(r"```python\n(.*?)```", README, flags=re.S)
    assert block
    (tmp_path / "my_module.py").write_text(block[1], encoding="utf-8")
    return tmp_path


def test_the_learner_of_the_readme_keeps_every_promise(example: Path) -> None:
    code = (
        "from my_module import Single\n"
        "from bench_core.conformance import check_learner\n"
        "check_learner(Single())"
    )
    subprocess.run([sys.executable, "-c", code], cwd=example, check=True, timeout=300)


def test_the_learner_of_the_readme_loads_as_a_plugin(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(example))
    assert "single" in load_registry(["my_module"]).learners


def test_every_verb_of_the_readme_is_a_command() -> None:
    bench = Path(sys.executable).parent / "bench"
    for verb in sorted(set(re.findall(r"\bbench ([a-z]+)\b", README))):
        subprocess.run([bench, verb, "--help"], check=True, capture_output=True, timeout=60)


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for document in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"
