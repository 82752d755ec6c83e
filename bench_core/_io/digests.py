"""Digests of values and of source code: they change with everything that can change a number.

A file is digested as its syntax tree, independent of Python's version, without comments,
docstrings, blocks ``if TYPE_CHECKING:``, the texts of ``raise`` and ``assert`` and the descriptions
of ``param``.

The digest of a class covers the modules of the class and its bases, and recursively all modules
that these import, at the top or in a function. It stops at Python's own modules, at installed
libraries and at ``bench_core``. Modules are found without being executed. If a module imports by a
computed name, all modules of its package count; others are named in ``code``.
"""

import ast
import hashlib
import importlib
import inspect
import json
import sys
import uuid
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import entry_points
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

_CORE = "bench_core"
_OURS = (_CORE, "bench_models", "bench_trees")  # an editable installation lists no files
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
_Import = tuple[str, tuple[str, ...]]  # module, names (none: import module)


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: one text per value."""
    return _JSON.encode(value)


def digest(value: Any) -> str:
    """Return 32 hexadecimal digits of a hash of the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


def content_digest(path: Path) -> str:
    """Return a digest of the content of a file or of all files in a folder, "" if unreadable."""
    try:
        if path.is_file():
            return file_digest(path)
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return digest({str(file.relative_to(path)): file_digest(file) for file in files})
    except OSError:  # its reader says what is wrong
        return ""


def file_digest(path: Path) -> str:
    """Return 32 hexadecimal digits of a hash of a file's content, 1 GB in about a second. In a
    process it is computed once, while the file has the same inode, size and times."""
    facts = path.stat()
    return _file_digest(path, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)


@cache
def _file_digest(path: Path, *facts: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


@cache
def code_key(cls: type, core: tuple[str, ...] = ()) -> str:
    """Return a digest of a class's code, with modules of bench_core that start with ``core``.

    Raises ImportError for a name in ``code`` that is not a module.
    """
    typed = [c for c in cls.__mro__ if c is not object and _file_of(c.__module__) is None]
    modules = {c.__module__ for c in cls.__mro__ if _top(c.__module__) != _CORE} | {cls.__module__}
    for module in getattr(cls, "code", ()):
        modules.update(_modules_in(module))
    if "__main__" in modules and (script := getattr(sys.modules["__main__"], "__file__", "")):
        modules.update(_imports("__main__", Path(script), core))
    return digest([[_text(c) for c in typed], _closure(sorted(modules), core)])


@cache
def import_key(module: str) -> str:
    """Return a digest of a module and of the plugin code that it imports, "" without a file."""
    return digest(_closure([module], ())) if _file_of(module) else ""


@cache
def module_digest(name: str) -> str:
    """Return a digest of one module, or of all modules of a package, without their imports."""
    files = {module: _file_of(module) for module in _modules_in(name)}
    return digest({module: _read(module, file).digest for module, file in files.items() if file})


def source_files(module: str) -> list[Path]:
    """Return the files of a module and of the plugin code that it imports."""
    return [file for name in _closure([module], ()) if (file := _file_of(name))]


def look_again() -> None:
    """Clear cached digests, so that edited files are read again."""
    importlib.invalidate_caches()
    for function in (code_key, import_key, module_digest, _spec_of):
        function.cache_clear()


def _text(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return uuid.uuid4().hex  # typed at a prompt: never taken for something computed before


def _closure(names: Iterable[str], core: tuple[str, ...]) -> dict[str, str]:
    """Return digests, by module name, of these modules and of all modules that they import."""
    waiting = list(names)
    digests: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        # modules without a file are compiled into Python, or made by a program
        if name not in digests and (file := _file_of(name)) is not None:
            source = _read(name, file)
            digests[name] = source.digest
            waiting += _imports(name, file, core)
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            if source.computed and not source.dynamic and package and _top(name) != _CORE:
                waiting += _modules_in(package)
    return digests


def _imports(name: str, file: Path, core: tuple[str, ...]) -> Iterator[str]:
    """Yield the imports of a module that count."""
    for module, names in _read(name, file).imports:
        top = _top(module)
        if top != _CORE and (top == _top(name) or _is_plugin_code(top)):
            yield from _behind(module, names)
        elif top == _CORE:
            yield from (m for m in _behind(module, names) if m.startswith(core))


def _behind(module: str, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the modules of ``from module import names`` or, without names, ``import module``."""
    if not names:  # a.b.c runs a, a.b and a.b.c
        yield from accumulate(module.split("."), lambda whole, part: f"{whole}.{part}")
    members = [name for name in names if _file_of(f"{module}.{name}") is None]
    yield from (f"{module}.{name}" for name in names if name not in members)
    file = _file_of(module)
    if file is None or (names and not members):
        return
    yield module
    source = _read(module, file)
    if source.dynamic:  # a package that resolves names lazily; its stub lists them
        homes = {name: home for home, shown in source.stub for name in shown}
        known = members and all(name in homes for name in members)
        yield from (homes[name] for name in members) if known else _modules_in(module)


def _top(module: str) -> str:
    return module.partition(".")[0]


@cache
def _is_plugin_code(top: str) -> bool:
    """True if a package is a plugin's, or lies outside the installed libraries."""
    file = None if top in sys.stdlib_module_names else _file_of(top)
    if file is None:
        return False
    installed = {"site-packages", "dist-packages"} & {*file.parts}
    return not installed or top in plugin_packages()


@cache
def plugin_packages() -> frozenset[str]:
    """Return the top-level packages of bench and of every distribution with a plugin."""
    points = entry_points(group="bench")
    distributions = {p.dist.name: p.dist for p in points if p.dist}
    files = (file for d in distributions.values() for file in d.files or ())
    named = {_top(point.value.partition(":")[0]) for point in points}
    return frozenset({*_OURS, *named, *(file.parts[0].removesuffix(".py") for file in files)})


def _file_of(name: str) -> Path | None:
    """Return the file of a module, None if there is none (and for a script or a prompt)."""
    spec = None if name == "__main__" else _spec_of(name)
    return Path(spec.origin) if spec and spec.has_location and spec.origin else None


@cache
def _spec_of(name: str) -> ModuleSpec | None:
    parent = name.rpartition(".")[0]
    try:
        if not parent:
            return find_spec(name)
        above = _spec_of(parent)
        folders = above.submodule_search_locations if above else None
        return PathFinder.find_spec(name, folders) if folders else None
    except (ImportError, ValueError):  # made by a program, without a file
        return None


def _modules_in(name: str) -> list[str]:
    """Return a module, or all modules of a package."""
    file = _file_of(name)
    if file is None:
        raise ImportError(f"no module {name!r} (named by a learner's ``code``)")
    if file.name != "__init__.py":
        return [name]
    within = [p.relative_to(file.parent).with_suffix("").parts for p in file.parent.rglob("*.py")]
    return sorted(".".join([name, *(s for s in parts if s != "__init__")]) for parts in within)


class _Source(NamedTuple):
    """Relevant parts of a file: its digest, its imports and its stub's, and flags for lazy names
    and for imports by a computed name."""

    digest: str
    imports: tuple[_Import, ...] = ()
    stub: tuple[_Import, ...] = ()
    dynamic: bool = False
    computed: bool = False


def _read(name: str, file: Path) -> _Source:
    return _source(name, file, file_digest(file))


@cache
def _source(name: str, file: Path, content: str) -> _Source:
    """Return the parts of a file with the digest ``content``."""
    raw, stub = file.read_bytes(), file.with_suffix(".pyi")
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    bare, shown = _Bare(package), _Bare(package)
    try:
        text = "\n".join(_words(bare.visit(ast.parse(raw)), []))
        shown.visit(ast.parse(stub.read_bytes() if stub.exists() else b""))
    except (SyntaxError, ValueError, ImportError):  # compiled, or not for this Python
        return _Source(hashlib.sha256(raw).hexdigest())
    facts = tuple(bare.imports), tuple(shown.imports), b"__getattr__" in raw, bare.computed
    return _Source(hashlib.sha256(text.encode()).hexdigest(), *facts)


def _words(node: Any, words: list[str]) -> list[str]:
    """Append a syntax tree as words that are equal in all versions of Python. Empty fields are
    omitted, since some exist only in newer versions."""
    if isinstance(node, ast.AST):
        words.append(f"({type(node).__name__}")
        for name in node._fields:
            value: Any = getattr(node, name, None)
            if name == "ctx" or value is None or value == []:
                continue
            if type(node) is ast.JoinedStr:  # 3.12 puts empty texts into some
                value = [part for part in value if getattr(part, "value", 0) != ""]
            if value != []:
                words.append(name)
                _words(value, words)
        words.append(")")
    elif isinstance(node, list):
        for child in node:
            _words(child, words)
        words.append("]")
    else:
        words.append(repr(node))
    return words


class _Bare(ast.NodeTransformer):
    """Transformer that removes parts without effect on numbers, and records imports."""

    def __init__(self, package: str) -> None:
        self.package, self.computed = package, False
        self.imports: list[_Import] = []

    def visit_Import(self, node: ast.Import) -> ast.AST:
        self.imports += [(alias.name, ()) for alias in node.names]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        module = resolve_name("." * node.level + (node.module or ""), self.package)
        self.imports.append((module, tuple(alias.name for alias in node.names)))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        first = node.args[0] if node.args else None
        if called in ("import_module", "__import__"):
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                self.imports.append((resolve_name(first.value, self.package), ()))
            else:
                self.computed = True
        if called == "param":
            node.args = node.args[:1]  # the rest describes it
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        if "TYPE_CHECKING" in ast.dump(node.test):
            return [self.visit(statement) for statement in node.orelse]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        docstring = isinstance(node.value, ast.Constant)
        return None if docstring else self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.msg = None
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return _Mute().visit(self.generic_visit(node))  # type: ignore[no-any-return]


class _Mute(ast.NodeTransformer):
    """Transformer that removes texts."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")
