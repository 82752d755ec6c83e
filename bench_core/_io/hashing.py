"""Digests of values."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: one text per value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any) -> str:
    """32 hexadecimal digits over the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]
