"""Spambase and Fashion-20: publishers' files and the splits of the literature."""

import gzip

import numpy as np
import pytest
from bench_datasets import fashion
from bench_datasets.fashion import FILES, PIXELS, Fashion20
from bench_datasets.spambase import NAMES, Spambase
from helpers.kit import prepared_set as prepared
from helpers.kit import refused, sizes

from bench_core import InputError


def test_spambase_has_the_split_of_the_literature(real_data):
    splits = prepared(Spambase(), real_data / "spambase")
    assert sizes(splits) == [2761, 920, 920]
    table = np.loadtxt(real_data / "spambase" / "spambase.csv", delimiter=",", skiprows=1)
    order = list(range(4601))
    np.random.default_rng(0).shuffle(order)
    wanted = table[order]
    for part, rows in ((splits.test, wanted[:920]), (splits.valid, wanted[920:1840])):
        np.testing.assert_array_equal(part.X, rows[:, :-1].astype(np.float32))
        np.testing.assert_array_equal(part.y, rows[:, -1])
    np.testing.assert_array_equal(splits.train.y, wanted[1840:, -1])
    # $ and george: of spam, and of the publisher's own mail
    spam, other = (splits.train.X[splits.train.y == label].mean(axis=0) for label in (1, 0))
    place = {name: j for j, name in enumerate(NAMES)}
    assert spam[place["char_freq_$"]] > 10 * other[place["char_freq_$"]]
    assert other[place["word_freq_george"]] > 100 * spam[place["word_freq_george"]]


def test_spambase_is_read_as_published(real_data, tmp_path):
    lines = (real_data / "spambase" / "spambase.csv").read_text().splitlines()[1:]
    (tmp_path / "spambase.data").write_text("\n".join(lines) + "\n")
    one = prepared(Spambase(), tmp_path, seed=3)
    two = prepared(Spambase(), real_data / "spambase", seed=3)
    assert np.array_equal(one.train.X, two.train.X)
    first = prepared(Spambase(), tmp_path)
    assert not np.array_equal(one.train.X, first.train.X)


def idx(values):
    sizes = b"".join(int(n).to_bytes(4, "big") for n in values.shape)
    return bytes([0, 0, 8, values.ndim]) + sizes + values.astype(np.uint8).tobytes()


@pytest.fixture
def clothes(tmp_path, monkeypatch):
    monkeypatch.setattr(fashion, "PAPER", (50, 20, 30))
    rng = np.random.default_rng(0)
    arrays = {
        FILES[0]: rng.integers(256, size=(80, 28, 28)),
        FILES[1]: np.arange(80) % 10,
        FILES[2]: rng.integers(256, size=(30, 28, 28)),
        FILES[3]: np.arange(30) % 10,
    }
    for name, values in arrays.items():
        (tmp_path / name).write_bytes(gzip.compress(idx(values)))
    return arrays


def test_fashion_has_the_published_pixels(clothes, tmp_path):
    splits = prepared(Fashion20(), tmp_path, "paper")
    assert sizes(splits) == [50, 20, 30]
    images, labels = clothes[FILES[0]].reshape(80, 784), clothes[FILES[1]]
    # pixel 362 is in line 12 of 28, column 26
    place = PIXELS.index(362)
    assert clothes[FILES[0]][5, 12, 26] == images[5, 362]
    known = {tuple(row): label for row, label in zip(images[:, PIXELS], labels, strict=True)}
    for part in (splits.train, splits.valid):
        for x, y in zip(part.X, part.y, strict=True):
            assert known.pop(tuple(np.round(x * 255).astype(int))) == y
    assert len(known) == 10
    tested = clothes[FILES[2]][:, 12, 26] / 255
    assert sorted(splits.test.X[:, place]) == pytest.approx(sorted(tested))
    other = prepared(Fashion20(), tmp_path, "paper", seed=1)
    assert not np.array_equal(other.train.X, splits.train.X)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[:10],
        lambda raw: raw[:2] + b"\x09" + raw[3:],
        lambda raw: raw[:7] + b"\x07" + raw[8:],
    ],
)
def test_a_damaged_file_is_named(change, clothes, tmp_path):
    path = tmp_path / FILES[2]
    path.write_bytes(gzip.compress(change(idx(clothes[FILES[2]]))))
    words = "t10k-images-idx3-ubyte.gz: not an idx file"
    refused(words, prepared, Fashion20(), tmp_path, "paper", error=InputError)
