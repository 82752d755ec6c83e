"""What numba's cache demands: it compares the file of the compiled function, not those it calls."""

from __future__ import annotations

import ast
from pathlib import Path

import bench_trees
from bench_trees import kernels

ENGINE = Path(bench_trees.__path__[0])


def compiled(tree: ast.Module) -> set[str]:
    """Names of functions under ``@njit`` or an intrinsic's decorator."""
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(
            "njit" in ast.unparse(d) or "intrinsic" in ast.unparse(d) for d in node.decorator_list
        )
    }


def test_a_kernel_calls_none_of_another_file() -> None:
    trees = {path.stem: ast.parse(path.read_text()) for path in ENGINE.glob("kernels/*.py")}
    everywhere = {name: compiled(tree) for name, tree in trees.items()}
    assert "prefetch" in everywhere["leaves"]
    borrowed = {
        (file, alias.name)
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(kernels.__name__)
        for alias in node.names
        if alias.name in everywhere[str(node.module).rpartition(".")[2]]
    }
    assert borrowed == set()


def test_every_compiled_function_stands_among_the_kernels() -> None:
    outside = [path for path in ENGINE.rglob("*.py") if path.parent.name != "kernels"]
    assert len(outside) > 10
    assert [path.name for path in outside if compiled(ast.parse(path.read_text()))] == []


def test_the_engine_imports_nothing_of_the_benchmark() -> None:
    for path in ENGINE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            ours = [n for n in names if n.startswith("bench_") and not n.startswith("bench_trees")]
            assert not ours, f"{path.name} imports {ours}"
