"""What the tests of every learner begin with."""

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("boosters")


@pytest.fixture
def few_purchases(monkeypatch):
    """Of which ``backward-induction`` trains trees for every set; few points of ``exact-dp``."""
    monkeypatch.setattr("bench_methods.backward_induction.MOST", 3)
    monkeypatch.setattr("bench_methods.exact_dp.MOST_POINTS", 6)
