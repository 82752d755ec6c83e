"""CIFAR-10's binary format, and patch features beside a loop over pixels."""

import numpy as np
import pytest
from bench_datasets import cifar10
from bench_datasets.cifar10 import BATCHES, TEST, Cifar10, Coder
from helpers.kit import prepared_set, refused, sizes

from bench_core.errors import InputError


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(cifar10, "SAMPLE", 3000)
    monkeypatch.setattr(cifar10, "ROWS", {"quick": (60, 20, 20)})


def batch(path, images, seed):
    records = np.random.default_rng(seed).integers(0, 256, (images, 3073)).astype(np.uint8)
    records[:, 0] = np.arange(images) % 10
    path.write_bytes(records.tobytes())
    return records


def pooled_by_hand(image, coder):
    total = np.zeros((2, 2, len(coder.centroids)))
    for top in range(27):
        for left in range(27):
            patch = image[top : top + 6, left : left + 6].astype(float)
            patch = patch.transpose(2, 0, 1).ravel()  # red, green, blue: each line by line
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + 10.0)
            white = (patch - coder.mean) @ coder.whiten.astype(float)
            distance = np.array([np.linalg.norm(white - c) for c in coder.centroids])
            code = np.maximum(0, distance.mean() - distance)
            total[int(top >= 14), int(left >= 14)] += code
    return total.reshape(-1)


def test_features_are_those_of_a_loop_over_pixels():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 32, 32, 3)).astype(np.uint8)
    whiten = np.eye(108, dtype=np.float32) + rng.normal(0, 0.05, (108, 108)).astype(np.float32)
    coder = Coder(
        rng.normal(0, 0.1, 108).astype(np.float32),
        whiten,
        rng.normal(0, 1, (7, 108)).astype(np.float32),
    )
    wanted = np.stack([pooled_by_hand(image, coder) for image in images])
    np.testing.assert_allclose(coder.features(images), wanted, rtol=2e-4, atol=2e-2)


@pytest.mark.usefixtures("few")
def test_batches_become_two_classes_of_400_features(tmp_path):
    for k, name in enumerate((*BATCHES, TEST)):
        batch(tmp_path / name, 20, k)
    splits = prepared_set(Cifar10(), tmp_path, "quick")
    assert sizes(splits) == [60, 20, 20]
    assert splits.train.X.shape[1] == 400
    assert splits.test.y.sum() == 10
    assert splits.prices.everything == 400


def test_pixels_are_planes_of_red_green_and_blue(tmp_path):
    records = batch(tmp_path / "a.bin", 3, 0)
    pixels, kinds = cifar10._images(tmp_path / "a.bin")
    assert kinds.tolist() == [0, 1, 2]
    assert pixels[1, 2, 5].tolist() == [records[1, 1 + c * 1024 + 2 * 32 + 5] for c in range(3)]


def test_a_spoilt_batch_is_refused(tmp_path):
    records = batch(tmp_path / "a.bin", 3, 0)
    records[1, 0] = 11
    for end, words in ((None, "image 2"), (-1, "not a multiple")):
        (tmp_path / "a.bin").write_bytes(records.tobytes()[:end])
        refused(words, cifar10._images, tmp_path / "a.bin", error=InputError)
