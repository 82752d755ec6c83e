"""The first lines of a worker process, and of a model's, before anything heavy is imported."""

import os
import signal
import sys
from typing import Any

from bench_core._io.plugin_folders import look_in


def start(about: dict[str, Any]) -> None:
    """Enter namespaces if asked to, and a guard's care where the system knows such; serve jobs."""
    parent, view = about["parent"], about["view"]
    look_in(about["folders"])
    if hasattr(os, "getppid") and os.name == "posix" and os.getppid() != parent:
        os._exit(1)
    if view:
        from bench_core._io.namespaces import confine

        confine(**view)
    if sys.platform.startswith("linux"):
        from bench_core.execution.guard import enclosed, guarded

        guarded(parent)
        if view and view["private"]:
            from bench_core._io.syscalls import FOR_LEARNERS, filter_calls, write_below_mounts

            enclosed()
            write_below_mounts()
            filter_calls(FOR_LEARNERS)
    from bench_core.class_names import run_code
    from bench_core.execution.worker import main

    run_code(*filter(None, about["origin"].split("+")))
    main(about["memory"], judges=not about["origin"])


def start_plugin(about: dict[str, Any]) -> None:
    """Enter private namespaces, and answer for a plugin until the pipe closes (Linux)."""
    from bench_core._io.processes import DEATH_SIGNAL, prctl

    prctl(DEATH_SIGNAL, signal.SIGKILL)
    look_in(about["folders"])
    if os.getppid() != about["parent"]:
        os._exit(1)
    from bench_core._io.namespaces import confine
    from bench_core.execution.guard import enclosed

    confine(**about["view"])
    enclosed()
    if about["memory"]:
        from bench_core._io.machine import limit_memory

        limit_memory(about["memory"])
    from bench_core.execution.plugin_host import main

    main(about["plugin"])


def start_model(about: dict[str, Any]) -> None:
    """Enter private namespaces and filter system calls if asked to; answer for a model until its
    sockets close. Ends with NOT_POSSIBLE where the system does not allow that."""
    look_in(about["folders"])
    if sys.platform.startswith("linux"):
        from bench_core._io.processes import DEATH_SIGNAL, prctl

        prctl(DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != about["parent"]:
        os._exit(1)
    if view := about["view"]:
        # before anything is imported, and in a process that has one thread
        from bench_core._io.namespaces import NOT_POSSIBLE, confine
        from bench_core._io.syscalls import filter_calls, write_below_mounts
        from bench_core.execution.guard import enclosed

        try:
            confine(**view)
            enclosed()
            write_below_mounts()
            filter_calls()
        except OSError as error:
            if about["must"]:  # else the command says so, once
                os.write(2, f"a model's process cannot be private: {error}\n".encode())
            os._exit(NOT_POSSIBLE)
    from bench_core.execution.host import main

    main(about["sockets"])
