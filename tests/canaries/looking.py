"""A learner that looks for what it must not see, and puts what it found into its scores' order."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import tempfile
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
        "notes": [where for where, folder in enumerate(places()) if (folder / NOTE).exists()],
        "counters": any(
            Path("/proc", name).exists() and Path("/proc", name).read_text() != ""
            for name in ("loadavg", "locks", "vmstat", "sys/fs/file-nr", "sys/fs/inode-nr")
        ),
        "locks": locked(),
        "keys": ctypes.CDLL(None).syscall(*SEARCH, b"user", b"canary", ctypes.c_int(0)) > 0,
        "processes": len([*Path("/proc").glob("[0-9]*")]) > 2,  # this one and the one above it
    }


NOTE = "note-of-a-canary"
SEARCH = (ctypes.c_long(250), ctypes.c_int(10), ctypes.c_int(-3))
"""keyctl(2) on x86-64: of the keyring of a session."""


def locked() -> bool:
    """Whether another process's lock on a file that both may read is seen."""
    with Path(__file__).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def places() -> list[Path]:
    """Where a note could be left: folders for temporary files, the working folder, caches, code."""
    named = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/proc/sys/kernel")
    own = [Path(tempfile.gettempdir()), Path.cwd(), Path.home(), Path(__file__).parent]
    return [*own, *map(Path, named)]


def look(where: str) -> None:
    """Say what is seen, in the log, and leave a note wherever that is possible, if asked to."""
    print(f"SEEN {json.dumps({where: seen()})}", flush=True)
    for folder in places() if "CANARY_NOTES" in os.environ else ():
        with contextlib.suppress(OSError):
            (folder / NOTE).touch()


class LookingModel(PrefixModel):
    """Looks when it is asked for the first time."""

    looked = False

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        if not self.looked:
            self.looked = True
            look("predict")
        return super().predict_path(features)


@dataclass(frozen=True)
class Looking(Prefix):
    """Says in its log what it sees, and so does its model."""

    name: ClassVar[str] = "looking"

    def fit(self, *given: Any) -> Any:
        look("fit")
        model = super().fit(*given)
        return LookingModel(model.order, model.weight, model.needs)


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    """The learner of this module."""
    return [Looking]
