"""The kernels as plain Python: what numpy warns of, an overflow above all, compiled code hides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
COMMAND = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
SMALL = (  # files whose tests are small enough without compilation
    "test_growth_order.py",
    "test_growth_against_reference.py",
    "test_histogram.py",
    "test_penalties.py",
    "test_fixed_point_residuals.py",
    "test_boosting.py",
    "kernels/test_packed_codes.py",
    "test_inference.py",
)


def test_kernels_compute_the_same_without_compilation() -> None:
    large = "every_root or multiplicity_gives or read_only or threads_do_not_change"
    large += " or (leaves_are_scored and not price2)"  # one of four prices is seven seconds less
    large += " or (of_a_call_each and not shape0-price1)"  # one of six is ten seconds less
    passes([*COMMAND, "-k", f"not ({large})", *files(SMALL)], NUMBA_DISABLE_JIT="1")


def files(names: tuple[str, ...]) -> list[str]:
    return [str(HERE / name) for name in names]


def passes(command: list[str], **environment: str) -> None:
    result = subprocess.run(
        command,
        env={**os.environ, **environment},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
