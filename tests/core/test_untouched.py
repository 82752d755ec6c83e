"""A plugin that changes Budget Bench is refused, and the change is undone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench_core import UsageError
from bench_core.plugins import load_registry
from bench_core.results import records

WAYS = {
    "a method": "records.TrialResult.__init__ = lambda self: None",
    "a function": "from bench_core.results import rows\nrows.connect = print",
    "its code": "from bench_core.results import rows\n"
    "def other(uri): pass\n"
    "rows.connect.__code__ = other.__code__",
    "a class": "records.TrialSpec = dict",
    "in a hook": "@bench_core.hookimpl\n"
    "def bench_learners():\n"
    "    records.TrialSpec = dict\n"
    "    return []",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_a_plugin_replaces_is_put_back_and_named(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_core.results import rows

    before = records.TrialResult.__init__, records.TrialSpec, rows.connect.__code__
    original = rows.connect
    monkeypatch.syspath_prepend(tmp_path)
    head = "import bench_core\nfrom bench_core.results import records\n"
    (tmp_path / "changing_plugin.py").write_text(head + way)
    try:
        with pytest.raises(UsageError, match=r"-p changing_plugin: it changes bench_core\.results"):
            load_registry(["changing_plugin"])
    finally:
        sys.modules.pop("changing_plugin", None)
    assert before == (records.TrialResult.__init__, records.TrialSpec, rows.connect.__code__)
    assert rows.connect is original


def test_a_plugin_may_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "adding_plugin.py").write_text("import bench_core.results.records as r\nr.own = 1")
    assert load_registry(["adding_plugin"]).plugins[-1].error == ""
