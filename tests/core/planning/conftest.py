from __future__ import annotations

from pathlib import Path

import pytest
from helpers import toys


@pytest.fixture
def suite(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of suite ``toys``."""
    folder = home / "suites"
    folder.mkdir()
    (folder / "toys.toml").write_text(toys.SUITE)
    monkeypatch.setenv("TOY_SUITES", str(folder))
    return folder / "toys.toml"
