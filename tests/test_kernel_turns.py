"""Two processes that need the same kernel at once compile it once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KERNEL = (
    "from numba import njit\n@njit(cache=True, nogil=True)\ndef number(x):\n    return 2 * x + 1\n"
)
CALL = (
    "import sys\nfrom pathlib import Path\nfrom helpers.kernel_turns import in_turn\n"
    "from kernel import number\nprint('ready', flush=True)\nsys.stdin.readline()\n"
    "with in_turn(Path('locks')):\n    assert number(3) == 7\n"
    "print(sum(number.stats.cache_misses.values()))\n"
)


def test_a_kernel_is_compiled_by_one_of_two_processes(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "locks").mkdir()
    own = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    own["PYTHONPATH"] = os.pathsep.join([str(tmp_path), own["PYTHONPATH"]])
    both = [
        subprocess.Popen(
            [sys.executable, "-B", "-c", CALL],
            cwd=tmp_path,
            env=own,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(int(process.communicate()[0]) for process in both) == [0, 1]
