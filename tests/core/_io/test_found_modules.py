"""A digest is of the file that was executed, whatever its module says of its own place."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from bench_core._io.digests import code_key, look_again
from bench_core.plugins import load_registry

PLUGIN = """import sys
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path

import bench_core

DECOY = str(Path(__file__).with_name("decoy.py"))


class Lying:
    name, tasks = "lying", frozenset({"binary"})

    def fit(self, train, valid, prices, context):
        return NUMBER


@bench_core.hookimpl
def bench_learners():
    return [Lying]


"""
LIES = {
    "file": "__file__ = DECOY",
    "spec": "__spec__ = spec_from_file_location(__name__, DECOY)\ndel __file__",
    "loader": "__loader__ = SourceFileLoader(__name__, DECOY)\n__file__ = __loader__.path",
    "spec and file": "__spec__ = spec_from_file_location(__name__, DECOY)\n__file__ = DECOY",
    "its own spec": "__spec__.origin = __file__ = DECOY",
    "no module": "class Other:\n    __file__ = DECOY\n\n\nOther.bench_learners = bench_learners\n"
    "Other.Lying = Lying\nsys.modules[__name__].__file__ = DECOY",
    "later": "old = Lying.fit\n\n\nclass Late(type):\n    @property\n    def version(cls):\n"
    "        sys.modules[__name__].__file__ = DECOY\n        return ''",
}


def key_of(name: str, folder: Path) -> str:
    """The digest of the code of the learner in a module that is imported as a plugin."""
    sys.modules.pop(name, None)
    look_again()
    try:
        return code_key(load_registry([name]).learners["lying"])
    finally:
        for module in [m for m in sys.modules if m.partition(".")[0] == name]:
            del sys.modules[module]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "decoy.py").write_text("class Lying: pass")
    return tmp_path


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_module_that_names_another_file_has_the_digest_of_its_own(lie: str, folder: Path) -> None:
    keys = []
    for number in ("1", "-22"):
        (folder / "lying_module.py").write_text(PLUGIN.replace("NUMBER", number) + lie)
        keys.append(key_of("lying_module", folder))
    assert keys[0] != keys[1]


PACKAGE = """import bench_core

{before}
from lying_package.inner import Lying
{after}


@bench_core.hookimpl
def bench_learners():
    return [Lying]
"""
INNER = "class Lying:\n    name, tasks = 'lying', frozenset({'binary'})\n"
INNER += "    def fit(self, train, valid, prices, context):\n        return NUMBER\n"
AWAY = "__path__ = [__path__[0] + '/away']"


@pytest.mark.parametrize(
    ("before", "after", "executed"), [(AWAY, "", "away/"), ("", AWAY, ""), (AWAY, AWAY, "away/")]
)
def test_a_package_that_moves_its_path_has_the_digest_of_what_was_imported(
    before: str, after: str, executed: str, folder: Path
) -> None:
    package = folder / "lying_package"
    (package / "away" / "away").mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE.format(before=before, after=after))
    for place in ("", "away/", "away/away/"):
        (package / place / "inner.py").write_text(INNER.replace("NUMBER", "0"))
    first = key_of("lying_package", folder)
    (package / executed / "inner.py").write_text(INNER.replace("NUMBER", "-22"))
    assert key_of("lying_package", folder) != first


def test_what_a_plugin_asks_of_numpy_and_warnings_ends_with_its_import(folder: Path) -> None:
    lines = "import warnings\nimport numpy as np\nnp.seterr(all='raise')\n"
    lines += "warnings.simplefilter('error', ImportWarning)\n"
    (folder / "strict_module.py").write_text(lines)
    before = np.geterr(), [*warnings.filters]
    load_registry(["strict_module"])
    assert (np.geterr(), [*warnings.filters]) == before
