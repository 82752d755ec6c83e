"""A plugin whose module can be imported by the command, and hangs in a worker."""

import sys
import time
from dataclasses import dataclass
from typing import Any, ClassVar

from helpers.toys import Prefix

import bench_core

if "bench_core.execution.worker" in sys.modules:
    time.sleep(3600)


@dataclass(frozen=True)
class Hanging(Prefix):
    """Is never reached."""

    name: ClassVar[str] = "hanging"


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    """The learner of this module."""
    return [Hanging]
