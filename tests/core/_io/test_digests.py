"""Keys of source code: what can change a number changes them, and nothing else does."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

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
def folder(tmp_path, monkeypatch):
    """A folder of plugin modules, from which they can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("plug_")]:
        del sys.modules[name]
    look_again()


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    look_again()


def mine():
    return importlib.import_module("plug_mine").Mine


CHANGES = [  # a module, what is replaced in it, and whether that can change a number
    ("plug_mine", "RATE = 0.5", "# a comment\nRATE = 0.5  # and one more", False),
    ("plug_mine", '"""Fit."""', '"""Fit it well."""', False),
    ("plug_mine", '"""A plugin."""', "", False),
    ("plug_mine", "{rows} is too few", "only {rows} of them", False),
    ("plug_mine", '"no rows"', '"there are no rows"', False),
    ("plug_mine", "how it goes", "how it works", False),
    ("plug_mine", "from pathlib import Path", "from pathlib import PurePath", False),
    ("plug_mine", "RATE = 0.5\n", "RATE = (\n    0.5\n)\n", False),
    ("plug_mine", "RATE = 0.5", "RATE = 0.25", True),
    ("plug_mine", "rows > 0", "rows > 1", True),
    ("plug_mine", "rows == 1", "rows == 2", True),
    ("plug_mine", "ValueError", "TypeError", True),
    ("plug_mine", 'param("fast"', 'param("slow"', True),
    ("plug_base", "shift = SHIFT", "shift = -SHIFT", True),
    ("plug_helper", "SHIFT = 1", "SHIFT = 3", True),
    ("plug_lazy", "2 * x", "-2 * x", True),
]


@pytest.mark.parametrize(("module", "old", "new", "matters"), CHANGES)
def test_what_can_change_a_number_changes_the_key(folder, module, old, new, matters):
    before = DescribedLearner(mine()()).key()
    edit(folder / f"{module}.py", old, new)
    assert (DescribedLearner(mine()()).key() != before) == matters


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
def test_another_python_gives_the_same_digests(tmp_path, python):
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
def test_what_is_left_out_of_a_tree_hides_no_difference(tmp_path, one, other):
    found = []
    for name, text in (("one.py", one), ("other.py", other)):
        (tmp_path / name).write_text(text)
        found.append(digests._source("a.b", tmp_path / name, "").digest)
    assert found[0] != found[1]


def package(folder, files):
    for name, text in {"__init__.py": "", **files}.items():
        path = folder / "plug_package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


NEAR = {
    "near.py": "from . import far\nA = 1\n",
    "far.py": "FAR = 1\n",
    "inner/__init__.py": "",
    "inner/deep.py": "from ..near import A\n",
}
WITH_STUB = {
    "__init__.py": "import lazy_loader\n"
    "__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)\n",
    "__init__.pyi": "from .near import A as A\nfrom .far import FAR as FAR\n",
    "near.py": "A = 1\n",
    "far.py": "FAR = 1\n",
}
COMPUTED = {  # the name may be that of any module of the package
    "near.py": "from importlib import import_module\n"
    "def f(name):\n    return import_module(name)\n",
    "inner/__init__.py": "",
    "inner/far.py": "FAR = 1\n",
}


@pytest.mark.parametrize(
    ("files", "line", "edited", "matters"),
    [
        (NEAR, "import plug_package.near", "far", True),
        (NEAR, "import plug_package.inner.deep", "far", True),
        (NEAR, "from plug_package import near", "far", True),
        (NEAR, "from plug_package.near import A", "far", True),
        (NEAR, "from plug_package.inner import deep as other", "far", True),
        (NEAR, "import importlib; importlib.import_module('plug_package.near')", "far", True),
        (WITH_STUB, "from plug_package import A", "near", True),
        (WITH_STUB, "from plug_package import A", "far", False),
        (WITH_STUB, "from plug_package import FAR", "far", True),
        (WITH_STUB, "import plug_package", "far", True),
        (COMPUTED, "import plug_package.near", "inner/far", True),
    ],
)
def test_every_way_to_import_is_followed(folder, files, line, edited, matters):
    package(folder, files)
    (folder / "plug_mine.py").write_text(f"class Mine:\n    def f(self):\n        {line}\n")
    before = code_key(mine())
    edit(folder / "plug_package" / f"{edited}.py", "1", "2")
    assert (code_key(mine()) != before) == matters


def test_installed_libraries_do_not_count(folder, tmp_path_factory, monkeypatch):
    installed = tmp_path_factory.mktemp("libraries") / "site-packages"
    installed.mkdir()
    (installed / "plug_library.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(installed)
    (folder / "plug_mine.py").write_text("import plug_library\nclass Mine: pass\n")
    before = code_key(mine())
    edit(installed / "plug_library.py", "1", "2")
    assert code_key(mine()) == before


def test_modules_of_computed_names_are_named_in_code(folder):
    package(folder, {"near.py": "A = 1\n"})
    (folder / "plug_mine.py").write_text("class Mine:\n    code = ('plug_package',)\n")
    before = code_key(mine())
    edit(folder / "plug_package" / "near.py", "1", "2")
    assert code_key(mine()) != before
    edit(folder / "plug_mine.py", "plug_package", "plug_nowhere")
    sys.modules.pop("plug_mine")
    with pytest.raises(ImportError, match="no module 'plug_nowhere'"):
        code_key(mine())


def test_a_class_typed_at_a_prompt_is_never_taken_for_an_earlier_one():
    def typed():
        return type("Typed", (), {"__module__": "__main__"})

    assert code_key(typed()) != code_key(typed())


def test_a_file_that_is_no_python_counts_by_its_bytes(folder):
    (folder / "plug_lazy.py").write_text("def double(x:\n")
    before = code_key(mine())
    edit(folder / "plug_lazy.py", "x", "y")
    assert code_key(mine()) != before


def test_a_module_alone_and_with_what_it_imports(folder):
    alone, whole = module_digest("plug_base"), import_key("plug_base")
    edit(folder / "plug_helper.py", "1", "2")
    assert module_digest("plug_base") == alone
    assert import_key("plug_base") != whole


@pytest.mark.parametrize(
    ("ending", "changes"),
    [
        ("bench_trees/importers/catboost.py", {"catboost"}),
        ("bench_trees/grower.py", {"miser", "catboost"}),
        ("bench_models/staged/model.py", {"miser", "catboost"}),
        ("bench_core/datasets/publishers.py", set()),
        ("bench_core/errors.py", set()),
        ("bench_core/datasets/readers/svmlight.py", {"yahoo", "mine.csv"}),
        ("bench_core/datasets/readers/tables.py", {"yahoo", "letters", "mine.csv"}),
        ("bench_datasets/yahoo/sim.py", {"yahoo"}),
    ],
)
def test_keys_of_learners_and_data_depend_on_what_they_use(tmp_path, monkeypatch, ending, changes):
    registry, read = load_registry(), digests._read
    datasets = [registry.datasets["yahoo"](), registry.datasets["letters"](), FileData("mine.csv")]

    def keys():
        source = DataFolder(tmp_path)
        found = {d.name: entry_name(d, "quick", 0, 0, source) for d in datasets}
        return found | {n: code_key(registry.learners[n]) for n in ("miser", "catboost")}

    def other(name, file):
        source = read(name, file)
        return source._replace(digest="other") if file.as_posix().endswith(ending) else source

    assert list(Path(digests.__file__).parents[2].rglob(ending))
    before = keys()
    monkeypatch.setattr(digests, "_read", other)
    look_again()
    after = keys()
    look_again()
    assert {name for name in after if after[name] != before[name]} == changes
