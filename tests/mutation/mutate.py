"""Does a test fail where the source is wrong? Changes one thing at a time and runs the tests.

    python tests/mutation/mutate.py metrics costs --sample 60 --seed 0 --jobs 2 --out mutants.jsonl

``targets.toml`` names the tests of every source file. A mutant swaps an operator or min and max,
moves an integer by one, returns None, or drops a call or an in-place change. Annotations, errors,
text, decorators and blocks for type checkers stay. Mutants live in a temporary copy of the tree,
one per job; tests run in forks of a process that has imported the libraries, Hypothesis draws the
same examples every time, and the first failure ends a run. Results are appended to ``--out`` and
not computed twice. The exit status is 1 if a mutant survived.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import hashlib
import importlib
import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("bench_core", "plugins", "reports", "tests")
FILES = [p.relative_to(ROOT).as_posix() for f in FOLDERS for p in (ROOT / f).rglob("*.py")]
HIDDEN = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis")
LIBRARIES = "pytest hypothesis numpy scipy.optimize scipy.sparse numba pandas click rich.console"
FORK = multiprocessing.get_context("fork")
_OPERATORS = """Lt:LtE,GtE LtE:Lt,Gt Gt:GtE,LtE GtE:Gt,Lt Eq:NotEq NotEq:Eq Is:IsNot IsNot:Is
In:NotIn NotIn:In And:Or Or:And Add:Sub Sub:Add Mult:Div Div:Mult FloorDiv:Div Mod:Mult Pow:Mult
BitAnd:BitOr BitOr:BitAnd BitXor:BitOr LShift:RShift RShift:LShift MatMult:"""
OPERATORS: dict[type, list[ast.AST]] = {
    getattr(ast, old): [getattr(ast, new)() for new in others.split(",") if new]
    for old, others in (entry.split(":") for entry in _OPERATORS.split())
}
_PAIRS = (("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all"))
SWAPS = dict(_PAIRS) | {other: one for one, other in _PAIRS}


class Mutant(NamedTuple):
    """One change: the line, the changed line, and the whole changed file."""

    key: str
    file: str
    line: int
    before: str
    after: str
    source: bytes


def visited(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose meaning tests could notice."""
    yield node
    for name, value in ast.iter_fields(node):
        if name not in {"annotation", "returns", "decorator_list", "msg"}:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not skipped(child):
                    yield from visited(child)


def skipped(node: ast.AST) -> bool:
    """Raised errors, text, and blocks for type checkers."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.BinOp(left=ast.Constant(value=str())) | ast.BinOp(right=ast.Constant(value=str())):
            return True
    return False


def changed(node: ast.AST, **fields: object) -> str:
    """The source of a node with other fields, in parentheses where it may need them."""
    other = copy.copy(node)
    vars(other).update(fields)
    safe = isinstance(other, ast.stmt | ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return ast.unparse(other) if safe else f"({ast.unparse(other)})"


def replacements(node: ast.AST) -> Iterator[str]:
    """What a node is replaced by, each a mutant."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                for new in OPERATORS[type(op)]:
                    yield changed(node, ops=[*ops[:i], new, *ops[i + 1 :]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op):
            yield from (changed(node, op=new) for new in OPERATORS[type(op)])
        case ast.AugAssign(op=op):
            yield from ("pass", *(changed(node, op=new) for new in OPERATORS[type(op)]))
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield changed(operand)
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield from (str(value + 1), str(value - 1) if value else "(-1)")
        case ast.Return(value=ast.Constant(value=bool(value))):
            yield f"return {not value}"
        case ast.Return(value=ast.expr() as returned) if ast.unparse(returned) != "None":
            yield "return None"
        case ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Name(id=name) if name in SWAPS:
            yield SWAPS[name]
        case ast.Attribute(attr=name) if name in SWAPS:
            yield changed(node, attr=SWAPS[name])


def mutants(file: str) -> Iterator[Mutant]:
    """All mutants of a file."""
    source = (ROOT / file).read_bytes()
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    for node in visited(ast.parse(source)):
        for text in replacements(node):
            first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
            start = starts[first - 1] + node.col_offset  # type: ignore[attr-defined]
            stop = starts[last - 1] + node.end_col_offset  # type: ignore[attr-defined]
            whole = source[:start] + text.encode() + source[stop:]
            here, end = starts[first - 1], starts[last]
            lines = source[here:end], whole[here : end + len(whole) - len(source)]
            before, after = (" ".join(line.decode().split()) for line in lines)
            yield Mutant(hashlib.sha256(whole).hexdigest(), file, first, before, after, whole)


def run_tests(tree: Path, file: str, tests: list[str], log: str) -> None:
    """In a fork: run the tests on the copy and leave with pytest's exit status."""
    os.setsid()  # what the tests start ends with them
    os.chdir(tree)
    places = [str(tree / place) for place in ("", "plugins", "reports")]
    sys.path[:0], os.environ["PYTHONPATH"] = places, os.pathsep.join(places)
    # a change of the same size in the same second is new to Python only where nothing is compiled
    sys.dont_write_bytecode, os.environ["PYTHONDONTWRITEBYTECODE"] = True, "1"
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1), 2)
    options = ["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={tree}.tmp"]
    options += ["--hypothesis-profile=ci", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    status = int(importlib.import_module("pytest").main([*options, *tests]))
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    sys.stdout.flush()
    os._exit(status if status or str(tree / file) in files else 99)


def not_copied(folder: str, names: list[str]) -> set[str]:
    """What a copy of the tree does without; ``bench_core/results`` is no folder of results."""
    outputs = {"results", "build"} if Path(folder) == ROOT else set()
    return HIDDEN(folder, names) | outputs


def attempt(
    scratch: str, file: str, source: bytes, tests: list[str], limit: float
) -> tuple[int | None, float, str]:
    """In a job: pytest's status (None: out of time), seconds and output with another source."""
    tree = Path(scratch, str(os.getpid()))
    if not tree.exists():  # with its compiled kernels, which are valid where times are kept
        shutil.copytree(ROOT, tree, ignore=not_copied)
    target, log = tree / file, f"{tree}.log"
    original = target.read_bytes()
    target.write_bytes(source)
    start = time.monotonic()
    process = FORK.Process(target=run_tests, args=(tree, file, tests, log))
    process.start()
    process.join(limit)
    status = process.exitcode
    with contextlib.suppress(ProcessLookupError):
        assert process.pid is not None
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    target.write_bytes(original)
    return status, time.monotonic() - start, Path(log).read_text(errors="replace")


def found(name: str) -> str:
    """The one file whose path from the root ends so. Exits where there is none, or several."""
    fitting = [path for path in FILES if f"/{path}".endswith(f"/{name}")]
    if len(fitting) != 1:
        sys.exit(f"targets.toml: {name} should be one file, not {fitting}")
    return fitting[0]


def targets(chosen: list[str]) -> dict[str, list[str]]:
    """Source files and their tests, of the groups or files that are named, or of all."""
    table = tomllib.loads(Path(__file__).with_name("targets.toml").read_text())
    if unknown := set(chosen) - set(table) - {file for files in table.values() for file in files}:
        sys.exit(f"targets.toml has no {', '.join(sorted(unknown))}")
    return {
        found(file): [found(test) for test in tests]
        for group, files in table.items()
        for file, tests in files.items()
        if not chosen or group in chosen or file in chosen
    }


def main() -> int:
    """Try what is asked for and not known yet; print each result and the sums by file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("target", nargs="*", help="groups or files of targets.toml; all without")
    add("--sample", type=int, metavar="N", help="so many mutants, drawn by chance")
    add("--seed", type=int, default=0, help="of the sample")
    add("--jobs", type=int, default=1, help="mutants at a time")
    add("--out", type=Path, default=Path("mutants.jsonl"), help="results, kept")
    add("--retry", action="store_true", help="try survivors again, with tests added since")
    args = parser.parse_args()
    tests = targets(args.target)
    chosen = [mutant for file in tests for mutant in mutants(file)]
    if args.sample is not None:
        chosen = random.Random(args.seed).sample(chosen, min(args.sample, len(chosen)))
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    known = {row["key"]: row["status"] for row in map(json.loads, lines)}
    left = [m for m in chosen if known.get(m.key) in (None, args.retry and "survived")]
    for name in LIBRARIES.split():
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(args.jobs, FORK) as pool:
        limits = {}
        for file in dict.fromkeys(m.file for m in left):
            source = (ROOT / file).read_bytes()
            clean = pool.submit(attempt, scratch, file, source, tests[file], 600)
            status, took, output = clean.result()
            if status != 0:
                why = "never import it" if status == 99 else f"end with {status}"
                sys.exit(f"{file}: its tests {why} as it is\n{output}")
            limits[file] = 10 + 5 * took
        runs = {
            pool.submit(attempt, scratch, m.file, m.source, tests[m.file], limits[m.file]): m
            for m in left
        }
        for done, run in enumerate(as_completed(runs), 1):
            m, (status, took, _) = runs[run], run.result()
            known[m.key] = word = {0: "survived", None: "timeout"}.get(status, "killed")
            row = {**m._asdict(), "source": None, "status": word, "seconds": round(took, 2)}
            with args.out.open("a") as out:
                print(json.dumps(row), file=out)
            print(
                f"{done}/{len(left)} {word} {m.file}:{m.line}: {m.before} -> {m.after}", flush=True
            )
    sums = Counter((m.file, known[m.key]) for m in chosen)
    for (file, word), count in sorted(sums.items()):
        print(f"{count:5} {word:9} {file}")
    return int(any(word == "survived" for _, word in sums))


if __name__ == "__main__":
    sys.exit(main())
