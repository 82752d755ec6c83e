"""A few of the random faults of ``faults.py``, each way."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("faults.py")


def possible() -> bool:
    """Whether this system lets us make namespaces."""
    tools = all(map(shutil.which, ("unshare", "ip", "nsenter")))
    return tools and not subprocess.run(["unshare", "-rnm", "true"], capture_output=True).returncode


@pytest.mark.slow
@pytest.mark.skipif(not possible(), reason="needs unshare and ip, and namespaces of one's own")
@pytest.mark.parametrize("way", ["local", "jobs", "dask"])
def test_no_fault_loses_or_doubles_a_finished_trial(way: str, tmp_path: Path) -> None:
    if way == "dask" and find_spec("distributed") is None:
        pytest.skip("needs distributed")
    words = ("--ways", way, "--faults", "3", "--each", "3", "--suites", "quickstart:gbrt+cegb")
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), *words, "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
