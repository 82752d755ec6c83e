"""Binarised grades and copied negatives."""

from __future__ import annotations

import numpy as np
import pytest
from bench_datasets.yahoo import TEST, TRAIN, Judgement

from bench_core.data import Examples, Queries

GRADES = [0.0, 1.0, 2.0, 3.0, 4.0]


@pytest.fixture
def examples() -> Examples:
    X = np.zeros((5, 1), dtype=np.float32)
    return Examples(X, np.array(GRADES), Queries.from_sizes(np.array([5])))


def test_copies_only_in_the_test_split(examples: Examples) -> None:
    judge = Judgement(copies=10, copied_in="test")
    assert judge.judged(examples, TRAIN).multiplicity is None
    judged = judge.judged(examples, TEST)
    assert judged.multiplicity is not None
    assert judged.multiplicity.tolist() == [10, 1, 1, 1, 1]
