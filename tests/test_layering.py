"""The layers of docs/architecture.md, read off the import statements."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HOMES = {
    "bench_core": ROOT / "bench_core",
    "bench_trees": ROOT / "plugins/bench_trees",
    "bench_methods": ROOT / "plugins/bench_plugins",
    "bench_reports": ROOT / "reports/bench_reports",
}
FORBIDDEN = {
    "bench_core": {"bench_trees", "bench_methods"},
    "bench_trees": {"bench_core", "bench_methods", "bench_reports"},
    "bench_methods": {"bench_reports"},
    "bench_reports": {"bench_trees", "bench_methods"},
}
HEAVY = {"numba", "scipy", "pandas", "sklearn", "plotly", "bench_trees"}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def sources(package: str) -> list[Path]:
    return sorted(HOMES[package].rglob("*.py"))


@pytest.mark.parametrize("package", HOMES)
def test_no_package_imports_one_above_it(package: str) -> None:
    found = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(package)
        for name in imported(ast.parse(path.read_text()))
        if name.split(".")[0] in FORBIDDEN[package]
    }
    assert found == set()


def test_core_reaches_reports_only_from_the_command_line_and_lazily() -> None:
    found = {
        str(path.relative_to(ROOT))
        for path in sources("bench_core")
        for name in imported(ast.parse(path.read_text()))
        if name.split(".")[0] == "bench_reports"
    }
    assert all(place.startswith("bench_core/cli/") for place in found)


def plugin_modules() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text()
    return re.findall(r'^\w[\w-]* = "(bench_methods\.[\w.]+)"$', text, flags=re.M)


@pytest.mark.parametrize("module", plugin_modules())
def test_loading_a_plugin_imports_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(' '.join(m.split('.')[0] for m in sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(loaded.stdout.split()) == set()


def test_plugins_use_only_the_public_surface_of_the_core() -> None:
    """``bench_core`` itself, and its readers for data sets: what a third party may use too."""
    found = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources("bench_methods")
        for name in imported(ast.parse(path.read_text()))
        if name.startswith("bench_core.") and not name.startswith("bench_core.datasets.readers")
    }
    assert found == set()


def test_suites_hold_no_python() -> None:
    assert list((ROOT / "suites").rglob("*.py")) == []
