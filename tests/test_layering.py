"""The layout of docs/architecture.md, read off the import statements.

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
    *(
        "errors",
        "option_fields",
        "arrays",
        "_io",
        "data",
        "encoding",
        "class_names",
        "costs",
        "splits",
        "protocols",
        "contracts",
    ),
    *(
        "parameters",
        "sequential",
        "optimum",
        "hookspecs",
        "plugins",
        "metrics",
        "datasets",
        "results",
        "statistics",
        "serving",
    ),
    *("planning", "execution", "terminal", "leaderboard", "api", "conformance", "pytest_plugin"),
    *("scaffold", "cli", "__main__"),
)
"""Parts of bench_core: each may import only what stands before it."""
PUBLIC = (
    *("bench_core.arrays", "bench_core.datasets.readers", "bench_core.datasets.splitting"),
    *("bench_core.datasets.cache", "bench_core.datasets.publishers", "bench_core.serving"),
    "bench_core.optimum",
)
"""Modules that plugins may import beside ``bench_core`` itself."""
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


def edges(source):
    """(module, what it imports) for one package."""
    for name, targets in imports().items():
        if name.split(".")[0] == source:
            yield from ((name, target) for target in targets)


@pytest.mark.parametrize("package", HOMES)
def test_a_package_imports_only_those_below_it(package):
    wrong = [
        f"{name} imports {target}"
        for name, target in edges(package)
        if target.split(".")[0] not in MAY_IMPORT[package] | {package}
    ]
    assert wrong == []


def test_parts_of_the_core_import_only_what_stands_before_them():
    def place(module):
        return ORDER.index(module.split(".")[1])

    wrong = [
        f"{name} imports {target}"
        for name, target in edges("bench_core")
        if "." in name and target.startswith("bench_core.") and place(target) > place(name)
    ]
    assert wrong == []


def test_of_the_core_serving_alone_uses_the_tree_engine():
    wrong = [
        f"{name} imports {target}"
        for name, target in edges("bench_core")
        if target.startswith("bench_trees") and not name.startswith("bench_core.serving.")
    ]
    assert wrong == []


def test_no_import_leads_back_to_where_it_began():
    graph = {name: set(targets) - {name} for name, targets in imports().items()}
    while True:
        leaves = {name for name, targets in graph.items() if not targets & graph.keys()}
        if not leaves:
            break
        graph = {name: targets for name, targets in graph.items() if name not in leaves}
    assert graph == {}  # what is left imports each other in a circle


def family(module):
    """The file or folder that one entry point stands for."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("package", ["bench_methods", "bench_datasets"])
def test_no_method_imports_a_method_and_no_data_set_a_data_set(package):
    wrong = [
        f"{name} imports {target}"
        for name, target in edges(package)
        if target.split(".")[0] == package
        and family(name) != family(target)
        and not family(target).split(".")[-1].startswith("_")
        and target != package
    ]
    assert wrong == []


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


@pytest.mark.parametrize("package", ["bench_models", "bench_methods", "bench_datasets"])
def test_plugins_use_only_the_public_surface_of_the_core(package):
    wrong = [
        f"{name} imports {target}"
        for name, target in edges(package)
        if target.startswith("bench_core.") and not target.startswith(PUBLIC)
    ]
    assert wrong == []


def test_suites_hold_no_python():
    assert list((ROOT / "suites").rglob("*.py")) == []


PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ANSWERS = {
    "Where is a cost computed?": ("def feature_cost", "class Meter"),
    "Where is an option of a run declared, with its help, check and Python argument?": (
        "class RunRequest",
    ),
    "Where does a request become results?": ("def carried_out",),
    "Where is a plan made?": ("def make_plan",),
    "What decides whether an old result can be reused?": ("def fit_key", "def score_key"),
    "Where is a model asked for predictions?": ("def predict_split", ".predict_path("),
    "Where is a model audited?": ("def replay",),
    "Where is the model that I take home?": ("class Predictor", "class Program"),
    "Where does a policy buy, and what does it see?": ("class Policy", "def buy"),
    "Where is the optimum computed that boards compare with?": (
        "def optimum_of",
        "optimum=_optimum(",
        "def to_optimum",
    ),
    "Where is an operating point chosen?": ("def chosen", "class Choice"),
    "Where is a row written to the store?": ("def trial", "def put"),
    "Where is a metric defined?": ("class Ndcg", "class Accuracy", "class MeanSquaredError"),
    "Where is a data file read?": ("def read_svmlight", "def read_table"),
    "Which function is which equation of a paper?": ("eq. 8",),
}


def answers():
    """Question -> files, from the table of the page."""
    section = PAGE.split("## Everyday questions")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]*\?) \| (.*) \|$", section, flags=re.M)
    return {question: re.findall(r"`([\w./]+)`", cell) for question, cell in rows}


def test_every_question_is_answered():
    assert list(answers()) == list(ANSWERS)


@pytest.mark.parametrize("question", ANSWERS)
def test_the_files_of_an_answer_hold_it(question):
    text = "\n".join((ROOT / file).read_text(encoding="utf-8") for file in answers()[question])
    for mark in ANSWERS[question]:
        assert mark in text, f"{mark!r} is not in {answers()[question]}"


def test_every_path_of_the_page_exists():
    paths = re.findall(r"`((?:bench_core|plugins|reports|suites|tests)/[\w./]*)`", PAGE)
    assert len(paths) > 20
    made = {"bench_core/_suites"}  # by the wheel
    assert [p for p in paths if p not in made and not (ROOT / p).exists()] == []


def test_the_page_names_every_part_of_the_core():
    tables = PAGE.split("## Project layout")[1].split("\n## ")[0]
    parts = {p.stem for p in (ROOT / "bench_core").iterdir() if p.suffix == ".py" or p.is_dir()}
    unnamed = {p for p in parts if not p.startswith("__") and not re.search(rf"\b{p}\b", tables)}
    assert unnamed - {"_suites"} == set()
