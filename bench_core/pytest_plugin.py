"""The pytest plugin: one test for each promise of a plugin.

::

    @pytest.mark.bench_check("my-plugin")
    def test_it_keeps_its_promises(promise):
        promise()

The marker takes what ``bench check`` does: names of things or plugins, or of a module that need not
be installed, and ``settings=["top-k.trees=5"]``. Nothing but pytest is imported until a test asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from bench_core.conformance import Case

MARK = "bench_check"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    line = f"{MARK}(*names, settings=()): run for each promise of these plugins (fixture promise)"
    config.addinivalue_line("markers", line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check of what the marker names."""
    if "promise" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker(MARK)
    if mark is None or not mark.args:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid} wants promises: write @pytest.mark.{MARK}"
            '("my_module") above it'
        )
    cases = _cases(*mark.args, **mark.kwargs)
    metafunc.parametrize(
        "promise", cases, ids=[f"{c.subject.split(' (')[0]}: {c.name}" for c in cases]
    )


def _cases(*names: str, settings: Sequence[str] = ()) -> list[Case]:
    from bench_core.conformance import chosen_cases
    from bench_core.errors import BenchError
    from bench_core.plugins import load_registry

    try:
        registry = load_registry()
        known = {name for _, name in registry.origin} | {p.name for p in registry.plugins}
        # what no installed plugin has is a module to import
        modules = [name for name in names if name not in known]
        if modules:
            registry = load_registry(modules)
        return chosen_cases(registry, names, settings=settings)
    except BenchError as error:
        raise pytest.UsageError(str(error)) from error
