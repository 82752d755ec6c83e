"""This machine in one line, for the record of timings."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path


@cache
def machine() -> str:
    """What timings depend on, without names of people or hosts."""
    import numpy as np

    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}"
    )


def _processor() -> str:
    """The processor's name where the system has it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
