"""Under ``--isolate`` a learner sees what it needs, and works as it does without."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import bench_core
from bench_core._io import plugin_folders
from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.execution import isolation
from bench_core.results.records import NOT_PRIVATE
from bench_core.results.store import Store
from canaries import looking

UNSEEN = ("store", "file", "network", "processes", "counters", "locks", "keys")
MEASURED = ["fit_seconds", "predict_seconds", "peak_rss_mb", "created_at", "marks"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "json.py").write_text("raise ImportError('not Python's own')")
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "data"))
    rows = "".join(f"{i},{i % 5},{int(i % 7 > 3)}\n" for i in range(300))
    (tmp_path / "rows.csv").write_text(f"a,b,y\n{rows}")
    for folder in looking.places():  # of a test that failed
        (folder / looking.NOTE).unlink(missing_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        (tmp_path / "port").write_text(str(server.getsockname()[1]))
        add = ctypes.c_long(248), b"user", b"canary", b"x", ctypes.c_size_t(1), ctypes.c_int(-3)
        with Path(looking.__file__).open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            ctypes.CDLL(None).syscall(*add)  # as another fit may
            yield tmp_path


def run(learners: Sequence[str] = ("looking", "toy-stacked"), **options: Any) -> Any:
    return bench_core.run(
        data="rows.csv",
        plugins=("helpers.toys", "canaries.looking"),
        settings=[f"{name}.tradeoff=0.1" for name in learners if "stacked" not in name],
        learners=learners,
        task="binary",
        workers=1,
        progress=False,
        **options,
    )


def possible() -> bool:
    try:
        isolation.check_possible()
    except UsageError:
        return False
    return True


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")
def test_a_learner_sees_its_own_data_and_neither_labels_of_the_test_nor_results(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not possible():
        pytest.skip("this system lets no process have namespaces of its own")
    open_ = run(store="open.db", isolate=False).frame()
    assert {*open_["marks"][open_["learner"] == "looking"]} == {NOT_PRIVATE}
    before = looked("open.db")["predict"]
    assert before["arrays"] == ["test", "train", "valid"]
    assert before["network"]
    assert before["processes"]
    assert before["locks"]
    bench_core.run(
        data="toy-binary",
        plugins=("helpers.toys",),
        learners="toy-prefix",
        settings="toy-prefix.tradeoff=0.1",
        executor="inline",
        progress=False,
    )
    monkeypatch.setenv("CANARY_NOTES", "yes")
    closed = run(isolate=True).frame()
    assert {*closed["error"].fillna("")} == {""}
    assert before["counters"]
    nothing = dict.fromkeys(UNSEEN, False)
    nothing |= {"models": 0, "notes": []}
    found = looked("")
    assert found["fit"] == nothing | {"arrays": ["train", "valid"], "entries": 1}
    assert found["predict"] == nothing | {"arrays": [], "entries": 0}
    columns = [c for c in open_.columns if c not in MEASURED]
    assert open_[columns].equals(closed[columns])
    assert not [*(home / "results" / "bench.fits").glob(".isolated-*")]
    assert not [folder for folder in looking.places() if (folder / looking.NOTE).exists()]


BESIDE_FILES = {
    "orjson.py": "",
    "sitecustomize.py": "",
    "usercustomize.py": "",
    "named/inner.py": "",  # a namespace package
    "path_file.pth": "import path_file_ran",
    "extending-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: extending\nVersion: 1.0\n",
    "extending-1.0.dist-info/entry_points.txt": "[numba_extensions]\ninit = orjson:init\n",
}
METRIC = """import sys
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

import bench_core

PROBED = "orjson", "sitecustomize", "usercustomize", "named.inner", "looked_up"


def found():
    for name in PROBED:
        try:
            yield import_module(name).__name__
        except ImportError:
            pass
    yield from (point.value for point in entry_points(group="numba_extensions"))
    yield from {"path_file_ran"} & {*sys.modules}
    yield from (place for place in sys.path if Path(place, "beside.py").exists())


class Finds:
    name, higher_is_better, tasks = "finds", True, frozenset({"binary"})

    def values(self, scores, y, queries=None, multiplicity=None):
        print("FOUND", sorted(found()))
        return bench_core.MetricValues(np.ones(len(y)), np.ones(len(y)))


@bench_core.hookimpl
def bench_metrics():
    import looked_up  # it is found, as the module's source names it

    return [Finds()]
"""
BESIDE = """import os
from helpers.toys import Prefix, PrefixModel
from pathlib import Path

import bench_core


class BesideModel(PrefixModel):
    def predict_path(self, features):
        Path("own.txt").write_text("a model writes beside its code, for itself alone")
        store = Path(os.environ["CANARY_FILES"], "x.db")
        models = [*store.with_name("x.fits").rglob("*.npz")]
        print("STORE", store.read_bytes()[:6], models)
        return super().predict_path(features)


class Beside(Prefix):
    name = "beside"

    def fit(self, train, valid, prices, context):
        return BesideModel(**super().fit(train, valid, prices, context).state())


@bench_core.hookimpl
def bench_learners():
    return [Beside]
"""


@pytest.mark.skipif(not possible(), reason="needs namespaces")
def test_a_plugin_may_lie_beside_anything(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store and its models, new ones too, are hidden wherever they lie. The plugin's folder is
    on the path of processes alone that run what lies in it: judge and command find the modules that
    a metric imports, and nothing that libraries may look for."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(plugin_folders, "_apart", {})
    texts = {"beside.py": BESIDE, "measuring.py": METRIC, "looked_up.py": "", **BESIDE_FILES}
    for name, text in texts.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    options.find_plugins_here(["beside"], isolate=True)
    with TemporaryDirectory(dir=Path.home()) as files:  # seen where it is not hidden
        monkeypatch.setenv("CANARY_FILES", files)
        result, output = run_beside(f"{files}/x.db")
    assert (result.counts["ok"], "STORE b'' []" in output) == (1, True), output
    assert not (home / "own.txt").exists()
    assert {line for line in output.splitlines() if "FOUND" in line} == {"FOUND ['looked_up']"}
    assert str(home) not in sys.path
    assert "measuring" in sys.modules
    assert "beside" not in sys.modules


def run_beside(store: str) -> Any:
    """The result, and what its jobs wrote."""
    result: Any = bench_core.run(
        data="rows.csv",
        store=store,
        plugins=("beside", "measuring"),
        metrics=["accuracy", "finds"],
        learners=["beside"],
        settings=["beside.tradeoff=1"],
        task="binary",
        workers=1,
        isolate=True,
    )
    return result, "\n".join(attempt.output for attempt in Store(Path(store)).attempts())


def test_settings_of_numba_in_the_folder_are_refused(home: Path) -> None:
    (home / ".numba_config.yaml").write_text("cache_dir: theirs")
    with pytest.raises(UsageError, match=r"numba would take settings from .numba_config.yaml"):
        isolation.Isolation.of(home / "x.db", [])


@pytest.mark.slow
@pytest.mark.skipif(not possible(), reason="needs namespaces")
def test_what_is_done_again_can_be_isolated_too(home: Path) -> None:
    run(learners=["looking"])
    (home / "costs.csv").write_text("feature,cost\na,2\nb,3\n")
    plugins = ("helpers.toys", "canaries.looking")
    audited = bench_core.audit(plugins=plugins, isolate=True)
    assert (audited.exit_status, audited.counts["ok"]) == (0, 1)
    assert not looked("")["predict"]["network"]
    billed = bench_core.reprice(costs="costs.csv", plugins=plugins, isolate=True)
    assert (billed.exit_status, set(billed.frame()["audit"])) == (0, {"sampled"})
    assert looked("")["predict"] | {"entries": 0, "notes": []} == {
        **dict.fromkeys(UNSEEN, False),
        "arrays": [],
        "entries": 0,
        "models": 0,
        "notes": [],
    }


def looked(store: str) -> dict[str, Any]:
    """What the learner and its model wrote to the log."""
    lines = "\n".join(a.output for a in Store(Path(store or "results/bench.db")).attempts())
    seen = [line.removeprefix("SEEN ") for line in lines.splitlines() if line.startswith("SEEN ")]
    return {where: found for line in seen for where, found in json.loads(line).items()}


def test_where_it_is_not_possible_one_line_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_core._io.namespaces._PROBE", "raise OSError(1, 'not permitted')")
    with pytest.raises(UsageError, match=r"isolate: this system lets no process .*not permitted"):
        run(isolate=True)
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageError, match="--isolate needs Linux"):
        isolation.check_possible()
    for verb in (run, bench_core.audit, functools.partial(bench_core.reprice, costs="x.csv")):
        with pytest.raises(UsageError, match="needs processes of their own"):
            verb(isolate=True, executor="inline")


REFUSED = """import os
import bench_core
from bench_core._io import syscalls

how = {"data": "toy-binary", "plugins": ("helpers.toys",), "workers": 1, "progress": False}
learner = {"learners": "toy-prefix", "settings": "toy-prefix.tradeoff=0.1"}
rows = lambda: bench_core.load_run().frame()[["audit", "marks"]].drop_duplicates().values.tolist()
private = bench_core.run(**how, **learner).frame()["marks"][0] == ""
syscalls._CALLS = {"unshare": syscalls._CALLS["unshare"]}
syscalls.filter_calls()  # from here on this system lets no process have namespaces
notes = []
hear = lambda event: notes.append(event.message) if event.kind == "note" else None
bench_core.audit(plugins=("helpers.toys",), workers=1, on_event=hear)
print([private, rows(), [note.partition(": ")[0] for note in notes]])
"""


@pytest.mark.skipif(not possible(), reason="needs namespaces")
def test_an_audit_that_has_no_private_processes_marks_the_row(home: Path) -> None:
    asked = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{REFUSED}"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
    line = f"models of plugins are {NOT_PRIVATE} here, and their rows are marked"
    assert said == f"{[True, [['verified', NOT_PRIVATE]], [line]]}\n"
    assert not any("private" in one.output for one in Store(Path("results/bench.db")).attempts())


@pytest.mark.skipif(not possible(), reason="needs namespaces")
def test_folders_that_hold_code_are_not_hidden(home: Path) -> None:
    with pytest.raises(UsageError, match=r"would be hidden, and learners need code in"):
        isolation.Isolation.of(home / "x.db", [Path(bench_core.__file__).parents[1]])
