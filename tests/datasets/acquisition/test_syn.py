"""Syn1 to Syn3: SEFA's rows bit by bit, the sets that decide, and acquisitions until complete."""

import numpy as np
from acquisitions import acquisitions, relevant
from bench_datasets.acquisition.syn import Syn1, Syn2, Syn3

# by hand: the logits of x's columns, after the docstring of SEFA's datasets/create_synthetic.py
A = lambda x: 4 * x[0] * x[1]  # noqa: E731
B = lambda x: 1.2 * (x[2] ** 2 + x[3] ** 2 + x[4] ** 2 + x[5] ** 2) - 4.2  # noqa: E731
C = lambda x: -10 * np.sin(0.2 * x[6]) + abs(x[7]) + x[8] + np.exp(-x[9]) - 2.4  # noqa: E731
RULES = [(Syn1, A, B), (Syn2, A, C), (Syn3, B, C)]


def prepared(dataset, size="paper", **options):
    return dataset(**options).prepare(None, size, 0, 0)


def test_rows_are_those_of_one_stream_bit_by_bit():
    np.random.seed(8139)  # noqa: NPY002
    for dataset, below, above in RULES:
        x = np.random.normal(size=(80_000, 11))  # noqa: NPY002
        logit = np.where(x[:, 10] < 0, below(x.T), above(x.T))
        y = np.random.binomial(1, 1 / (1 + np.exp(logit)), size=80_000)  # noqa: NPY002
        splits = prepared(dataset)
        parts = [splits.train, splits.valid, splits.test]
        assert [len(part) for part in parts] == [60_000, 10_000, 10_000]
        assert np.array_equal(np.concatenate([p.X for p in parts]), x.astype(np.float32))
        assert np.array_equal(np.concatenate([p.y for p in parts]), y)


def test_a_smaller_size_takes_the_first_rows_of_each_part():
    whole, quick, few = prepared(Syn2), prepared(Syn2, "quick"), prepared(Syn2, rows=100)
    for name, rows in (("train", 15_000), ("valid", 2_500), ("test", 2_500)):
        assert len(getattr(quick, name)) == rows
        assert np.array_equal(getattr(quick, name).X, getattr(whole, name).X[:rows])
        assert np.array_equal(getattr(quick, name).y, getattr(whole, name).y[:rows])
    assert np.array_equal(few.train.X, whole.train.X[:100])
    assert len(few.test) == 10_000


def test_relevant_sets_are_those_of_the_paper():
    X = np.zeros((2, 11), dtype=np.float32)
    X[:, 10] = -0.1, 0.1
    a, b, c = [1, 2], [3, 4, 5, 6], [7, 8, 9, 10]
    for dataset, sets in ((Syn1, (a, b)), (Syn2, (a, c)), (Syn3, (b, c))):
        found = [(np.flatnonzero(row) + 1).tolist() for row in relevant(dataset(), X)]
        assert found == [[*own, 11] for own in sets]


def test_acquisitions_count_until_the_last_relevant_sensor():
    those = np.array([[True, False, True, False]] * 5)
    order = np.array(
        [
            [0, -1, 1, -1],  # at once
            [3, 2, 0, 1],  # last
            [1, 0, 2, -1],  # one in vain
            [0, 0, 1, 1],  # in rounds of two: the second is bought as a whole
            [-1, 0, 1, -1],  # never complete: all four would be bought
        ]
    )
    assert acquisitions(order, those).tolist() == [2, 4, 3, 4, 4]
