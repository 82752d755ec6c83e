"""Run as a script: for each installed plugin, what fails when it is deleted, as JSON.

A deleted plugin has no entry point and its module cannot be imported. Each case is a fork of this
process, which has loaded the core and libraries, and no plugin. With a number N only every Nth
plugin is deleted. With the word ``all``, every module of the other plugins is imported too.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

from bench_core import plugins
from bench_core.cli import catalog
from bench_core.datasets.data_folder import DataFolder

SHARED = ("bench_methods", "bench_datasets", "bench_core")
"""Packages of several plugins; of the others a plugin is the whole package."""
LIBRARIES = ("numba", "pandas", "scipy.sparse", "sklearn.tree", "jinja2", "click", "rich.table")


def home(point: EntryPoint) -> str:
    """The module or package that is deleted with an entry point."""
    top = point.value.partition(".")[0]
    return point.value if top in SHARED else top


class Deleted:
    """A meta-path finder that has no such module."""

    def __init__(self, gone: str) -> None:
        self.gone = gone

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == self.gone or name.startswith(f"{self.gone}."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def modules_of(name: str) -> Iterator[str]:
    """A module, and if it is a package all modules in it."""
    yield name
    for found in pkgutil.walk_packages(getattr(importlib.import_module(name), "__path__", ())):
        yield from modules_of(f"{name}.{found.name}")


def without(point: EntryPoint, everything: bool) -> list[str]:
    """What fails when one plugin is deleted, one line each."""
    rest = [p for p in plugins.installed() if home(p) != home(point)]
    sys.meta_path.insert(0, Deleted(home(point)))
    plugins.installed = lambda group=plugins.GROUP: rest if group == plugins.GROUP else []
    registry = plugins.load_registry()
    wrong = [f"{p.name}: {p.error}" for p in registry.plugins if p.error]
    for name in ("learners", "datasets", "suites", "metrics", "costs", "reports", "plugins"):
        try:
            catalog.offered(registry, name, DataFolder())
        except Exception as error:
            wrong.append(f"bench list {name}: {type(error).__name__}: {error}")
    for other in rest if everything else ():
        try:
            for module in modules_of(home(other)):
                importlib.import_module(module)
        except Exception as error:
            wrong.append(f"{other.name}: {type(error).__name__}: {error}")
    return sorted(set(wrong))


def forked(point: EntryPoint, everything: bool) -> list[str]:
    """``without`` in a process of its own."""
    read, write = os.pipe()
    if not os.fork():
        with os.fdopen(write, "w") as out:
            json.dump(without(point, everything), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        found: list[str] = json.load(answer)
    os.wait()
    return found


if __name__ == "__main__":
    everything = sys.argv[1:] == ["all"]
    for library in LIBRARIES:
        importlib.import_module(library)
    control = EntryPoint("control: bench_models", "bench_models", plugins.GROUP)
    every = int(sys.argv[1]) if sys.argv[1:] and not everything else 1
    points = [*plugins.installed()[::every], control]
    json.dump({p.name: forked(p, everything) for p in points}, sys.stdout)
