"""What a private process is shown of a folder while others write there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench_core._io import namespaces


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="Linux")
def test_what_goes_while_a_folder_is_shown_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, at = tmp_path / "shown", tmp_path / "at"
    for folder in (shown, at, shown / "package"):
        folder.mkdir()
    for name in ("results.db-journal", "data.csv"):
        (shown / name).write_text("1")
    mounted = set()

    def mount(source: str, at: str, *_: object) -> None:
        if at.endswith("-journal"):
            raise FileNotFoundError(2, f"mount {at}: No such file or directory")
        mounted.add(Path(at).name)

    monkeypatch.setattr(namespaces, "_mount", mount)
    handle = os.open(shown, os.O_PATH)
    namespaces._mirror(handle, str(tmp_path / "own"), str(at))
    os.close(handle)
    assert mounted == {"at", "data.csv", "package"}
