"""Fetching a publisher's file once, checked by its sha256."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from bench_core.errors import InputError

SECONDS = 20.0


def fetch(url: str, to: Path, sha256: str) -> Path:
    """Fetch ``url`` into the file ``to``, which appears whole or not at all.

    Raises InputError where there is no network, the answer is not the expected file, or the
    folder cannot be written; each says where to get the file and where to put it.
    """
    remedy = f"fetch {url} and put it at {to}"
    try:
        with urlopen(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
    except (URLError, TimeoutError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(f"{to}: not there and not to be fetched ({reason}); {remedy}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise InputError(f"{to}: {url} is not the expected file (sha256 {found}); {remedy}")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{to.name}-", dir=to.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        Path(temporary).replace(to)
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error.strerror}); {remedy}") from error
    return to
