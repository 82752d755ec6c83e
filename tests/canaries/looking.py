"""A learner that looks for what it must not see, and puts what it found into its scores' order."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from helpers.toys import Prefix, PrefixModel

import bench_core
from bench_core import Features, Prediction


def seen() -> dict[str, Any]:
    """What can be reached from here of the store, prepared data, and the network."""
    cache, store = Path("cache"), Path("results/bench.db")
    found = [path.name for path in cache.rglob("*.npy") if path.stat().st_size]
    parent = Path(f"/proc/{os.getppid()}/root/proc")
    try:
        socket.create_connection(("127.0.0.1", int(Path("port").read_text())), 5).close()
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


class LookingModel(PrefixModel):
    """Looks when it is asked for the first time."""

    looked = False

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        if not self.looked:
            self.looked = True
            Path("predict.json").write_text(json.dumps(seen()))
        return super().predict_path(features)


@dataclass(frozen=True)
class Looking(Prefix):
    """Writes what it sees to fit.json, and what its model sees to predict.json."""

    name: ClassVar[str] = "looking"

    def fit(self, *given: Any) -> Any:
        Path("fit.json").write_text(json.dumps(seen()))
        model = super().fit(*given)
        return LookingModel(model.order, model.weight, model.needs)


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    """The learner of this module."""
    return [Looking]
