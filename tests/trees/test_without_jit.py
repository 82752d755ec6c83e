"""The kernels as plain Python: what numpy warns of, an overflow above all, compiled code hides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SMALL = (  # files whose tests are small enough without compilation
    "test_growth_order.py",
    "test_growth_against_reference.py",
    "test_histogram.py",
    "test_penalties.py",
    "test_fixed_point_residuals.py",
    "test_boosting.py",
    "kernels/test_packed_codes.py",
)


def test_kernels_compute_the_same_without_compilation() -> None:
    large = "every_root or multiplicity_gives or read_only or threads_do_not_change"
    large += " or (leaves_are_scored and not price2)"  # one of four prices is seven seconds less
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    result = subprocess.run(
        [*command, "-k", f"not ({large})", *(str(HERE / name) for name in SMALL)],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout
