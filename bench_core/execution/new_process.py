"""A fitted model in a new process, which has seen no row.

A second instance in the same process shares globals, caches and class attributes of its modules
with the first. The audit hides cells from a model here: the process never receives their values.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any, Self

from bench_core._io.machine import die_with, one_blas_thread, private_pipes
from bench_core.execution.contract import MAX_POINTS, ContractError
from bench_core.results.store_files import load_model

_START = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.new_process import serve; serve(a['parent'], a['state'])"
)


class ModelElsewhere:
    """The model of a state file, in a process that starts with the first call of ``fresh``."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._process: subprocess.Popen[bytes] | None = None
        self.fault = ""
        """Reason why the process cannot load the model, if so."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def fresh(self) -> Any:
        """Load the model again and return it: this object, or a model in this process if another
        one cannot import its class, as with a notebook's."""
        if self._process is None:
            about = {"parent": os.getpid(), "path": sys.path, "state": str(self._state)}
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _START, json.dumps(about)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        try:
            self._ask("load")
        except MemoryError:
            raise
        except Exception as error:
            self.fault = f"{type(error).__name__}: {error}"
            return self.load_here()
        return self

    def load_here(self) -> Any:
        """Load the model again in this process."""
        return load_model(self._state)

    def predict_path(self, *given: Any) -> Any:
        """As the model's."""
        return self._ask("predict_path", *given)

    def predict_at(self, *given: Any) -> Any:
        """As ``Sequential``'s."""
        return self._ask("predict_at", *given)

    def predict_capped(self, *given: Any) -> Any:
        """As ``Sequential``'s."""
        return self._ask("predict_capped", *given)

    def _ask(self, name: str, *arguments: Any) -> Any:
        pipes: Any = self._process
        try:
            pickle.dump((name, arguments), pipes.stdin)
            pipes.stdin.flush()
            kind, reply = pickle.load(pipes.stdout)
        except (EOFError, BrokenPipeError) as error:
            raise ContractError("its process ended") from error
        if kind:  # its class may exist there alone
            raise (
                MemoryError(reply) if kind == "MemoryError" else type(kind, (Exception,), {})(reply)
            )
        return reply


def serve(parent: int, state: str) -> None:
    """Run the process: read calls from standard input until it closes, and reply to each."""
    die_with(parent)
    source, sink = private_pipes()
    model: Any = None
    with one_blas_thread(), contextlib.suppress(EOFError):
        while True:
            name, arguments = pickle.load(source)
            try:
                reply: Any = None
                if name == "load":
                    model = load_model(Path(state))
                elif name == "predict_path":  # copies, as it may modify its arrays afterwards
                    reply = [*map(deepcopy, islice(model.predict_path(*arguments), MAX_POINTS + 1))]
                else:
                    reply = getattr(model, name)(*arguments)
                answer = pickle.dumps(("", reply))
            except Exception as error:
                answer = pickle.dumps((type(error).__name__, str(error)))
            sink.write(answer)
            sink.flush()
