"""What tests of learners begin with."""

import pytest
from bench_models.least_squares import one_blas_thread


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("boosters")


@pytest.fixture(scope="module")
def one_thread():
    """As in a fit; several spin where the machine is busy."""
    with one_blas_thread():
        yield


@pytest.fixture
def few_purchases(monkeypatch):
    """Of which ``backward-induction`` trains trees for every set; few points of ``exact-dp``."""
    monkeypatch.setattr("bench_methods.backward_induction.MOST", 3)
    monkeypatch.setattr("bench_methods.exact_dp.MOST_POINTS", 6)
