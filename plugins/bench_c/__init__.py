"""Exported models as C99: one header and one source, without dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core import hookimpl

if TYPE_CHECKING:
    from bench_core.protocols import Export
    from bench_core.serving import Folder


@hookimpl
def bench_exports() -> Mapping[str, Export]:
    """The format ``c``."""
    return {"c": write_c}


def write_c(model: Folder, output: Path) -> str:
    """C99 without dependencies: bench_model.h and bench_model.c, which serve single rows.

    Models that compare the documents of a query, policies without a program, and costs that are not
    a sum of prices, are refused.
    """
    from bench_c.source import FULL, header, source
    from bench_core.costs.model import pays_by_row

    texts = {"bench_model.h": header(model), "bench_model.c": source(model)}
    for name, text in texts.items():
        (output / name).write_text(text, encoding="utf-8")
    return "" if pays_by_row(model.costs) else FULL
