"""The process in which a stranger's model lives: it gets cells and gives plain arrays.

Neither labels nor metrics nor bills in money are here, and no file is opened but those that the
model's modules are made of. See ``hosted.py``.
"""

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from bench_core.arrays import Array
from bench_core.class_names import find_class, run_code, trust
from bench_core.costs.bill import Prediction
from bench_core.data import Features, Queries
from bench_core.execution.contract import ContractError, plain_path
from bench_core.execution.failures import failure
from bench_core.execution.messages import receive, send
from bench_core.protocols import Concurrent, Independent


def main(sockets: list[int]) -> None:
    """Rebuild a model and answer for it until the sockets close."""
    pipes: list[Any] = [socket.socket(fileno=number).makefile("rwb") for number in sockets]
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, OSError):
        send(pipes[0], {"event": "ready"})
        model = _loaded(pipes[0])
        for pipe in pipes[1:]:
            threading.Thread(target=_serve, args=(pipe, model), daemon=True).start()
        _serve(pipes[0], model)
    os._exit(0)


def _loaded(pipe: BinaryIO) -> Any:
    try:
        asked = receive(pipe)[0]
        trust(asked["named"])
        run_code(*asked["runs"])
        cls: Any = find_class(asked["model"])
        send(pipe, {"event": "imported"})
        message, arrays = receive(pipe)
        own = {name: array.copy() for name, array in arrays.items()}
        turned = {name: own[name].T for name in message["turned"]}
        model = cls.from_state({**message["values"], **own, **turned})
        about = {
            "concurrent": isinstance(model, Concurrent) and bool(model.concurrent),
            "independent_rows": isinstance(model, Independent) and bool(model.independent_rows),
        }
        marks = [str(mark) for mark in getattr(model, "marks", ())]
        send(pipe, {"event": "loaded", **about, "marks": marks})
    except (EOFError, OSError):
        raise
    except BaseException as error:
        send(pipe, _failed(error))
        raise EOFError from error
    return model


def _serve(pipe: BinaryIO, model: Any) -> None:
    """Answer for one block after another."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            message, arrays = receive(pipe)
            if message["event"] != "block":
                continue
            queries = Queries(arrays["queries"].copy()) if "queries" in arrays else None
            _serve_block(pipe, plain_path(model, Features(arrays["X"].copy(), queries)))


def _serve_block(pipe: BinaryIO, path: Iterator[Prediction]) -> None:
    while receive(pipe)[0]["event"] == "next":
        try:
            prediction = next(path, None)
            if prediction is None:
                send(pipe, {"event": "end"})
                return
            message, arrays = _wire(prediction)
        except BaseException as error:
            send(pipe, _failed(error))
            return
        send(pipe, message, arrays)


def _wire(prediction: Prediction) -> tuple[dict[str, Any], Mapping[str, Array]]:
    arrays: dict[str, Array] = {"scores": prediction.scores}
    bills = []
    for k, (name, bill) in enumerate(prediction.bills.items()):
        bills.append([name, bill.acquired.sensors])
        counts = {"splits": np.asarray(bill.splits), "trees": np.asarray(bill.trees)}
        arrays |= {f"{k}.{what}": array for what, array in counts.items()}
        arrays[f"{k}.bits"] = bill.acquired.bits
    return {"event": "point", "point": dict(prediction.point), "bills": bills}, arrays


def _failed(error: BaseException) -> dict[str, Any]:
    status, line, trace = failure(error)
    contract = isinstance(error, ContractError)
    said = str(error) if contract else line
    return {
        "event": "failed",
        "status": str(status),
        "error": said,
        "trace": trace,
        "contract": contract,
    }
