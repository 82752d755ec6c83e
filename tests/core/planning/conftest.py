import pytest
from helpers import toys


@pytest.fixture
def suite(home, monkeypatch):
    """The file of suite ``toys``."""
    folder = home / "suites"
    folder.mkdir()
    (folder / "toys.toml").write_text(toys.SUITE)
    monkeypatch.setenv("TOY_SUITES", str(folder))
    return folder / "toys.toml"
