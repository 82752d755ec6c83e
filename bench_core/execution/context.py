"""What ``fit`` gets of the harness: the members of ``FitContext``, and nothing behind them.

Who follows every attribute, slot and closure of a ``Context`` finds no specification, no path and
no pipe: its functions hold two queues, and a thread of the harness answers what they ask.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, RLock, Thread
from typing import Any

from bench_core.arrays import Array
from bench_core.data import Task
from bench_core.protocols import Metric
from bench_core.splits import Splits

Build = Callable[[], Mapping[str, Array]]
Fitted = Callable[[Any], Any]
Shared = Callable[[str, Build], Mapping[str, Array]]
Progress = Callable[[int, int], None]
"""Takes how much is done, and of how much."""

PROGRESS_SECONDS = 0.1
"""Reports of a fit that come faster than this are dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The ``FitContext`` of one fit."""

    task: Task
    classes: int
    feature_names: tuple[str, ...]
    metric: Metric
    seed: int
    threads: int
    fitted: Fitted
    shared: Shared
    progress: Progress

    @classmethod
    def of(cls, splits: Splits, metric: Metric, seed: int, threads: int, *calls: Any) -> Context:
        """The context of a fit on ``splits``; ``calls`` are fitted, shared and progress."""
        facts = splits.task, splits.classes, splits.feature_names
        return cls(*facts, metric, seed, threads, *calls)


@contextmanager
def context(
    splits: Splits,
    metric: Metric,
    seed: int,
    threads: int,
    fitted: Fitted,
    shared: Callable[[str, str, Build], Mapping[str, Array]],
    progress: Progress,
) -> Iterator[Context]:
    """The context of a fit, whose questions these functions answer in a thread of their own.

    ``shared`` takes the name, the module of what builds, and the builder.
    """

    def answer(question: tuple[Any, ...], made: Build) -> Any:
        what, *about = question
        if what == "shared":
            name, module = about
            return shared(name, module, made)
        return fitted(*about) if what == "fitted" else progress(*about)

    ask, end = _counter(answer)
    last = 0.0

    def ask_fitted(learner: Any) -> Any:
        return ask(("fitted", learner))

    def ask_shared(name: str, build: Build) -> Mapping[str, Array]:
        made: Mapping[str, Array] = ask(("shared", name, getattr(build, "__module__", "")), build)
        return made

    def report(done: int, total: int) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= PROGRESS_SECONDS:
            last = now
            ask(("progress", int(done), int(total)))

    try:
        yield Context.of(splits, metric, seed, threads, ask_fitted, ask_shared, report)
    finally:
        end()


class _AbandonedError(Exception):
    """What was being built is not going to be."""


def _counter(
    answer: Callable[[tuple[Any, ...], Build], Any],
) -> tuple[Callable[..., Any], Callable[[], None]]:
    """``ask(question, build)``, which ``answer(question, made)`` answers in a thread, and what ends
    that. ``made()`` lets ``build`` be called where the question was asked.
    """
    asked: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    answers: SimpleQueue[tuple[str, Any]] = SimpleQueue()
    alone, over, process = RLock(), Event(), os.getpid()

    def ask(question: tuple[Any, ...], build: Build | None = None) -> Any:
        if over.is_set() or os.getpid() != process:
            raise RuntimeError("the context of a fit is for its process, and until it ends")
        with alone:
            asked.put(("ask", question))
            failed: BaseException | None = None
            while True:
                word, value = answers.get()
                if word == "answer":
                    return value
                if word == "error":
                    raise failed or value
                try:
                    asked.put(("built", build()))  # type: ignore[misc]
                except BaseException as error:
                    failed = error
                    asked.put(("abandoned", None))

    def made() -> Any:
        answers.put(("build", None))
        return serve()

    def serve() -> Any:
        """Answer until something is built, or until the end."""
        while True:
            word, value = asked.get()
            if word == "abandoned":
                raise _AbandonedError
            if word != "ask":
                return value
            try:
                answers.put(("answer", answer(value, made)))
            except BaseException as error:  # its frames would lead to what is behind
                error.__cause__ = error.__context__ = None
                answers.put(("error", error.with_traceback(None)))

    def end() -> None:
        over.set()
        asked.put(("end", None))

    Thread(target=serve, name="bench-context", daemon=True).start()
    return ask, end
