from __future__ import annotations

import numpy as np
import pytest

from bench_core import Examples, Features, Queries


def test_features_hold_no_labels_and_no_multiplicity() -> None:
    rows = Examples(np.zeros((2, 3), np.float32), np.array([0.0, 1.0]), None, np.array([1, 10]))
    assert set(Features.__dataclass_fields__) == {"X", "queries"}
    assert not isinstance(rows, Features)
    assert rows.features.X is rows.X


def test_queries_from_sizes_cover_their_rows() -> None:
    queries = Queries.from_sizes(np.array([2, 1, 3]))
    assert queries.boundaries.tolist() == [0, 2, 3, 6]
    assert queries.index().tolist() == [0, 0, 1, 2, 2, 2]
    assert queries.select(1, 3).boundaries.tolist() == [0, 1, 4]


@pytest.mark.parametrize("bad", [[1, 2], [0, 2, 2], [0, 3, 1], []])
def test_boundaries_that_do_not_rise_from_zero_are_refused(bad: list[int]) -> None:
    with pytest.raises(ValueError, match="rise strictly"):
        Queries(np.array(bad, dtype=np.int64))


def test_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"y \(n,\)"):
        Examples(np.zeros((3, 1), np.float32), np.zeros(2))
    with pytest.raises(ValueError, match="queries cover 2 rows of 3"):
        Examples(np.zeros((3, 1), np.float32), np.zeros(3), Queries(np.array([0, 2])))


def test_without_multiplicity_every_row_weighs_one() -> None:
    assert Examples(np.zeros((2, 1), np.float32), np.zeros(2)).weights.tolist() == [1.0, 1.0]
