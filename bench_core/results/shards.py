"""A shard: the results store that one job file leaves, and its seal.

A seal is a list of SHA-256 sums, as ``sha256sum -c`` reads it, of the database and of all model
files beside it. It is written when all else is on the disk: a shard that has one is whole.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from bench_core._io.files import atomic_file
from bench_core.errors import InputError
from bench_core.results.store_files import models_in


def seal_path(shard: Path) -> Path:
    """Where the sums of a shard lie: as its models, however it is named."""
    return shard.resolve().with_suffix(".sha256")


def seal(shard: Path) -> None:
    """Make a shard one plain file beside its models, on the disk for good, and write its sums."""
    with closing(sqlite3.connect(shard, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA journal_mode = DELETE")  # no write-ahead log that could stay behind
    shard = shard.resolve()
    files = [shard, *models_in(shard)]
    for path in {shard, *(file.parent for file in files)}:
        _sync(path)
    lines = [f"{_sum(file)}  {file.relative_to(shard.parent).as_posix()}\n" for file in files]
    with atomic_file(seal_path(shard)) as new:
        new.write_text("".join(lines), encoding="utf-8")
    _sync(shard.parent)


def is_sealed(shard: Path) -> bool:
    """Whether a shard is whole. Raises InputError where it changed since it was sealed."""
    check_seal(shard)
    return seal_path(shard).is_file()


def check_seal(shard: Path) -> None:
    """Raise InputError where a file is not as it was when the shard was sealed; a store without
    a seal passes."""
    try:
        text = seal_path(shard).read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    for line in text.splitlines():
        digest, _, name = line.partition("  ")
        file = seal_path(shard).parent / name
        if not file.is_file() or _sum(file) != digest:
            fault = "changed since its job ended" if file.is_file() else "is gone"
            raise InputError(
                f"{file}: {fault} ({seal_path(shard)}): copy it again, or remove the list of sums "
                "if the change was meant"
            )


def _sum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Bring a file, or a folder's list of names, to the disk."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
