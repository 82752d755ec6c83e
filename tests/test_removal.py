"""Deleting a plugin leaves all others importable: its row has the error, and no other."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench_core.plugins import OURS, installed

SCRIPT = """
import sys
from importlib.abc import MetaPathFinder

class Deleted(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if f"{name}.".startswith(f"{sys.argv[1]}."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Deleted())
from bench_core.plugins import load_registry
print(*(plugin.module for plugin in load_registry().plugins if plugin.error))
"""
MODULES = sorted({point.value for point in installed() if point.dist and point.dist.name == OURS})


@pytest.mark.parametrize("module", MODULES[::6])
def test_without_one_plugin_the_others_load(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, module], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [module]


def test_methods_do_not_load_without_the_models_they_share() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "bench_models"], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.split()) > 10
