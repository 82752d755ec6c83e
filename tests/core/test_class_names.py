"""Which modules a name in a file may import."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_core import InputError
from bench_core.class_names import find_class, trust
from bench_core.results.store_files import load_model, save_model

MODEL = """from pathlib import Path

Path("imported").touch()


class Model:
    def state(self):
        return {}

    @classmethod
    def from_state(cls, state):
        return cls()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder from which modules can be imported, with a state that names one of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bench_core.class_names._named", {})
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "named_model.py").write_text(MODEL)
    (tmp_path / "named_plugin.py").write_text("def fit():\n    import named_model\n")
    yield tmp_path
    for name in ("named_model", "named_plugin"):
        sys.modules.pop(name, None)


def forged(path: Path, name: str) -> Path:
    import named_model

    save_model(path, named_model.Model())
    with np.load(path) as file:
        header = file["json"].tobytes().replace(b"named_model:Model", name.encode())
    np.savez(path, json=np.frombuffer(header, np.uint8))
    del sys.modules["named_model"]
    Path("imported").unlink()
    return path


def test_a_state_imports_no_module_that_nobody_named(folder: Path) -> None:
    state = forged(folder / "m.npz", "named_model:Model")
    with pytest.raises(InputError, match=r"named_model:Model: its module .* -p named_model"):
        load_model(state)
    assert not Path("imported").exists()


def test_what_a_named_module_imports_in_a_function_is_let_in(folder: Path) -> None:
    state = forged(folder / "m.npz", "named_model:Model")
    trust(["named_plugin"])
    assert not Path("imported").exists()
    assert type(load_model(state)).__name__ == "Model"


def test_a_named_module_is_imported_only_for_a_class_of_it(folder: Path) -> None:
    trust(["named_model"])
    assert "named_model" not in sys.modules  # it may be a rival's
    assert find_class("named_model:Model").__name__ == "Model"


@pytest.mark.parametrize("spelling", ["antigravity:Any", "this:d", "xmlrpc.server:Fault"])
def test_not_even_the_standard_library_is_imported(spelling: str) -> None:
    with pytest.raises(InputError, match="belongs to no installed plugin"):
        find_class(spelling)


def test_plugins_of_this_distribution_are_let_in() -> None:
    found: Any = find_class("bench_models.path_of_models:PathOfModels")
    assert found.__name__ == "PathOfModels"
