"""Pixels under an image pyramid: the frames, the filters, and what splits on them cost."""

import numpy as np
import pytest
from bench_datasets import multiscale
from bench_datasets.multiscale import Multiscale, _frames
from bench_datasets.multiscale._frames import draw
from bench_datasets.multiscale._pyramid import (
    FILTERS,
    averaged,
    feature_names,
    features,
    split_prices,
)
from bench_datasets.multiscale.seg import pictures
from bench_methods.cegb import CEGB
from helpers.boosted_cases import fit
from helpers.kit import prepared_set, refused, sizes

import bench_core
from bench_core import Examples, InputError, Task
from bench_core.results.store import Store

SCALES = (1, 2, 4, 8)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(multiscale, "SIDE", {"quick": 32, "standard": 40, "paper": 48})
    monkeypatch.setattr(
        multiscale, "FRAMES", dict.fromkeys(("quick", "standard", "paper"), (3, 2, 2))
    )
    monkeypatch.setattr(multiscale, "PIXELS", {"quick": 1024, "standard": 100, "paper": 200})


def prepared(tmp_path, size="quick", seed=0, **options):
    return prepared_set(Multiscale(**options), tmp_path, size, seed=seed)


def column(name, X):
    return X[:, feature_names(SCALES).index(name)]


def test_a_block_is_the_mean_of_its_pixels_and_the_border_goes_on():
    frame = np.arange(15.0).reshape(3, 5)
    assert averaged(frame, 2).tolist() == [[3.0, 5.0, 6.5], [10.5, 12.5, 14.0]]
    assert averaged(frame, 1).tolist() == frame.tolist()


def test_all_pixels_of_a_block_share_its_values():
    frame = np.random.default_rng(0).integers(0, 256, (21, 13))
    X = features(frame, SCALES).reshape(21, 13, -1)
    for k, scale in enumerate(SCALES):
        part = X[:, :, k * len(FILTERS) : (k + 1) * len(FILTERS)]
        for i in range(21):
            for j in range(13):
                first = part[i - i % scale, j - j % scale]
                np.testing.assert_array_equal(part[i, j], first)
    blocks = averaged(frame.astype(float), 8)
    np.testing.assert_allclose(column("value@8", X.reshape(-1, 24))[0], blocks[0, 0], rtol=1e-6)
    np.testing.assert_allclose(X[20, 12, feature_names(SCALES).index("value@8")], blocks[2, 1])


def answers(frame, scale):
    """What the filters say in the middle of a frame, where its borders are far."""
    X = features(frame, (scale,)).reshape(*frame.shape, -1)
    middle = X[frame.shape[0] // 2, frame.shape[1] // 2]
    return dict(zip(FILTERS, middle.tolist(), strict=True))


@pytest.mark.parametrize("scale", SCALES)
def test_filters_know_slopes_and_curvatures(scale):
    """Of a x^2 + b xy + c y^2 + 3x - 4y the Hessian is [[2a, b], [b, 2c]], in blocks scale^2 as
    large; where all three vanish the slope is 5."""
    y, x = np.mgrid[-80:80, -80:80] + 0.5
    plane = answers(3 * x - 4 * y, scale)
    assert plane["edge"] == pytest.approx(5 * scale, rel=0.01)
    for name in ("laplace", "valley", "ridge"):
        assert plane[name] == pytest.approx(0, abs=0.01)
    for a, b, c in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (2, 1, -1)):
        found = answers(a * x * x + b * x * y + c * y * y, scale)
        ridge, valley = np.linalg.eigvalsh(np.array([[2 * a, b], [b, 2 * c]])) * scale**2
        assert found["valley"] == pytest.approx(valley, rel=0.02, abs=0.02 * scale**2)
        assert found["ridge"] == pytest.approx(ridge, rel=0.02, abs=0.02 * scale**2)
        assert found["laplace"] == pytest.approx(valley + ridge, rel=0.02, abs=0.02 * scale**2)


@pytest.mark.parametrize(("eps", "wanted"), [("shared", 1 / 16), ("printed", 16.0)])
def test_a_split_costs_a_share_of_what_a_fine_one_does(eps, wanted):
    at = split_prices(SCALES, eps)
    names = feature_names(SCALES)
    assert at.split == 1.0
    assert at.everything == 0.0
    assert at.multiplier[names.index("value@1")] == 1.0
    assert at.multiplier[names.index("ridge@4")] == wanted


def two_clues(rows=640):
    """``value@1`` is right nine times in ten, ``value@8`` eight."""
    y = np.arange(rows) % 2 * 1.0
    X = np.zeros((rows, 24), dtype=np.float32)
    for name, wrong in (("value@1", 10), ("value@8", 5)):
        X[:, feature_names(SCALES).index(name)] = np.where(
            np.arange(rows) // 2 % wrong == 0, 1 - y, y
        )
    return Examples(X, y)


def test_cegb_takes_the_coarse_clue_where_the_fine_ones_gain_is_not_worth_its_price():
    """A split with share p of right answers gains n (2 p - 1)^2 / 2 by the logistic loss at equal
    classes (g = +-1/2, h = 1/4). Free features: tau is tradeoff x log 2 / (6 (1 + 1/4 + 1/16 +
    1/64)), and the fine split costs n tau (1 - 1/64) more. The two draw at the tau at which
    (.8^2 - .6^2) / 2 = tau 63 / 64."""
    train = two_clues()
    at = split_prices(SCALES, "shared")
    draw_at = (0.8**2 - 0.6**2) / 2 * 64 / 63 * 6 * (1 + 1 / 4 + 1 / 16 + 1 / 64) / np.log(2)
    for times, name in ((0.98, "value@1"), (1.02, "value@8")):
        learner = CEGB(trees=1, leaves=2, tradeoff=times * draw_at)
        model = fit(learner, train, Task.BINARY, at)
        assert feature_names(SCALES)[model.ensemble.feature[0]] == name


def test_a_frame_is_decided_by_its_key():
    one, again, other = draw(64, 0, 1, 2), draw(64, 0, 1, 2), draw(64, 0, 1, 3)
    np.testing.assert_array_equal(one.grey, again.grey)
    np.testing.assert_array_equal(one.truth, again.truth)
    assert (one.grey != other.grey).any()
    assert one.grey.dtype == np.uint8


def test_bodies_stay_apart():
    """Widened by a pixel all round they are still as many, and every one was placed."""
    from scipy import ndimage

    truth = draw(256, 5).truth
    _, bodies = ndimage.label(truth, np.ones((3, 3)))
    _, wider = ndimage.label(ndimage.binary_dilation(truth, np.ones((3, 3))), np.ones((3, 3)))
    assert bodies == wider == _frames.BODIES * 16


def test_every_pixel_of_generated_frames_is_a_row(small, tmp_path):
    splits = prepared(tmp_path)
    frames = splits.test.groups
    assert sizes(splits) == [3072, 2048, 2048]
    assert splits.stand_in
    assert splits.feature_names == feature_names(SCALES)
    second = draw(32, 0, 2, 1)
    np.testing.assert_array_equal(list(pictures(frames, splits.test.y > 0))[1], second.truth)
    np.testing.assert_array_equal(
        list(pictures(frames, splits.test.X[:, 0]))[1], second.grey.astype(np.float32)
    )


def test_training_pixels_of_large_frames_are_drawn_without_repetition(small, tmp_path):
    some, whole = prepared(tmp_path, "standard"), prepared(tmp_path, "standard", pixels=1600)
    assert len(some.train) == 300
    assert some.train.groups.tags is None
    assert len(whole.train) == 4800
    assert len(some.test) == len(whole.test) == 3200
    rows = {(y, *x) for x, y in zip(whole.train.X.tolist(), whole.train.y, strict=True)}
    drawn = [(y, *x) for x, y in zip(some.train.X.tolist(), some.train.y, strict=True)]
    assert set(drawn) <= rows
    assert len(set(drawn)) == len(drawn)
    other = prepared(tmp_path, "standard", seed=1)
    assert (other.train.X != some.train.X).any()


@pytest.mark.parametrize("scales", [(), (2, 2), (0,)])
def test_scales_without_a_meaning_are_refused(scales):
    with pytest.raises(ValueError, match="scales"):
        Multiscale(scales=scales)


def folder(home, frames=4, suffix=".npy"):
    for part in ("frames", "labels"):
        (home / part).mkdir()
    for j in range(frames):
        one = draw(40, 9, j)
        grey, marks = one.grey[:24], one.truth[:24].astype(np.uint8) * 7
        marks[2:5, 2:5] = 7
        for part, image in (("frames", grey), ("labels", marks)):
            file = home / part / f"shot{j}{suffix}"
            if suffix == ".npy":
                np.save(file, image)
            else:
                pytest.importorskip("PIL.Image").fromarray(image).save(file)
    return home


def own(home, size="quick", **options):
    return prepared(home, size, folder=str(home), **options)


@pytest.mark.parametrize("suffix", [".npy", ".png", ".tif", ".pgm"])
def test_a_users_frames_are_read_in_the_order_of_their_names(tmp_path, suffix):
    splits = own(folder(tmp_path, 5, suffix))
    assert not splits.stand_in
    for part, shots in ((splits.train, (0, 1)), (splits.valid, (2,)), (splits.test, (3, 4))):
        assert part.groups.tags.tolist() == [40] * len(shots)
        for shot, found in zip(shots, pictures(part.groups, part.X[:, 0]), strict=True):
            np.testing.assert_array_equal(found, draw(40, 9, shot).grey[:24])
        assert all(picture[2:5, 2:5].all() for picture in pictures(part.groups, part.y))


@pytest.mark.parametrize(
    ("part", "array", "words"),
    [
        ("frames", None, "no shot1.* in"),
        ("labels", None, "no shot1.* in"),
        ("frames", np.zeros((9, 9)), "make them equal"),
        ("frames", np.full((24, 40), np.nan), "of finite numbers"),
        ("frames", np.zeros((24, 40, 7)), "not a grey or colour picture"),
        ("frames", np.full((24, 40), "x"), "not a grey or colour picture"),
        ("labels", np.zeros((24, 40)), "no object in the validation frames"),
    ],
)
def test_a_folder_that_cannot_be_used_is_named_with_its_remedy(part, array, words, tmp_path):
    file = folder(tmp_path) / part / "shot1.npy"
    file.unlink()
    if array is not None:
        np.save(file, array)
    refused(words, own, tmp_path, error=InputError)


def test_a_run_shows_seg_and_evaluation_cost_alone(elsewhere):
    store = str(elsewhere / "bench.db")
    bench_core.run(
        data=["multiscale"],
        learners=["gbrt", "cegb"],
        metrics=["seg", "accuracy"],
        settings=["gbrt.trees=8", "cegb.trees=8", "cegb.tradeoff=0.3"],
        store=store,
        executor="inline",
    )
    frame = Store(store).frame("last")
    assert set(frame.status) == {"ok"}
    assert set(frame.audit) == {"sampled"}
    assert frame.stand_in.all()
    assert (frame.feature_cost == 0).all()
    full = frame[(frame.split == "test") & frame.point.str.contains(r"\b8\b")].set_index("learner")
    assert full.seg.between(0, 1).all()
    assert full.evaluation_cost["cegb"] < full.evaluation_cost["gbrt"]
    trained = frame[frame.split == "train"]
    assert trained.seg.notna().all()
