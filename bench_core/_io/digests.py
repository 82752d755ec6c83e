"""Digests of values, and of source code: they change with what can change a number, and with
nothing else.

A file's digest is one of its syntax tree. Left out are comments, docstrings, ``if TYPE_CHECKING:``
blocks and messages. Messages are the strings in ``raise`` and ``assert`` statements, in calls of
``print``, ``warn``, ``say`` and names that end in ``Error``, and the descriptions of ``param``.
Where any module of a closure reads such texts, they count in all of it: by a caught exception that
is used otherwise than in raising or printing, by ``__exit__``, ``__doc__`` or ``exc_info``.

The digest of a class covers the modules of the class and of its bases, all modules that these
import, at the top or in a function, and all that those import. It stops at Python's own modules,
at installed libraries and at ``bench_core``. Modules are found without being executed. Where one
imports by a computed name, all modules of its package count; others are named in ``code``.
"""

import ast
import hashlib
import inspect
import json
import sys
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.metadata import entry_points
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

_CORE = "bench_core"
_OURS = (_CORE, "bench_models", "bench_trees")  # an editable installation lists no files
_MESSAGES = ("print", "warn", "say")
_ASIDE = ("ctx", "kind", "type_comment")  # fields
_READERS = ("__doc__", "__exit__", "__aexit__", "exc_info", "exception", "format_exc", "getdoc")
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
_Import = tuple[int, str, tuple[str, ...]]  # dots before it, module, names (none: import module)


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: one text per value."""
    return _JSON.encode(value)


def digest(value: Any) -> str:
    """32 hexadecimal digits over the canonical JSON of a value."""
    return text_digest(canonical(value))


def text_digest(text: str) -> str:
    """The same of a value whose canonical JSON is at hand."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@cache
def code_key(cls: type, core: tuple[str, ...] = ()) -> str:
    """A digest of the code that a class runs; modules of bench_core count if ``core`` begins so,
    or if they are loops of the tree engine.

    Raises ImportError for a name in ``code`` that is no module.
    """
    typed = [c for c in cls.__mro__ if c is not object and _file_of(c.__module__) is None]
    return digest([[_text(c) for c in typed], _closure(code_modules(cls, core), core)])


def code_modules(cls: type, core: tuple[str, ...] = ()) -> list[str]:
    """The modules with which the code of a class begins: its own, those of its bases, and those
    that it names."""
    homes = {c.__module__ for c in cls.__mro__ if _top(c.__module__) != _CORE} | {cls.__module__}
    extra = [name for module in getattr(cls, "code", ()) for name in _modules_in(module)]
    if "__main__" in homes and (script := getattr(sys.modules["__main__"], "__file__", "")):
        extra += _imports("__main__", Path(script), core)
    return sorted(name for name in {*homes, *extra} if _file_of(name) is not None)


def modules_key(modules: Iterable[str]) -> str:
    """The ``code_key`` of a class by its ``code_modules``; none of them is imported. Raises
    ImportError for one that is not here."""
    for name in (listed := list(modules)):
        if _file_of(name) is None:
            raise ImportError(f"No module named {name!r}")
    return digest([[], _closure(listed, ())])


@cache
def import_key(module: str) -> str:
    """A digest of a module and of the plugin code that it imports, "" where it has no file."""
    return digest(_closure([module], ())) if _file_of(module) else ""


def modules_behind(module: str) -> frozenset[str]:
    """A module and the plugin code that it imports, at the top or in a function."""
    return frozenset({module, *_closure([module], ())})


@cache
def module_digest(name: str) -> str:
    """A digest of one module, or of all modules of a package; what they import does not enter."""
    files = {module: _file_of(module) for module in _modules_in(name)}
    return digest({module: _read(file).digest for module, file in files.items() if file})


def look_again() -> None:
    """Let the digests above follow files that were edited since they were first asked for."""
    for function in (code_key, import_key, module_digest, _file_of, _source):
        function.cache_clear()


def _text(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):
        return uuid.uuid4().hex  # typed at a prompt: never taken for something computed before


def _closure(names: Iterable[str], core: tuple[str, ...]) -> dict[str, str]:
    """Digests, by module name, of these modules and of all that they import."""
    waiting = list(names)
    sources: dict[str, _Source] = {}
    while waiting:
        name = waiting.pop()
        if name not in sources and (file := _file_of(name)) is not None:
            source = sources[name] = _read(file)
            waiting += _imports(name, file, core)
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            if source.computed and not source.dynamic and package and _top(name) != _CORE:
                waiting += _modules_in(package)
    reads = any(source.reads for source in sources.values())
    return {name: source.whole() if reads else source.digest for name, source in sources.items()}


def _imports(name: str, file: Path, core: tuple[str, ...]) -> Iterator[str]:
    """The modules that count among those that a module imports."""
    for module, names in _absolute(_read(file).wanted, name, file):
        top = _top(module)
        if top != _CORE and (top == _top(name) or _is_plugin_code(top)):
            yield from _behind(module, names)
        elif top == _CORE:
            yield from (m for m in _behind(module, names) if m.startswith(core))


def _behind(module: str, names: tuple[str, ...]) -> Iterator[str]:
    """The modules behind ``from module import names`` or, without names, ``import module``."""
    if not names:
        yield from accumulate(module.split("."), lambda whole, part: f"{whole}.{part}")
    rest = [name for name in names if _file_of(f"{module}.{name}") is None]
    yield from (f"{module}.{name}" for name in names if name not in rest)
    file = _file_of(module)
    if file is None or (names and not rest):
        return
    yield module
    source = _read(file)
    if source.dynamic:  # a package that finds names when they are wanted
        homes = {n: home for home, shown in _absolute(source.typed, module, file) for n in shown}
        known = rest and all(name in homes for name in rest)
        yield from (homes[name] for name in rest) if known else _modules_in(module)


def _absolute(
    imports: Iterable[_Import], name: str, file: Path
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Module and names of the imports in the module ``name``."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for dots, module, names in imports:
        around = package[: len(package) + 1 - dots] if dots else []
        yield ".".join([*around, *filter(None, [module])]), names


def _top(module: str) -> str:
    return module.partition(".")[0]


@cache
def _is_plugin_code(top: str) -> bool:
    """Whether a package is a plugin's, or lies where no libraries are installed."""
    file = None if top in sys.stdlib_module_names else _file_of(top)
    if file is None:
        return False
    folder = file.parents[1] if file.name == "__init__.py" else file.parent
    installed = folder.name in ("site-packages", "dist-packages") or any(folder.glob("*.dist-info"))
    return not installed or top in plugin_packages()


@cache
def plugin_packages() -> frozenset[str]:
    """The top-level packages of every distribution that brings a plugin, and of bench itself."""
    points = entry_points(group="bench")
    distributions = {p.dist.name: p.dist for p in points if p.dist}
    files = (file for d in distributions.values() for file in d.files or ())
    named = {_top(point.value.partition(":")[0]) for point in points}
    return frozenset({*_OURS, *named, *(file.parts[0].removesuffix(".py") for file in files)})


@cache
def _file_of(name: str) -> Path | None:
    """The file of a module, None where there is none (and for a script or a prompt)."""
    if name == "__main__":
        return None
    if file := getattr(sys.modules.get(name), "__file__", None):
        return Path(file)
    parent, _, last = name.rpartition(".")
    if not parent:
        spec = _spec_of(name)
        return Path(spec.origin) if spec and spec.has_location and spec.origin else None
    names = (f"{last}/__init__.py", *(f"{last}{end}" for end in (*EXTENSION_SUFFIXES, ".py")))
    places = (f / name for f in _folders(parent) for name in names)
    return next((file for file in places if file.is_file()), None)


def _folders(package: str) -> list[Path]:
    parent, _, last = package.rpartition(".")
    if (known := sys.modules.get(package)) is not None:
        return [*map(Path, getattr(known, "__path__", ()))]
    if parent:
        return [folder / last for folder in _folders(parent)]
    spec = _spec_of(package)
    return [Path(p) for p in spec.submodule_search_locations or ()] if spec else []


def _spec_of(top: str) -> ModuleSpec | None:
    """Where a package, or a module in none, lies; nothing of it is executed."""
    try:
        return find_spec(top)
    except (ImportError, ValueError):  # made by a program, without a file
        return None


def _modules_in(name: str) -> list[str]:
    """A module, or all of a package."""
    file = _file_of(name)
    if file is None:
        raise ImportError(f"no module {name!r} (named by a learner's ``code``)")
    if file.name != "__init__.py":
        return [name]
    within = [p.relative_to(file.parent).with_suffix("").parts for p in file.parent.rglob("*.py")]
    return sorted(".".join([name, *(s for s in parts if s != "__init__")]) for parts in within)


@dataclass(slots=True)
class _Source:
    """What counts of a file, whose bytes are ``raw``: its digest, without docstrings and messages;
    if it ``reads`` such texts; and its imports, those for type checkers alone apart."""

    raw: bytes
    digest: str = ""
    reads: bool = False
    caught: set[str] = field(default_factory=set)  # names of exceptions
    wanted: list[_Import] = field(default_factory=list)
    typed: list[_Import] = field(default_factory=list)
    dynamic: bool = False
    computed: bool = False  # imports a module by a computed name

    def add(self, node: object, to: list[str], found: list[_Import], mute: bool = False) -> None:
        """Append a syntax tree, spelt so that Python's version does not matter, and its imports."""
        if isinstance(node, list):
            to.append("[")
            for item in node:
                self.add(item, to, found, mute)
            to.append("]")
        elif isinstance(node, ast.Name):
            self.reads |= not mute and (node.id in self.caught or node.id in _READERS)
            to.append(f"Name {node.id}")
        elif not isinstance(node, ast.AST):
            to.append(repr(node))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            self.add(node.body, [], self.typed)
            self.add(node.orelse, to, found)
        elif not (_is_text(node) if mute else isinstance(node, ast.Expr) and _is_text(node.value)):
            found.extend(_import(node))
            called = _called(node) if isinstance(node, ast.Call) else ""
            named = getattr(node, "name", getattr(node, "attr", ""))
            if isinstance(node, ast.ExceptHandler) and named:
                self.caught.add(named)
            self.reads |= not isinstance(node, ast.alias) and named in _READERS
            if isinstance(node, ast.Call) and called in ("import_module", "__import__"):
                self.called(node, found)
            message = called in _MESSAGES or called.endswith("Error")
            mute = mute or message or isinstance(node, ast.Raise)
            to.append(type(node).__name__)
            for name in node._fields:
                value = getattr(node, name, None)
                if called == "param" and name == "args":
                    value = node.args[:1]  # type: ignore[attr-defined]  # the rest describes it
                if value not in (None, []) and name not in _ASIDE and not _is_message(node, name):
                    to.append(name)
                    self.add(value, to, found, mute)
            to.append(")")

    def whole(self) -> str:
        """Its digest with all texts."""
        return _digest_of_whole(self.raw)

    def called(self, node: ast.Call, found: list[_Import]) -> None:
        """A call that imports: of a name, or of one that is known when it runs."""
        name = node.args[0] if node.args else None
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            bare = name.value.lstrip(".")
            found.append((len(name.value) - len(bare), bare, ()))
        else:
            self.computed = True


def _is_text(node: ast.AST) -> bool:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return constant or isinstance(node, ast.JoinedStr)


def _is_message(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Assert) and name == "msg"


@cache
def _digest_of_whole(raw: bytes) -> str:
    try:
        return digest(_whole(ast.parse(raw)))
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(raw).hexdigest()


def _whole(node: object) -> object:
    """A syntax tree with all its texts, spelt so that Python's version does not matter."""
    if isinstance(node, list):
        return [_whole(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    known = ((name, getattr(node, name, None)) for name in node._fields if name not in _ASIDE)
    return [type(node).__name__, [[n, _whole(v)] for n, v in known if v not in (None, [])]]


def _called(node: ast.Call) -> str:
    return str(getattr(node.func, "id", getattr(node.func, "attr", "")))


def _import(node: ast.AST) -> list[_Import]:
    if isinstance(node, ast.Import):
        return [(0, alias.name, ()) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.level, node.module or "", tuple(alias.name for alias in node.names))]
    return []


def _defines_getattr(node: ast.stmt) -> bool:
    targets = ast.walk(ast.Tuple(node.targets)) if isinstance(node, ast.Assign) else [node]
    return any("__getattr__" in (getattr(t, "name", ""), getattr(t, "id", "")) for t in targets)


def _read(file: Path) -> _Source:
    facts = file.stat()
    return _source(file, facts.st_mtime_ns, facts.st_size)


@cache
def _source(file: Path, changed: int, size: int) -> _Source:
    stub = file.with_suffix(".pyi")  # lists the names of a package that lazy_loader fills
    return _parsed(file.read_bytes(), stub.read_bytes() if stub.exists() else b"")


@cache  # by content, so that looking again parses what was edited and nothing else
def _parsed(raw: bytes, stub: bytes) -> _Source:
    source, text = _Source(raw), list[str]()
    try:
        tree = ast.parse(raw)
        source.add(tree, text, source.wanted)
        source.add(ast.parse(stub), [], source.typed)
    except (SyntaxError, ValueError, RecursionError):  # compiled, or not for this Python
        return _Source(raw, hashlib.sha256(raw).hexdigest())
    source.dynamic = any(_defines_getattr(node) for node in tree.body)
    source.digest = hashlib.sha256("\0".join(text).encode()).hexdigest()
    return source
