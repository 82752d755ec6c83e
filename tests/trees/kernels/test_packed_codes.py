from __future__ import annotations

import numpy as np
import pytest
from bench_trees.binning import find_bins
from bench_trees.boosting import boost
from bench_trees.kernels.packed_codes import codes_of, pack, unpack
from bench_trees.settings import Settings


def test_eight_codes_stand_in_a_word_lowest_first() -> None:
    codes = np.arange(1, 10, dtype=np.uint8)[:, None]
    words = pack(codes)
    assert [hex(int(w)) for w in words[:, 0]] == ["0x807060504030201", "0x9"]


@pytest.mark.parametrize("d", [1, 7, 8, 9, 17])
def test_codes_come_back_from_words(d: int) -> None:
    codes = np.random.default_rng(d).integers(0, 256, (d, 30)).astype(np.uint8)
    words = pack(codes)
    assert unpack(words, d).tolist() == codes.tolist()
    assert [codes_of(words, j).tolist() for j in range(d)] == codes.tolist()


def test_codes_and_words_train_the_same_trees() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 11)).astype(np.float32)
    bins = find_bins(X)
    settings = Settings(trees=4, min_rows=2)
    one = boost(bins.codes(X), bins, X[:, 9] + X[:, 3], settings=settings)
    other = boost(bins.words(X), bins, X[:, 9] + X[:, 3], settings=settings)
    assert one.state()["value"].tolist() == other.state()["value"].tolist()
    assert set(one.feature) == set(other.feature)
