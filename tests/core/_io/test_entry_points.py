"""Faults of installed distributions stay theirs; a signal that came ends the command."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bench_core import UsageError
from bench_core._io.entry_points import EndedError, contained
from bench_core.plugins import load_registry

STOPS = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"


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


@pytest.mark.parametrize(
    "source", [STOPS, f"try:\n    exec({STOPS!r})\nexcept BaseException:\n    raise SystemExit"]
)
def test_ctrl_c_while_a_plugin_is_imported_ends_the_command(
    source: str, install: Callable[[str, bytes], None]
) -> None:
    install(source, b"zz = zz_theirs")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        load_registry()
    assert signal.getsignal(signal.SIGINT) is before


def stop(number: int) -> None:
    os.kill(os.getpid(), number)
    sum(range(1000))  # Python handles signals between two steps


def test_ctrl_c_that_a_plugin_keeps_to_itself_ends_the_command_too() -> None:
    with pytest.raises(KeyboardInterrupt), contained(), suppress(KeyboardInterrupt):
        stop(signal.SIGINT)


def test_a_signal_that_bench_takes_for_ctrl_c_does_as_well() -> None:
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), contained():
            stop(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_handlers_of_signals_are_as_before_a_plugin() -> None:
    before = signal.getsignal(signal.SIGINT)
    with contained():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_would_end_the_program_is_contained_and_what_is_said_to_users_stays() -> None:
    for error in (KeyboardInterrupt(), SystemExit(3), GeneratorExit()):
        with pytest.raises(EndedError) as ended, contained():
            raise error
        assert ended.value.error is error
    with pytest.raises(UsageError, match="as it was"), contained():
        raise UsageError("as it was")
