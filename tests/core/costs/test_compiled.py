"""Whether kernels were compiled here, and when numba is asked."""

import os
import sys
from pathlib import Path

import pytest

from bench_core.costs import compiled, meter


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder beside the source with an index; numba, were it asked, has compiled nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    monkeypatch.setattr(meter, "compiled_before", lambda: False)
    monkeypatch.delitem(sys.modules, meter.__name__)
    for name in [name for name in os.environ if name.startswith("NUMBA_CACHE")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "__pycache__"
    folder.mkdir()
    (folder / "meter._add_new-90.py311.nbi").touch()
    return folder


def test_an_index_beside_the_source_says_so_without_numba() -> None:
    assert compiled.compiled_before()


def test_numba_is_asked_where_none_is_beside_the_source(cache: Path) -> None:
    next(cache.iterdir()).unlink()
    assert not compiled.compiled_before()


@pytest.mark.parametrize("name", ["NUMBA_CACHE_DIR", "NUMBA_CACHE_LOCATOR_CLASSES"])
def test_numba_is_asked_where_it_was_told_of_another_place(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "elsewhere")
    assert not compiled.compiled_before()


def test_numba_is_asked_where_a_file_holds_its_settings() -> None:
    Path(".numba_config.yaml").touch()
    assert not compiled.compiled_before()


def test_numba_is_asked_where_it_cannot_write_beside_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not compiled.compiled_before()


def test_numba_is_asked_where_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, meter.__name__, meter)
    assert not compiled.compiled_before()
