"""What numba's cache demands: it compares the file of the compiled function, not those it calls."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import bench_trees

ENGINE = Path(bench_trees.__path__[0])
UNCACHED = {"inner", "inner_dividing", "inner_summing", "njit(inline='always')"}


def compiled(tree):
    """Names of functions under ``@njit`` or an intrinsic's decorator."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(
            word in ast.unparse(d)
            for d in node.decorator_list
            for word in ("njit", "kernel", "inner", "intrinsic", "calling")
        )
    }


def test_a_kernel_that_calls_those_of_other_files_watches_them():
    trees = {path.stem: ast.parse(path.read_text()) for path in ENGINE.glob("kernels/*.py")}
    callers = set()
    for file, tree in trees.items():
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        for node in imports:
            module = str(node.module).rpartition(".")[2]
            names = {alias.name for alias in node.names} - {"calling"}
            if module in trees and names & compiled(trees[module]):
                callers.add(file)
    assert {"histograms", "partition", "tree"} <= callers
    for file in callers:
        for node in ast.walk(trees[file]):
            if isinstance(node, ast.FunctionDef):
                decorators = " ".join(map(ast.unparse, node.decorator_list))
                assert decorators in UNCACHED or decorators.startswith("calling("), node.name


def test_the_cache_of_a_caller_watches_the_files_that_it_calls(tmp_path):
    """A kernel that was compiled with another file's is compiled again when that one changes."""
    inner = "from numba import njit\n@njit(cache=True, nogil=True)\ndef number():\n    return {}\n"
    outer = (
        "from inner import number\nfrom bench_trees.kernels import compiling\n"
        "compiling.__file__ = __file__  # whose folder is watched\n"
        "@compiling.calling()\ndef twice():\n    return 2 * number()\n"
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


def test_every_compiled_function_stands_among_the_kernels():
    outside = [path for path in ENGINE.rglob("*.py") if path.parent.name != "kernels"]
    assert len(outside) > 10
    assert [path.name for path in outside if compiled(ast.parse(path.read_text()))] == []
