"""What numba's cache demands: it compares the file of the compiled function, not those it calls."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import bench_trees
from bench_trees import kernels

ENGINE = Path(bench_trees.__path__[0])
UNCACHED = {"inner", "inner_dividing", "njit(inline='always')"}


def compiled(tree: ast.Module) -> set[str]:
    """Names of functions under ``@njit`` or an intrinsic's decorator."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(
            word in ast.unparse(d)
            for d in node.decorator_list
            for word in ("njit", "inner", "intrinsic", "calling")
        )
    }


def borrowed(file: str, trees: dict[str, ast.Module]) -> set[str]:
    """Files of which this one imports compiled functions."""
    return {
        module
        for node in ast.walk(trees[file])
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(kernels.__name__)
        for module in [str(node.module).rpartition(".")[2]]
        if module in trees and {alias.name for alias in node.names} & compiled(trees[module])
    }


def all_borrowed(file: str, trees: dict[str, ast.Module]) -> set[str]:
    """The same, and those of which these import some."""
    own = borrowed(file, trees)
    return own.union(*(all_borrowed(name, trees) for name in own))


def test_a_kernel_names_all_files_whose_kernels_it_calls() -> None:
    trees = {path.stem: ast.parse(path.read_text()) for path in ENGINE.glob("kernels/*.py")}
    assert "prefetch" in compiled(trees["intrinsics"])
    callers = {file: names for file in trees if (names := borrowed(file, trees))}
    assert {"histograms", "partition", "tree"} <= {*callers}
    for file in callers:
        names = all_borrowed(file, trees)
        for node in ast.walk(trees[file]):
            if isinstance(node, ast.FunctionDef):
                (decorator,) = node.decorator_list
                if node.name[0] == "_" and ast.unparse(decorator) in UNCACHED:
                    continue
                assert isinstance(decorator, ast.Call), node.name
                assert ast.unparse(decorator.func) == "calling", node.name
                assert names <= {*map(ast.unparse, decorator.args)}, node.name


def test_the_cache_of_a_caller_watches_the_files_that_it_calls(tmp_path: Path) -> None:
    """A kernel that was compiled with another file's is compiled again when that one changes."""
    inner = "from numba import njit\n@njit(cache=True, nogil=True)\ndef number():\n    return {}\n"
    outer = (
        "import inner\nfrom inner import number\n"
        "from bench_trees.kernels.compiling import calling\n"
        "@calling(inner)\ndef twice():\n    return 2 * number()\n"
        "print(twice())\n"
    )
    (tmp_path / "outer.py").write_text(outer)
    found = []
    for number in (1, 2):
        (tmp_path / "inner.py").write_text(inner.format(number))
        command = [sys.executable, "-B", "-c", "import outer"]
        here = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        found.append(int(subprocess.check_output(command, cwd=tmp_path, env=here, text=True)))
    assert found == [2, 4]


def test_every_compiled_function_stands_among_the_kernels() -> None:
    outside = [path for path in ENGINE.rglob("*.py") if path.parent.name != "kernels"]
    assert len(outside) > 10
    assert [path.name for path in outside if compiled(ast.parse(path.read_text()))] == []
