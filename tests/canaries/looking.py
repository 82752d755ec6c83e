"""A learner that looks for what it must not see, and puts what it found into its scores' order."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from helpers.toys import Prefix

import bench_core


def seen() -> dict[str, Any]:
    """What can be reached from here of the store, prepared data, and the network."""
    cache, store = Path(os.environ["BENCH_CACHE"]), Path("results/bench.db")
    found = [path.name for path in cache.rglob("*.npy") if path.stat().st_size]
    parent = Path(f"/proc/{os.getppid()}/root/proc")
    try:
        socket.create_connection(("127.0.0.1", int(os.environ["LOOKING_PORT"])), 5).close()
        network = True
    except OSError:
        network = False
    return {
        "arrays": sorted({name.split(".")[0] for name in found}),
        "entries": len({path.parent for path in cache.rglob("*.npy")}),
        "store": store.is_file() and store.stat().st_size > 0,
        "models": len([*Path("results/bench.fits").rglob("*.npz")]),
        "file": Path("rows.csv").is_file() and Path("rows.csv").stat().st_size > 0,
        "network": network,
        "root": os.access(f"/proc/{parent}/root", os.R_OK)
        and Path(f"/proc/{parent}/root").exists(),
    }


@dataclass(frozen=True)
class Looking(Prefix):
    """Writes what it saw to the file that LOOKING names."""

    name: ClassVar[str] = "looking"

    def fit(self, *given: Any) -> Any:
        Path(os.environ["LOOKING"]).write_text(json.dumps(seen()))
        return super().fit(*given)


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    """The learner of this module."""
    return [Looking]
