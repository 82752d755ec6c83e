"""``--isolate``: plugins of others in processes of their own while a run is planned (Linux).

The command, which reads labels, judges by its workers and writes the store, imports of them only
those that bring a metric, a cost model or a data set that the run names. Of their learners it takes
plain values (``planning/facts.py``) from a private process, which sees no prepared data, no store
and no network. Keys, origins and digests of code are worked out here. ``plugin_host.py`` is the
other end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from bench_core._io.machine import memory
from bench_core._io.plugin_folders import for_a_process, homes, look_in
from bench_core.class_names import admit_code, spelled
from bench_core.errors import InputError, UsageError, one_line
from bench_core.execution.described import Given, described_learner, given_of, unimported
from bench_core.execution.isolation import Isolation
from bench_core.execution.runner import MEMORY_SHARE
from bench_core.planning.request import RunRequest, check_request, modules_of
from bench_core.planning.resolve_learners import DescribedLearner, Wanted
from bench_core.plugins import (
    OURS,
    PluginInfo,
    Registry,
    about,
    installed,
    load_alone,
    load_registry,
    of_module,
)

ANSWER_SECONDS = 60.0
"""How long a plugin may take to be imported, or to answer."""
LONGEST_ANSWER = 1 << 25

_START = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.start import start_plugin; start_plugin(a)"
)


class PluginProcess:
    """A plugin in a private process of its own, which begins to import it at once."""

    def __init__(self, plugin: PluginInfo, hidden: Sequence[str], most: int) -> None:
        self.plugin = plugin
        view = {"hidden": hidden, "shown": (), "places": (), "private": True}
        told = {"parent": os.getpid(), "view": view, "memory": most, **for_a_process()}
        told["plugin"] = [*asdict(plugin).values()]
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it has no terminal to write into
        )
        self._send({})

    def given(self) -> Given:
        """What it brings. Raises UsageError where it cannot be imported."""
        return given_of(self._receive().get("given"))

    def chosen(self, wanted: Wanted, of: PluginProcesses) -> DescribedLearner | str:
        """``resolve_learners.choose``. Raises what is raised there."""
        known = [[[*asdict(info).values()], given] for info, given in of.given.items()]
        question = {"wanted": asdict(wanted), "known": known, "modules": of.modules}
        answer = self._receive(question)
        if "lack" in answer:
            return one_line(str(answer["lack"]), 500)
        found = described_learner(wanted, answer, f"plugin {self.plugin.name}")
        of.refuse_doubles(found, self.plugin)
        return found

    def close(self) -> None:
        """End it with all that it started."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def _send(self, question: Mapping[str, Any]) -> None:
        pipe: Any = self._process.stdin
        try:
            pipe.write(json.dumps(question, default=str).encode() + b"\n")
            pipe.flush()
        except OSError:
            raise self._fault("ended its process") from None

    def _receive(self, question: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a question, which it may not even read, or to the one before."""
        pipe: Any = self._process.stdout
        timer = threading.Timer(ANSWER_SECONDS, self._process.kill)
        timer.start()
        try:
            if question is not None:
                self._send(question)
            line = pipe.readline(LONGEST_ANSWER)
        finally:
            late = not timer.is_alive()
            timer.cancel()
        if not line.endswith(b"\n"):
            spent = f"took longer than {ANSWER_SECONDS:g} s" if late else "ended its process"
            raise self._fault(spent)
        try:
            answer: Any = json.loads(line)
            refused = answer.get("refused")
        except (ValueError, AttributeError, RecursionError) as error:
            raise self._fault("sent what is no answer") from error
        if refused is not None:
            kind = InputError if answer.get("input") is True else UsageError
            raise kind(one_line(str(refused), 1000))
        return dict(answer)

    def _fault(self, what: str) -> UsageError:
        return UsageError(f"plugin {self.plugin.name} {what} while it was asked for its learners")


class PluginProcesses:
    """Those of all plugins of others, from when they begin until learners are chosen."""

    def __init__(
        self, plugins: Sequence[PluginInfo], modules: Sequence[str], hidden: Any, most: int
    ) -> None:
        self.modules = [*modules]
        self.given: dict[PluginInfo, Given] = {}
        self.registry = Registry()
        self._processes = {plugin: PluginProcess(plugin, hidden, most) for plugin in plugins}

    def register(self, plugin: PluginInfo, registry: Registry) -> bool:
        """Put what a plugin brings into a registry, without importing it; the rest waits there."""
        if plugin.origin == "-p" and any(
            other.module == plugin.module and not other.error for other in registry.plugins
        ):
            return True
        process = self._processes[plugin]
        given = process.given()
        named = [(kind, name) for kind, name, _ in given if kind not in ("learner", "suite")]
        for kind, name in named:
            registry.refuse_built_in(kind, name, plugin)
            if (kind, name) in registry.origin or (kind, name) in registry.waiting:
                fault = f"{kind} {name!r} is registered by another plugin too"
                raise UsageError(f"{fault}: uninstall or rename one")
        registry.add(plugin, unimported(plugin, given, partial(process.chosen, of=self)))
        registry.waiting |= dict.fromkeys(named, partial(_import, plugin, registry))
        self.given[plugin] = given
        return True

    def refuse_doubles(self, found: DescribedLearner, plugin: PluginInfo) -> None:
        """Raise UsageError where a plugin describes a class of its choice as the learner that
        another has of that name: two classes of a module would have one key."""
        waiting = [*found.instances]
        while waiting:
            one = waiting.pop()
            waiting += [*one.inner.values(), *one.needs]
            known = self.registry.learners.get(one.name)
            its = spelled(known) if known is not None else one.spelling
            owner = self.registry.origin.get(("learner", one.name))
            if its != one.spelling and owner != plugin:
                fault = f"says that {one.name} is {one.spelling}, and it is {its}; rename that"
                raise UsageError(f"plugin {plugin.name} {fault}")

    def close(self) -> None:
        """End all."""
        for process in self._processes.values():
            process.close()


def _import(plugin: PluginInfo, registry: Registry) -> None:
    """Import a plugin that a run names, for all that it brings but learners and suites."""
    admit_code(plugin.module)
    alone = load_alone(plugin)
    for kind, name in alone.origin:
        registry.waiting.pop((kind, name), None)
        if kind not in ("learner", "suite") and (kind, name) not in registry.origin:
            registry.of_kind(kind)[name] = alone.of_kind(kind)[name]
            registry.origin[kind, name] = plugin


def plugins_for(request: RunRequest) -> Registry:
    """All plugins; under ``--isolate`` those of others in private processes, until the registry is
    closed. Raises UsageError where the system has no such processes."""
    modules = (*request.plugins, *modules_of(request))
    look_in(dict.fromkeys(homes(modules), bool(request.isolate)))
    if not request.isolate:
        return load_registry(request.plugins)
    check_request(request)
    others = [info for info in map(about, installed()) if info.origin != OURS]
    others = list(dict.fromkeys([*others, *map(of_module, request.plugins)]))
    if not others:
        return load_registry()
    hidden = Isolation.of_request(request).hidden
    most = request.memory or int(MEMORY_SHARE * memory())
    processes = PluginProcesses(others, request.plugins, hidden, most)
    try:
        registry = load_registry(request.plugins, processes.register)
    except BaseException:
        processes.close()
        raise
    processes.registry = registry
    registry.closing.append(processes.close)
    return registry
