"""Run comparisons in an environment of their own, which has this project and its peers.

    python tests/speed/with_peers.py PEERS [pytest's arguments]

Makes the folder PEERS, a virtual environment, where there is none, and installs this project and
LightGBM there; then runs the speed tests (by default those of training by shape), which end with
the table of ratios and bars. Add ``--benchmark-json speed.json`` for ``write_performance.py``.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ("lightgbm", "pytest", "pytest-benchmark", "hypothesis")


def main(arguments: list[str]) -> int:
    """pytest's exit status."""
    if not arguments:
        raise SystemExit(__doc__)
    folder, *chosen = arguments
    python = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "-e", str(ROOT), *PEERS]
        subprocess.run(install, check=True)
    tests = chosen or [str(ROOT / "tests" / "speed" / "test_training_shapes.py")]
    command = [str(python.absolute()), "-m", "pytest", "-m", "speed", *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
