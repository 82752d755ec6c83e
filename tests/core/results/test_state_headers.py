"""The file of a model that was cut or changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.stores import Weight

from bench_core.errors import InputError
from bench_core.results.store_files import load_model, save_model


@pytest.mark.parametrize("how", ["cut", "changed", "other", "empty"])
def test_a_damaged_file_is_one_line(how: str, tmp_path: Path) -> None:
    path = tmp_path / "ab" / "model.npz"
    save_model(path, Weight(2.5))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    changed = bytearray(content)
    changed[content.index(b"values")] ^= 0xFF
    damaged = {"cut": content[:middle], "changed": changed, "other": b"no archive", "empty": b""}
    path.write_bytes(damaged[how])
    with pytest.raises(InputError, match=r"not a model's state .*; run again with --fresh"):
        load_model(path)
