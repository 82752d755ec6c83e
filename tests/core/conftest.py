import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Prepared data of the whole session."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def home(tmp_path, cache, monkeypatch):
    """An empty working folder with its own store, and an empty folder of publishers' data."""
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(cache))
    monkeypatch.setenv("BENCH_DATA", str(data))
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "fits.log"))
    monkeypatch.delenv("BENCH_STORE", raising=False)
    monkeypatch.delenv("TOY_SUITES", raising=False)
    return tmp_path
