"""New plugins from the templates in this folder: a module for ``-p``, or a package."""

import keyword
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench_core.errors import UsageError
from bench_core.plugins import INTERFACE, Registry

# kinds of plugins: name in the command -> name in the registry
KINDS: Mapping[str, str] = {
    "learner": "learner",
    "policy": "learner",
    "dataset": "data set",
    "metric": "metric",
    "cost-model": "cost model",
    "report": "report",
}

# commands that demonstrate a plugin of each kind
_TRY = {
    "learner": ["bench run --data breast-cancer --learners {name},cegb --reference gbrt"],
    "policy": ["bench run --data breast-cancer --learners {name},cegb --reference gbrt"],
    "dataset": ["bench run --data {name} --learners cheapest-first,constant"],
    "metric": ["bench run --data breast-cancer --learners constant --metric {name}"],
    "cost-model": ["bench run --data breast-cancer --learners constant --costs costs.toml"],
    "report": [
        "bench run --data breast-cancer --learners constant",
        "bench report -o board.tsv",
    ],
}
# file of a package -> its template
_PACKAGE = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "tests/test_{module}.py": "test.py",
    ".github/workflows/check.yml": "check.yml",
}
# learner names: top-k, budget-forest
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def files(kind: str, name: str, package: bool, registry: Registry) -> dict[str, str]:
    """Return the texts of a new plugin by path: in the current folder, or with ``package`` in a
    folder of its name. Raises UsageError for an invalid name."""
    module = name.replace("-", "_")
    _check_name(kind, name, module, registry)
    context = {
        "kind": KINDS[kind],
        "name": name,
        "module": module,
        "cls": "".join(part.capitalize() for part in name.split("-")),
        "interface": INTERFACE,
        "tries": tries(kind, name),
    }
    # file -> template
    places = {f"{module}.py": f"{kind}.py"}
    if kind == "cost-model":
        places["costs.toml"] = "costs.toml"
    if package:
        places |= {place.format(module=module): source for place, source in _PACKAGE.items()}
    texts = {place: _filled(source, context) for place, source in places.items()}
    return {f"{name}/{place}": text for place, text in texts.items()} if package else texts


def write(texts: Mapping[str, str]) -> None:
    """Write all files; raise UsageError, writing none, if one exists."""
    for place in texts:
        if Path(place).exists():
            raise UsageError(f"{place} already exists: move it, or choose another name")
    for place, text in texts.items():
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text(text, encoding="utf-8")


def tries(kind: str, name: str, module: str = "") -> list[str]:
    """Return commands that demonstrate the plugin; ``module`` if it is not installed."""
    more = f" -p {module}" if module else ""
    return [line.format(name=name) + more for line in _TRY[kind]]


def _check_name(kind: str, name: str, module: str, registry: Registry) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a name: write lower-case words and digits, as in top-k")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or _installed(module):
        raise UsageError(f"there is another Python module {module!r}: choose another name")
    if (KINDS[kind], name) in registry.origin:
        owner = registry.origin[KINDS[kind], name].origin
        raise UsageError(f"{KINDS[kind]} {name!r} already exists in {owner}: choose another name")


def _installed(module: str) -> bool:
    """True if a module of that name exists outside the current folder."""
    spec = find_spec(module)
    return spec is not None and Path(spec.origin or "").parent != Path.cwd()


def _filled(source: str, context: Mapping[str, Any]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # templates are not HTML
    )
    return environment.get_template(f"{source}.jinja").render(context)
