"""The first lines of a worker process, before anything heavy is imported."""

import os
import sys
from typing import Any


def start(about: dict[str, Any]) -> None:
    """Enter a guard's care where the system knows such; serve jobs."""
    parent = about["parent"]
    if hasattr(os, "getppid") and os.name == "posix" and os.getppid() != parent:
        os._exit(1)
    if sys.platform.startswith("linux"):
        from bench_core.execution.guard import guarded

        guarded(parent)
    from bench_core.execution.worker import main

    main(about["memory"])
