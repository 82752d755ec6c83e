"""The layout of docs/reference/architecture.md, read off the import statements.

Every import counts: at the top, inside a function, for type checking.
"""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PLUGINS = ROOT / "plugins"
HOMES = {
    "bench_core": ROOT / "bench_core",
    "bench_trees": PLUGINS / "bench_trees",
    "bench_models": PLUGINS / "bench_models",
    "bench_methods": PLUGINS / "bench_methods",
    "bench_datasets": PLUGINS / "bench_datasets",
    "bench_claims": PLUGINS / "bench_claims",
    "bench_measure": PLUGINS / "bench_measure",
    "bench_optimum": PLUGINS / "bench_optimum",
    "bench_c": PLUGINS / "bench_c",
    "bench_mlflow": PLUGINS / "bench_mlflow",
    "bench_reports": ROOT / "reports/bench_reports",
}
MAY_IMPORT = {
    "bench_core": {"bench_trees"},  # ``bench_core.serving`` alone
    "bench_trees": set(),
    "bench_models": {"bench_core", "bench_trees"},
    "bench_methods": {"bench_core", "bench_trees", "bench_models"},
    "bench_datasets": {"bench_core", "bench_measure"},
    "bench_claims": {"bench_core"},
    "bench_measure": {"bench_core"},
    "bench_optimum": {"bench_core"},
    "bench_c": {"bench_core"},
    "bench_mlflow": {"bench_core"},
    "bench_reports": {"bench_core"},
}
ORDER = (
    "errors", "option_fields", "arrays", "_io", "data", "encoding", "class_names", "costs",
    "splits", "protocols", "contracts", "parameters", "sequential", "optimum", "hookspecs",
    "plugins", "metrics", "datasets", "results", "statistics", "serving", "planning", "execution",
    "terminal", "leaderboard", "api", "conformance", "scaffold", "cli", "__main__",
)  # fmt: skip
"""Parts of bench_core: each may import only what stands before it."""
PUBLIC = (
    *("bench_core.arrays", "bench_core.datasets.readers", "bench_core.datasets.splitting"),
    *("bench_core.datasets.cache", "bench_core.datasets.publishers", "bench_core.serving"),
    *("bench_core.optimum", "bench_core.encoding", "bench_core.errors"),
)
"""Modules that these may import beside ``bench_core`` itself:"""
PLUGGED = {"bench_models", "bench_methods", "bench_datasets"}
HEAVY = {"numba", "scipy", "pandas", "sklearn"}


def modules_of(package):
    """Module name -> file."""
    home = HOMES[package]
    found = {}
    for path in sorted(home.rglob("*.py")):
        parts = path.relative_to(home.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def all_modules():
    return {name: path for package in HOMES for name, path in modules_of(package).items()}


@cache
def imports():
    """Our modules that each of our modules imports anywhere in its text."""
    return {name: set(_imported(path)) for name, path in all_modules().items()}


def _imported(path):
    ours = all_modules()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ours)
        elif isinstance(node, ast.ImportFrom) and node.module in ours:
            submodules = {f"{node.module}.{alias.name}" for alias in node.names} & ours.keys()
            yield from submodules
            if len(submodules) < len(node.names):
                yield node.module


def family(module):
    """The file or folder that one entry point stands for."""
    return ".".join(module.split(".")[:2])


def place(module):
    return ORDER.index(module.split(".")[1])


def allowed(name, target):
    """Whether a module may import another one of ours."""
    package, other = name.split(".")[0], target.split(".")[0]
    if other == "bench_core" and package in PLUGGED:
        return target == other or target.startswith(PUBLIC)
    if other != package:
        serving = package != "bench_core" or name.startswith("bench_core.serving.")
        return other in MAY_IMPORT[package] and serving
    if package == "bench_core" and "." in name and "." in target:
        return place(target) <= place(name)
    if package in ("bench_methods", "bench_datasets"):  # none imports another method or data set
        shared = target == package or family(target).split(".")[-1].startswith("_")
        return shared or family(name) == family(target)
    return True


@pytest.mark.parametrize("package", HOMES)
def test_a_package_imports_only_what_it_may(package):
    edges = [(name, t) for name, found in imports().items() for t in found]
    own = [edge for edge in edges if edge[0].split(".")[0] == package]
    assert [f"{name} imports {target}" for name, target in own if not allowed(name, target)] == []


def test_no_import_leads_back_to_where_it_began():
    graph = {name: set(targets) - {name} for name, targets in imports().items()}
    while True:
        leaves = {name for name, targets in graph.items() if not targets & graph.keys()}
        if not leaves:
            break
        graph = {name: targets for name, targets in graph.items() if name not in leaves}
    assert graph == {}  # what is left imports each other in a circle


def test_shared_model_parts_register_nothing():
    wrong = [
        name for name, path in modules_of("bench_models").items() if "provide_" in path.read_text()
    ]
    assert wrong == []


def plugin_modules():
    text = (ROOT / "pyproject.toml").read_text()
    packages = "bench_(?:c|datasets|methods|mlflow)"
    return re.findall(rf'^\w[\w-]* = "({packages}\b[\w.]*)"$', text, flags=re.M)


def test_loading_a_plugin_imports_nothing_heavy():
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    before = set(sys.modules)\n"
        "    importlib.import_module(name)\n"
        "    print(name, *{m.split('.')[0] for m in set(sys.modules) - before})\n"
    )
    modules = plugin_modules()
    assert len(modules) > 20
    loaded = subprocess.run(
        [sys.executable, "-c", code, *modules], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in loaded.stdout.splitlines()]
    assert [name for name, *_ in lines] == modules
    assert {name: HEAVY & set(loads) for name, *loads in lines if HEAVY & set(loads)} == {}


def test_suites_hold_no_python():
    assert list((ROOT / "suites").rglob("*.py")) == []


PAGE = (ROOT / "docs/reference/architecture.md").read_text(encoding="utf-8")
INTERNALS = (ROOT / "docs/reference/internals.md").read_text(encoding="utf-8")
BUILT = {"bench_core/_suites"}  # by the wheel


def table(heading):
    """Rows of cells of the table below a heading, or below a line that ends the text before it."""
    lines = PAGE.split(heading)[1].split("|\n\n")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


CHANGES = [row for row in table("## Everyday changes") if not row[0].startswith("**")]


def is_path(word):
    return "/" in word or Path(word).suffix in {".py", ".md", ".js", ".toml"}


def files_of(row):
    """Each path of a row with the names that stand behind it, up to the next path."""
    files = []
    for word in re.findall(r"`([^`]+)`", " | ".join(row[1:])):
        if not is_path(word):
            files[-1][1].append(word)
            continue
        home = ROOT
        if "/" not in word and not (ROOT / word).exists():  # next to the first file
            home = files[0][0] if files[0][0].is_dir() else files[0][0].parent
        files.append((home / word, []))
    return files


@pytest.mark.parametrize("row", CHANGES, ids=lambda row: row[0])
def test_files_of_a_change_exist_and_hold_what_is_named(row):
    assert len(row) == 4
    *_, (test, _) = files = files_of(row)
    assert test.is_relative_to(ROOT / "tests")
    assert test.is_file()
    for path, names in files:
        assert path.exists()
        for name in names:
            defined = rf"^\s*(def |class )?{name}\b( = |[(:])"
            assert re.search(defined, path.read_text(encoding="utf-8"), flags=re.M), (path, name)


def test_the_page_is_short():
    assert len(PAGE.splitlines()) <= 200
    rows = [line for line in (PAGE + INTERNALS).splitlines() if line.startswith("|")]
    assert [row for row in rows if len(row) > 200] == []
    assert len({row[0] for row in CHANGES}) == len(CHANGES) > 50


@pytest.mark.parametrize("page", [PAGE, INTERNALS], ids=["architecture", "internals"])
def test_every_path_of_a_page_exists(page):
    paths = re.findall(r"`((?:bench_core|docs|plugins|reports|suites|tests)/[\w./]*)`", page)
    assert len(paths) > 20
    assert [p for p in paths if p not in BUILT and not (ROOT / p).exists()] == []


def test_the_page_has_the_parts_of_the_core_in_order():
    rows = table("in this list:")
    parts = [part.rstrip("/") for row in rows for part in row[0].strip("`").split()]
    assert (*parts, "__main__") == ORDER
    there = {p.stem for p in (ROOT / "bench_core").iterdir() if p.suffix == ".py" or p.is_dir()}
    assert {p for p in there if not p.startswith("__")} - {*parts, "_suites"} == set()


def test_the_page_says_what_a_package_may_import():
    above = "bench_core", "bench_trees", "bench_models"  # "the three above"
    said = {}
    for folders, _, imports in table("## Project layout"):
        names = {*re.findall(r"\bbench_\w+", imports)}
        names |= {*above} if "three above" in imports else set()
        for folder in re.findall(r"`[\w/]*?(\w+)/`", folders):
            said[folder] = names
    assert {package: said[package] for package in MAY_IMPORT} == MAY_IMPORT
