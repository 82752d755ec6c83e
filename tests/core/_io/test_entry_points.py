"""Faults of installed distributions stay theirs."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_core import UsageError
from bench_core._io.entry_points import EndedError, contained
from bench_core.plugins import load_registry


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, bytes], None]:
    monkeypatch.syspath_prepend(tmp_path)

    def write(source: str, points: bytes) -> None:
        (tmp_path / "zz_theirs.py").write_text(source)
        about = tmp_path / "zz_theirs-1.5.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: zz-theirs\nVersion: 1.5\n")
        (about / "entry_points.txt").write_bytes(b"[bench]\n" + points + b"\n")
        monkeypatch.delitem(sys.modules, "zz_theirs", raising=False)

    return write


@pytest.mark.parametrize("points", [b"no sign of equality", b"zz = \xff"])
def test_entry_points_that_cannot_be_read_are_a_row(
    points: bytes, install: Callable[[str, bytes], None]
) -> None:
    names = {plugin.name for plugin in load_registry().plugins}
    install("", points)
    after = load_registry().plugins
    assert {plugin.name for plugin in after} == {*names, "zz-theirs"}
    (row,) = [plugin for plugin in after if plugin.error]
    assert "Error in its entry_points.txt' names no module" in row.error


def test_what_would_end_the_program_is_contained_and_what_is_said_to_users_stays() -> None:
    for error in (SystemExit(3), GeneratorExit()):
        with pytest.raises(EndedError) as ended, contained():
            raise error
        assert ended.value.error is error
    for stays in (UsageError("as it was"), KeyboardInterrupt("as it was")):
        with pytest.raises(type(stays), match="as it was"), contained():
            raise stays
