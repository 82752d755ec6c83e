"""Deleting any one plugin leaves all others importable and listed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "helpers" / "removal.py"


SAMPLE = "6"  # every sixth


def failures(*words: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=True
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    assert len(found) > (30 if words != (SAMPLE,) else 5)
    assert found.pop("control: bench_models") != []
    return {name: lines for name, lines in found.items() if lines}


def test_without_one_plugin_in_six_the_others_load_and_are_listed() -> None:
    assert failures(SAMPLE) == {}


@pytest.mark.slow
def test_without_any_one_plugin_every_module_of_the_others_imports() -> None:
    assert failures("all") == {}
