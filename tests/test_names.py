"""Values that live longer than three lines have names that tell what they hold."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VAGUE = {"own", "found", "one", "given", "known", "made", "asked", "part", "told", "beside"}
ALLOWED = {("_begin_rows", "one")}  # the integer 1
Function = ast.FunctionDef | ast.AsyncFunctionDef


def vague(source):
    """Yield function, name and line of each vague name that is used over more than three lines."""
    for function in (n for n in ast.walk(ast.parse(source)) if isinstance(n, Function)):
        lines, bound = defaultdict(list), set()
        nodes = [*ast.iter_child_nodes(function)]
        while nodes:
            node = nodes.pop()
            if isinstance(node, Function):
                continue
            if isinstance(node, ast.arg | ast.Name):
                name = node.arg if isinstance(node, ast.arg) else node.id
                lines[name].append(node.lineno)
                if isinstance(node, ast.arg) or isinstance(node.ctx, ast.Store):
                    bound.add(name)
            nodes += ast.iter_child_nodes(node)
        for name in sorted(VAGUE & bound):
            if max(lines[name]) - min(lines[name]) > 3 and (function.name, name) not in ALLOWED:
                yield function.name, name, min(lines[name])


@pytest.mark.parametrize("folder", ["bench_core", "plugins", "reports"])
def test_no_value_that_lives_long_has_a_vague_name(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    assert [(p.name, *v) for p in files for v in vague(p.read_text(encoding="utf-8"))] == []


def test_a_vague_name_is_found():
    assert [*vague("def f():\n    own = 1\n\n\n\n    return own\n")] == [("f", "own", 2)]
    assert [*vague("def f(own):\n    return [own\n]\n")] == []
