"""The process in which a stranger's plugin is imported, to say what it brings and what a plan must
know of its learners. No labels are in sight here, and the command takes plain values alone.

Questions and answers are lines of JSON. See ``plugin_process.py``.
"""

import contextlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bench_core.class_names import ElsewhereError, run_code, spelled
from bench_core.errors import BenchError, InputError, fault
from bench_core.execution.described import Given, unimported
from bench_core.execution.worker import private_pipes
from bench_core.planning.facts import Facts
from bench_core.planning.request import Setting
from bench_core.planning.resolve_learners import ChosenLearner, Wanted, choose
from bench_core.plugins import PluginInfo, Registry, load_alone, load_registry, one_line


def main(plugin: list[str]) -> None:
    """Answer until the pipe closes."""
    source, sink = private_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    own = PluginInfo(*plugin)
    run_code(own.module)
    with contextlib.suppress(OSError):
        for line in source:
            sink.write(json.dumps(_answer(own, json.loads(line))).encode() + b"\n")
            sink.flush()
    os._exit(0)


def _answer(own: PluginInfo, question: Mapping[str, Any]) -> dict[str, Any]:
    wanted = question.get("wanted")
    try:
        if wanted is None:
            return {"given": _given(load_alone(own))}
        settings = [Setting(**{**s, "path": tuple(s["path"])}) for s in wanted["settings"]]
        return _described(_chosen(own, Wanted(**{**wanted, "settings": settings}), question))
    except BenchError as error:
        return {"refused": str(error), "input": isinstance(error, InputError)}
    except BaseException as error:
        return {"refused": one_line(error) if wanted is None else f"it fails ({fault(error)})"}


def _given(alone: Registry) -> Given:
    """What a plugin brings, by name."""
    more: dict[str, Any] = {"learner": spelled, "suite": str}
    values = ((kind, name, alone.of_kind(kind)[name]) for kind, name in alone.origin)
    return [(k, name, more[k](value) if k in more else "") for k, name, value in values]


def _chosen(own: PluginInfo, wanted: Wanted, question: Mapping[str, Any]) -> ChosenLearner | str:
    """What is chosen of a learner. Another plugin is imported only where it stands on one of its
    learners."""
    known = {PluginInfo(*info): given for info, given in question["known"]}
    here = {own}

    def instead(info: PluginInfo, registry: Registry) -> bool:
        if info not in here and info in known:
            registry.add(info, unimported(info, known[info], lambda wanted: None))
        return info not in here

    while True:
        try:
            return choose(wanted, load_registry(question["modules"], instead))
        except ElsewhereError as there:
            here.add(there.learner.plugin)
            run_code(there.learner.plugin.module)


def _described(found: ChosenLearner | str) -> dict[str, Any]:
    if isinstance(found, str):
        return {"lack": found}
    facts = [asdict(Facts.of(one)) for one in found.instances]
    return {"role": found.role, "varied": found.varied, "ends": found.ends, "facts": facts}
