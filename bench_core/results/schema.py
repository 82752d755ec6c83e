"""Where a results store lies, what lies beside it, and whether a file is one."""

from __future__ import annotations

import os
from pathlib import Path

from bench_core._io.files import is_locked
from bench_core.errors import InputError

DEFAULT = "results/bench.db"
APPLICATION = 0x62_6E_63_68  # "bnch" in SQLite's application_id
SCHEMA = 2


def store_path(path: str | Path = "") -> Path:
    """``path`` if given, else ``BENCH_STORE``, else ``results/bench.db``."""
    return Path(path or os.environ.get("BENCH_STORE") or DEFAULT)


def check_store(path: Path) -> bool:
    """Whether there is a store; InputError for a file that is none or of another version.

    Reads the head of the file alone, so that whatever it is stays as it was.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not a results store; name a file")
        if path.exists() and not path.is_file():  # a new store would take a device's place
            raise InputError(f"{path}: is a pipe or a device, not a results store; name a file")
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"{path}: cannot read the store ({error.strerror}); name another with --store"
        ) from error
    if not head:
        return False
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        raise InputError(f"{path}: not a results store; name another file with --store")
    if int.from_bytes(head[68:72], "big") != APPLICATION:
        raise InputError(f"{path}: a database of another program; name another with --store")
    schema = int.from_bytes(head[60:64], "big")
    if schema != SCHEMA:
        newer = schema > SCHEMA
        age, remedy = ("a newer", "update budget-bench") if newer else ("an older", "move it away")
        raise InputError(
            f"{path}: written by {age} version (schema {schema}, this one knows {SCHEMA}); "
            f"{remedy} or name another file with --store"
        )
    return True


def lock_path(path: Path) -> Path:
    """The file whose lock the one writer holds."""
    return path.with_name(f"{path.name}.lock")


def being_written(path: Path) -> bool:
    """Whether a writer holds that lock at this moment."""
    return is_locked(lock_path(path))


def states_folder(path: Path) -> Path:
    """Where the fitted models of a store lie."""
    return path.with_name(f"{path.stem}.fits")
