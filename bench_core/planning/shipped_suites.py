"""Suites shipped with the benchmark."""

from pathlib import Path

import bench_core


@bench_core.hookimpl
def bench_suites() -> list[Path]:
    """Return the installed folder, or the checkout's folder for editable installs."""
    package = Path(bench_core.__file__).parent
    installed = package / "_suites"
    return [installed if installed.is_dir() else package.parent / "suites"]
