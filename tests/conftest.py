"""What tests of all parts share. Its place also makes ``trees.random_trees`` importable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data sets, or a skip that says how to name one."""
    default = Path(__file__).parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get("BENCH_TEST_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set BENCH_TEST_DATA to the folder that holds it")
    return folder
