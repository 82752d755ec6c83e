"""Plugin that registers the folder for Python among the formats of exported models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core.hookspecs import hookimpl

if TYPE_CHECKING:
    from bench_core.protocols import Export
    from bench_core.serving import Folder


@hookimpl
def bench_exports() -> Mapping[str, Export]:
    """The format ``folder``."""
    return {"folder": write_arrays}


def write_arrays(model: Folder, output: Path) -> None:
    """For Python: arrays and JSON, which bench_core.serving.load opens."""
    from bench_core.serving.folder import fill

    fill(output, model)
