"""The suites that come with the benchmark."""

from pathlib import Path

import bench_core


@bench_core.hookimpl
def bench_suites() -> list[Path]:
    """The installed folder, or the checkout's where the package is installed editable."""
    package = Path(bench_core.__file__).parent
    installed = package / "_suites"
    return [installed if installed.is_dir() else package.parent / "suites"]
