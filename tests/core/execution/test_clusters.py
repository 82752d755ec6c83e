"""Clusters by import path; a text stands for one here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench_core import InputError
from bench_core.execution.dask import named

MODULES = ("my_cluster", "my_package", "beside_it")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder that is not on Python's path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in MODULES]:
        del sys.modules[name]


def test_a_module_of_the_current_folder_holds_a_cluster_or_a_function_that_makes_one(
    here: Path,
) -> None:
    (here / "beside_it.py").write_text("cores = 2")
    (here / "my_cluster.py").write_text(
        "import beside_it\ncluster = f'{beside_it.cores} cores'\ndef make(): return cluster"
    )
    before = [*sys.path]
    assert named("my_cluster:cluster") == "2 cores"
    assert named("my_cluster:make") == "2 cores"
    assert sys.path == before


def test_what_lies_in_the_current_folder_hides_no_library(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "colorsys.py").write_text("raise SystemExit('hidden')")
    (here / "my_cluster.py").write_text("import colorsys\ncluster = colorsys.ONE_THIRD")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    assert named("my_cluster:cluster") == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import no_such_library", r"no cluster \(ModuleNotFoundError: No module"),
        ("def cluster(: pass", r"no cluster \(SyntaxError: "),
        ("clusters = 3", "no cluster .*has no attribute 'cluster'"),
        ("def cluster(): raise OSError('no partition')", r"no cluster \(OSError: no partition\)"),
        (None, r"no cluster \(ModuleNotFoundError: No module named 'my_cluster'\)"),
    ],
)
def test_what_cannot_be_imported_is_one_true_line(here: Path, text: str | None, line: str) -> None:
    if text is not None:
        (here / "my_cluster.py").write_text(text)
    with pytest.raises(InputError, match=f"^--executor dask=my_cluster:cluster: .*{line}") as fault:
        named("my_cluster:cluster")
    assert "\n" not in str(fault.value)
