"""Keys of source code: what can change a number changes them, and nothing else does."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench_core._io import digests
from bench_core._io.digests import code_key, import_key, look_again, module_digest
from bench_core.datasets.cache import entry_name
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.user_files import FileData
from bench_core.planning.keys import DescribedLearner
from bench_core.plugins import load_registry
from bench_core.terminal import progress as terminal

PLUGIN = '''"""A plugin."""
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from bench_core import param
from plug_base import Base

if TYPE_CHECKING:
    from pathlib import Path

RATE = 0.5


@dataclass(frozen=True)
class Mine(Base):
    """Mine."""

    name: ClassVar[str] = "mine"
    tasks: ClassVar[frozenset[str]] = frozenset()
    code: ClassVar[tuple[str, ...]] = ()
    mode: str = param("fast", "how it goes")

    def fit(self, rows):
        """Fit."""
        assert rows > 0, "no rows"
        if rows == 1:
            raise ValueError(f"{rows} is too few")
        from plug_lazy import double

        return double(rows) * RATE
'''

FILES = {
    "plug_mine": PLUGIN,
    "plug_base": "from plug_helper import SHIFT\n\nclass Base:\n    shift = SHIFT\n",
    "plug_helper": "SHIFT = 1\n",
    "plug_lazy": "def double(x):\n    return 2 * x\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of plugin modules, from which they can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("plug_")]:
        del sys.modules[name]
    look_again()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    look_again()


def mine() -> Any:
    return importlib.import_module("plug_mine").Mine


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("RATE = 0.5", "# a comment\nRATE = 0.5  # and one more"),
        ('"""Fit."""', '"""Fit it well."""'),
        ('"""A plugin."""', ""),
        ("{rows} is too few", "only {rows} of them"),
        ('"no rows"', '"there are no rows"'),
        ("how it goes", "how it works"),
        ("from pathlib import Path", "from pathlib import PurePath"),
        ("RATE = 0.5\n", "RATE = (\n    0.5\n)\n"),
    ],
)
def test_a_comment_a_docstring_or_a_message_changes_no_key(
    folder: Path, old: str, new: str
) -> None:
    before = DescribedLearner(mine()()).key()
    edit(folder / "plug_mine.py", old, new)
    assert DescribedLearner(mine()()).key() == before


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("plug_mine", "RATE = 0.5", "RATE = 0.25"),
        ("plug_mine", "rows > 0", "rows > 1"),
        ("plug_mine", "rows == 1", "rows == 2"),
        ("plug_mine", "ValueError", "TypeError"),
        ("plug_mine", 'param("fast"', 'param("slow"'),
        ("plug_base", "shift = SHIFT", "shift = -SHIFT"),
        ("plug_helper", "SHIFT = 1", "SHIFT = 3"),
        ("plug_lazy", "2 * x", "-2 * x"),
    ],
)
def test_what_can_change_a_number_changes_the_key(
    folder: Path, module: str, old: str, new: str
) -> None:
    before = DescribedLearner(mine()()).key()
    edit(folder / f"{module}.py", old, new)
    assert DescribedLearner(mine()()).key() != before


ODD = """
x, w = 3, 5
a = f"{x!r:>{w}} {x=} {'in' + 'side'} {x:}" "tail" u"u" f'{x}' 'b'
c = f"{x:{w}.{x}f}" f"{{}}" f"" rf"\\d{x}"
n = 1j, 0x1F, 1e400, b"\\x00", ..., None, True, -1, {**{}}, ["", "a"]
async def f(*a, k: int = 1, **kw): return lambda *p: (p, a)
match x:
    case {"a": [1, *r], **rest} if r: pass
    case _: pass
try:
    pass
except* ValueError: pass
"""
OTHER_PYTHONS = [
    path
    for home in (Path("/usr"), Path("/usr/local"), *Path.home().glob(".pyenv/versions/*"))
    for path in home.glob("bin/python3.1[1-9]")
    if path.name != f"python3.{sys.version_info.minor}"
]


@pytest.mark.skipif(not OTHER_PYTHONS, reason="no other Python from 3.11 on")
@pytest.mark.parametrize("python", OTHER_PYTHONS, ids=str)
def test_another_python_gives_the_same_digests(tmp_path: Path, python: Path) -> None:
    odd = tmp_path / "odd.py"
    odd.write_text(ODD)
    files = [odd, Path(digests.__file__), Path(terminal.__file__)]
    load = (
        "import sys, importlib.util as u; from pathlib import Path\n"
        f"spec = u.spec_from_file_location('own', {digests.__file__!r})\n"
        "own = sys.modules['own'] = u.module_from_spec(spec); spec.loader.exec_module(own)\n"
        "print(*[own._source('a.b', Path(p), '').digest for p in sys.argv[1:]])"
    )
    words = [str(python), "-I", "-c", load, *map(str, files)]
    found = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert found == [digests._source("a.b", file, "").digest for file in files]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = ['', 'a']", "x = ['a']"),
        ("x = f'{y}'", "x = f'{y} '"),
        ("x = {**y}", "x = {None: y}"),
        ("x = a.b", "x = a.c"),
        ("x = 1", "x = 1.0"),
        ("x = '1'", "x = 1"),
        ("def f(a, b=1): pass", "def f(a=1, b=1): pass"),
        ("def f(a, /): pass", "def f(a): pass"),
        ("x = a[1:]", "x = a[:1]"),
        ("f(a, b=c)", "f(b, a=c)"),
    ],
)
def test_what_is_left_out_of_a_tree_hides_no_difference(
    tmp_path: Path, one: str, other: str
) -> None:
    found = []
    for name, text in (("one.py", one), ("other.py", other)):
        (tmp_path / name).write_text(text)
        found.append(digests._source("a.b", tmp_path / name, "").digest)
    assert found[0] != found[1]


def package(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / "plug_package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "plug_package" / "__init__.py").touch()


def uses(folder: Path, line: str) -> None:
    (folder / "plug_mine.py").write_text(f"class Mine:\n    def f(self):\n        {line}\n")


@pytest.mark.parametrize(
    "line",
    [
        "import plug_package.near",
        "import plug_package.inner.deep",
        "from plug_package import near",
        "from plug_package.near import A",
        "from plug_package.inner import deep as other",
        "import importlib; importlib.import_module('plug_package.near')",
    ],
)
def test_every_way_to_import_is_followed(folder: Path, line: str) -> None:
    package(
        folder,
        {
            "near.py": "from . import far\nA = 1\n",
            "far.py": "FAR = 1\n",
            "inner/__init__.py": "",
            "inner/deep.py": "from ..near import A\n",
        },
    )
    uses(folder, line)
    before = code_key(mine())
    edit(folder / "plug_package" / "far.py", "1", "2")
    assert code_key(mine()) != before


WITH_STUB = {
    "__init__.py": "import lazy_loader\n"
    "__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)\n",
    "__init__.pyi": "from .near import A as A\nfrom .far import FAR as FAR\n",
}


@pytest.mark.parametrize(
    ("line", "edited", "changes"),
    [
        ("from plug_package import A", "near", True),
        ("from plug_package import A", "far", False),
        ("from plug_package import FAR", "far", True),
        ("import plug_package", "far", True),
    ],
)
def test_names_that_a_package_finds_when_wanted(
    folder: Path, line: str, edited: str, changes: bool
) -> None:
    package(folder, {**WITH_STUB, "near.py": "A = 1\n", "far.py": "FAR = 1\n"})
    uses(folder, line)
    before = code_key(mine())
    edit(folder / "plug_package" / f"{edited}.py", "1", "2")
    assert (code_key(mine()) != before) == changes


def test_installed_libraries_do_not_count(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path_factory.mktemp("libraries") / "site-packages"
    installed.mkdir()
    (installed / "plug_library.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(installed)
    uses(folder, "import plug_library")
    before = code_key(mine())
    edit(installed / "plug_library.py", "1", "2")
    assert code_key(mine()) == before


def test_a_computed_name_may_mean_any_module_of_the_package(folder: Path) -> None:
    lines = "from importlib import import_module\ndef f(name):\n    return import_module(name)\n"
    package(folder, {"near.py": lines, "inner/__init__.py": "", "inner/far.py": "FAR = 1\n"})
    uses(folder, "import plug_package.near")
    before = code_key(mine())
    edit(folder / "plug_package" / "inner" / "far.py", "1", "2")
    assert code_key(mine()) != before


def test_modules_of_computed_names_are_named_in_code(folder: Path) -> None:
    package(folder, {"near.py": "A = 1\n"})
    (folder / "plug_mine.py").write_text("class Mine:\n    code = ('plug_package',)\n")
    before = code_key(mine())
    edit(folder / "plug_package" / "near.py", "1", "2")
    assert code_key(mine()) != before
    edit(folder / "plug_mine.py", "plug_package", "plug_nowhere")
    sys.modules.pop("plug_mine")
    with pytest.raises(ImportError, match="no module 'plug_nowhere'"):
        code_key(mine())


def test_a_class_typed_at_a_prompt_is_never_taken_for_an_earlier_one() -> None:
    def typed() -> type:
        return type("Typed", (), {"__module__": "__main__"})

    assert code_key(typed()) != code_key(typed())


def test_a_file_that_is_no_python_counts_by_its_bytes(folder: Path) -> None:
    (folder / "plug_lazy.py").write_text("def double(x:\n")
    before = code_key(mine())
    edit(folder / "plug_lazy.py", "x", "y")
    assert code_key(mine()) != before


def test_a_module_alone_and_with_what_it_imports(folder: Path) -> None:
    alone, whole = module_digest("plug_base"), import_key("plug_base")
    edit(folder / "plug_helper.py", "1", "2")
    assert module_digest("plug_base") == alone
    assert import_key("plug_base") != whole


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Makes the digest of the source file with that ending another one."""
    read = digests._read

    def change(ending: str) -> None:
        known = list(Path(digests.__file__).parents[2].rglob(f"*{Path(ending).name}"))
        assert any(p.as_posix().endswith(ending) for p in known)

        def other(name: str, file: Path) -> digests._Source:
            source = read(name, file)
            ours = file.as_posix().endswith(ending)
            return source._replace(digest="other") if ours else source

        monkeypatch.setattr(digests, "_read", other)
        look_again()

    yield change
    look_again()


def test_an_importer_of_catboost_models_decides_catboost_and_not_miser(
    edited: Callable[[str], None],
) -> None:
    learners = load_registry().learners
    miser, catboost = code_key(learners["miser"]), code_key(learners["catboost"])
    edited("bench_trees/importers/catboost.py")
    assert code_key(learners["miser"]) == miser
    assert code_key(learners["catboost"]) != catboost


@pytest.mark.parametrize("ending", ["bench_trees/grower.py", "bench_models/staged/model.py"])
def test_the_tree_engine_decides_miser(edited: Callable[[str], None], ending: str) -> None:
    miser = load_registry().learners["miser"]
    before = code_key(miser)
    edited(ending)
    assert code_key(miser) != before


@pytest.mark.parametrize(
    ("ending", "changes"),
    [
        ("bench_core/datasets/publishers.py", set()),
        ("bench_core/errors.py", set()),
        ("bench_core/datasets/readers/svmlight.py", {"yahoo", "mine.csv"}),
        ("bench_core/datasets/readers/tables.py", {"yahoo", "letters", "mine.csv"}),
        ("bench_datasets/yahoo/sim.py", {"yahoo"}),
    ],
)
def test_prepared_data_depend_on_what_reads_them(
    tmp_path: Path, edited: Callable[[str], None], ending: str, changes: set[str]
) -> None:
    classes = load_registry().datasets
    datasets: list[Any] = [classes["yahoo"](), classes["letters"](), FileData("mine.csv")]

    def names() -> dict[str, str]:
        source = DataFolder(tmp_path)
        return {d.name: entry_name(d, "quick", 0, 0, source) for d in datasets}

    before = names()
    edited(ending)
    assert {name for name, entry in names().items() if entry != before[name]} == changes
