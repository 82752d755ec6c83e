"""What is said of the machine."""

import subprocess
import sys

BOTH = """
import sys
from bench_core._io import machine
first = machine.kernels()
import scipy.linalg
machine.kernels.cache_clear()
assert machine.kernels() == first, (first, machine.kernels())
assert "BLAS ?" not in first, first
"""


def test_the_kernels_are_those_with_all_of_scipys_linear_algebra_loaded() -> None:
    subprocess.run([sys.executable, "-c", BOTH], check=True)
