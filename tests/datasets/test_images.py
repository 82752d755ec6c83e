"""Pictures in class folders: descriptors, machines, measured prices, and a run on them."""

import json
import os
import shutil
import sys
import zipfile
from pathlib import Path

import imageio.v3 as iio
import numpy as np
import pytest
from bench_datasets import images
from bench_datasets.images import ImageFolder, Scene15, _image_folder
from bench_datasets.images._descriptors import DESCRIPTORS, grey, regions
from bench_datasets.images._image_folder import decoded, open_album
from bench_datasets.images._machines import Machines, roots
from helpers.kit import all_cells, parts, prepared_set, refused
from sklearn.svm import SVC

from bench_core.costs.shipped import to_json
from bench_core.data import Task
from bench_core.datasets import cache as prepared
from bench_core.datasets.cache import fingerprint
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import InputError, UsageError

FEW = ("tiny-4", "lbp-8-1")
KINDS = {"across": 0.0, "down": np.pi / 2, "slanted": np.pi / 4}


def waves(rng, angle, side=40):
    """A noisy grating of one direction in random colours."""
    y, x = np.mgrid[0:side, 0:side] / side
    wave = np.sin(2 * np.pi * rng.uniform(4, 8) * (np.cos(angle) * x + np.sin(angle) * y))
    colours = (0.5 + 0.3 * wave[..., None]) * rng.uniform(0.6, 1, 3)
    noise = rng.normal(0, 0.05, (side, side, 3))
    return (np.clip(colours + noise, 0, 1) * 255).astype(np.uint8)


def write_pictures(root, each, seed=0):
    rng = np.random.default_rng(seed)
    for kind, angle in KINDS.items():
        (root / kind).mkdir(parents=True)
        for k in range(each):
            iio.imwrite(root / kind / f"image_{k:04}.png", waves(rng, angle))
    return root


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return write_pictures(tmp_path_factory.mktemp("photos"), 16)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def few(root, **options):
    return ImageFolder(
        **{"path": str(root), "train": 8, "valid": 2, "side": 64, "descriptors": FEW} | options
    )


def splits_of(dataset, folder, fold=0, seed=0):
    return prepared_set(dataset, folder, "paper", fold, seed)


@pytest.fixture(scope="module")
def splits(photos, tmp_path_factory):
    """Of ``few``, prepared and measured once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE", str(tmp_path_factory.mktemp("cache")))
        return splits_of(few(photos), photos)


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_each_descriptor_is_finite_not_negative_and_the_same_again(name):
    rng = np.random.default_rng(3)
    for pixels in (waves(rng, 0.3, 64), np.full((64, 64, 3), 7, np.uint8), waves(rng, 1, 64)[:21]):
        found = DESCRIPTORS[name](pixels)
        assert found.dtype == np.float32
        assert found.ndim == 1
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        np.testing.assert_array_equal(DESCRIPTORS[name](pixels.copy()), found)


def test_histograms_count_every_pixel_once():
    pixels = waves(np.random.default_rng(1), 0.7, 64)
    for name in DESCRIPTORS:
        if name.startswith(("grey", "rgb", "hsv", "lbp", "texton")):
            assert DESCRIPTORS[name](pixels).sum() == 64 * 64, name


def test_grey_is_the_usual_mixture():
    from skimage.color import rgb2gray

    pixels = waves(np.random.default_rng(2), 0.1)
    np.testing.assert_allclose(grey(pixels), rgb2gray(pixels), atol=1e-5)


def test_machines_give_what_scikit_learns_svm_gives():
    rng = np.random.default_rng(0)
    known, asked = rng.random((30, 6), np.float32), rng.random((9, 6), np.float32)
    label = np.arange(30) % 3
    made = Machines.learn(known, label, 3)
    a = roots(known).astype(float)
    distances = ((a[:, None] - a) ** 2).sum(axis=2)
    for k in range(3):
        peer = SVC(C=10, gamma=1 / distances.mean(), class_weight="balanced")
        peer.fit(a, label == k)
        wanted = peer.decision_function(roots(asked))
        np.testing.assert_allclose(made.outputs(made.kernel(asked))[:, k], wanted, atol=3e-3)
        assert made.output(made.kernel(asked)[0], k) == pytest.approx(wanted[0], abs=3e-3)


def test_pictures_of_all_forms_become_three_colours(tmp_path):
    rng = np.random.default_rng(0)
    colour = rng.integers(0, 256, (5, 6, 3)).astype(np.uint8)
    clear = np.dstack([colour, np.full((5, 6), 255, np.uint8)])
    for name, pixels, wanted in (
        ("rgb.png", colour, colour),
        ("rgba.png", clear, colour),
        ("ppm.ppm", colour, colour),
        ("grey.png", colour[..., 0], np.repeat(colour[..., :1], 3, axis=2)),
        ("deep.png", colour[..., 0].astype(np.uint16) * 257, np.repeat(colour[..., :1], 3, axis=2)),
        ("through.png", np.zeros((5, 6, 4), np.uint8), np.full((5, 6, 3), 255)),
    ):
        iio.imwrite(tmp_path / name, pixels)
        found = decoded((tmp_path / name).read_bytes())
        assert found.shape == (5, 6, 3), name
        np.testing.assert_allclose(found * 255, wanted, atol=1e-3, err_msg=name)


def test_folder_and_zip_however_deep_are_the_same_album(photos, tmp_path):
    deep = tmp_path / "a" / "b"
    shutil.copytree(photos, deep)
    (deep / "across" / "Thumbs.db").write_bytes(b"x")
    (deep / ".hidden").mkdir()
    packed = Path(shutil.make_archive(str(tmp_path / "all"), "zip", tmp_path / "a"))
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("__MACOSX/across/image_0000.png", b"x")
    source = DataFolder(tmp_path)
    albums = [open_album(p, source) for p in (str(photos), "a", str(packed), "all.zip")]
    for found in albums:
        assert found.classes == ("across", "down", "slanted")
        assert len(found) == 48
        np.testing.assert_array_equal(found.read([0, 20], 64), albums[0].read([0, 20], 64))


@pytest.mark.parametrize(
    ("removed", "added", "why"),
    [
        ("photos/*/*", None, "no pictures"),
        ("photos/[!a]*/*", None, "all pictures lie in 'across'"),
        ("", "stray.png", "stray.png lies in no class folder"),
        (
            "photos/down/*1?.png",
            None,
            "class 'down' has 10 pictures and needs 11 (8 to train, 2 to val",
        ),
        ("", "down/image_0003.png", "down/image_0003.png cannot be read as a picture"),
        ("photos", None, "no such folder"),
    ],
)
def test_an_unusable_folder_is_refused_in_one_line(photos, tmp_path, removed, added, why):
    root = tmp_path / "photos"
    shutil.copytree(photos, root)
    for path in [*tmp_path.glob(removed)] if removed else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if added:
        (root / added).write_bytes(b"\x89PNG no picture")
    refused(why, splits_of, few(root), tmp_path, error=InputError)


def test_an_unknown_descriptor_is_refused():
    with pytest.raises(ValueError, match="no descriptor 'sift'"):
        ImageFolder(descriptors=("sift",))


def test_without_scikit_image_it_says_what_to_install(photos, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(UsageError, match=r"pip install 'budget-bench\[images\]'"):
        few(photos).stamp(DataFolder(photos))


def test_each_class_gives_its_pictures_to_machines_and_splits(splits):
    assert (splits.task, splits.classes) == (Task.MULTICLASS, 3)
    # of 8 training pictures round(2.4) = 2 build the machines; 16 - 8 - 2 = 6 test
    for part, each in zip(parts(splits), (6, 2, 6), strict=True):
        assert np.bincount(part.y.astype(int)).tolist() == [each] * 3
    assert splits.train.X.shape[1] == len(FEW) * 8 * 3
    assert splits.feature_names[:4] == (
        "tiny-4@whole:across", "tiny-4@whole:down", "tiny-4@whole:slanted", "tiny-4@ul:across",
    )  # fmt: skip
    rows = all_cells(splits)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_features_are_outputs_of_machines_on_the_pictures_left_out(photos, monkeypatch):
    learned = []
    learn = Machines.learn.__func__

    def spy(cls, descriptors, label, classes):
        made = learn(cls, descriptors, label, classes)
        learned.append((np.array(descriptors), label, made))
        return made

    monkeypatch.setattr(images.Machines, "learn", classmethod(spy))
    splits = splits_of(few(photos, descriptors=("hog-4",), views="whole"), photos)
    [(support, label, made)] = learned
    assert np.bincount(label).tolist() == [2, 2, 2]
    pictures = open_album(str(photos), DataFolder(photos)).read(range(48), 64)
    described = np.stack([DESCRIPTORS["hog-4"](p) for p in pictures])
    number = {row.tobytes(): k for k, row in enumerate(described)}
    taken = {number[row.tobytes()] for row in support}
    rest = [k for k in range(48) if k not in taken]
    wanted = made.outputs(made.kernel(described[rest])).astype(np.float32)
    found = all_cells(splits)
    np.testing.assert_allclose(
        np.sort(found, axis=0), np.sort(wanted, axis=0), rtol=1e-4, atol=1e-5
    )


def test_folds_and_seeds_draw_anew_and_repeat_exactly(photos):
    drawn = ((0, 0), (0, 0), (1, 0), (0, 1))
    first, again, *others = (
        fingerprint(splits_of(few(photos, views="whole"), photos, fold, seed))
        for fold, seed in drawn
    )
    assert first == again
    assert len({first, *others}) == 3


def test_prices_are_measured_once_for_all_folds(photos, cache):
    first, other = (splits_of(few(photos), photos, fold) for fold in (0, 3))
    assert to_json(first.prices) == to_json(other.prices)
    [kept] = (cache / "kept").glob("image-folder-costs-*.json")
    measured = json.loads(kept.read_text())["measured"]
    assert set(measured["extractors"]) == {f"{d}@{r}" for d in FEW for r in regions(64)}
    assert str(kept) in first.notes[-1]
    assert "this machine" in ImageFolder.title
    assert "this machine" in Scene15.title


def test_the_second_output_of_a_descriptor_costs_its_machine_alone(splits):
    prices = splits.prices
    assert (prices.sensor > 0).all()
    assert prices.unit == "CPU ms"
    assert prices.sensors == 2 * 8 * (1 + 3)
    first, second, other = prices.sensors_of(0), prices.sensors_of(1), prices.sensors_of(3)
    assert len(set(first) & set(second)) == 1  # extraction and kernel
    assert not set(first) & set(other)  # another region
    [shared] = set(first) & set(second)
    [own] = set(second) - {shared}
    assert prices.sensor[own] < prices.sensor[shared]
    assert prices.feature_price()[1] == pytest.approx(prices.sensor[own] + prices.sensor[shared])


def test_a_pinned_cost_file_takes_the_place_of_measuring(photos, cache, tmp_path):
    measured = splits_of(few(photos, views="whole"), photos)
    [kept] = (cache / "kept").glob("image-folder-costs-*.json")
    document = json.loads(kept.read_text())
    for rule in document["discounted"]:
        for member, later in zip(rule["members"], rule["later"], strict=True):
            document["costs"][member] = later + 7
    pinned = tmp_path / "mine.json"
    pinned.write_text(json.dumps(document))
    kept.unlink()
    splits = splits_of(few(photos, views="whole", costs=str(pinned)), photos)
    later = document["discounted"][0]["later"][0]
    assert splits.prices.feature_price()[0] == pytest.approx(7 + later)
    assert fingerprint(splits) == fingerprint(measured)
    assert not list((cache / "kept").glob("*.json"))


def test_the_cache_notices_pictures_and_pins_that_change(photos, tmp_path):
    root = tmp_path / "photos"
    shutil.copytree(photos, root)
    pin = tmp_path / "pin.json"
    pin.write_text("{}")
    source = DataFolder(tmp_path)

    def key(**options):
        return prepared.entry_name(few(root, **options), "paper", 0, 0, source)

    keys = [key(), key(), key(costs=str(pin))]
    pin.write_text("{ }")
    keys.append(key(costs=str(pin)))
    changed, other = (root / "down" / f"image_000{k}.png" for k in (0, 1))
    os.utime(changed, ns=(1, 1))
    keys.append(key())
    before = changed.stat()
    changed.write_bytes(other.read_bytes()[: before.st_size].ljust(before.st_size, b"\0"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    keys.append(key())
    assert keys[0] == keys[1] == keys[4]
    assert len(set(keys)) == 4  # a time is nothing that the pictures depend on


def test_raw_features_are_the_descriptors_themselves_paid_for_together(photos, splits):
    raw = splits_of(few(photos, features="raw"), photos)
    # the pictures that would build machines are training rows; the others are the same
    assert np.bincount(raw.train.y.astype(int)).tolist() == [8] * 3
    for name in ("valid", "test"):
        assert np.array_equal(getattr(raw, name).y, getattr(splits, name).y)
    pictures = open_album(str(photos), DataFolder(photos)).read(range(48), 64)
    tiny = {DESCRIPTORS["tiny-4"](p).tobytes() for p in pictures}
    rows = all_cells(raw)
    assert {row[:16].tobytes() for row in rows} == tiny
    assert raw.feature_names[:2] == ("tiny-4@whole_1", "tiny-4@whole_2")
    prices = raw.prices
    assert prices.sensors == len(FEW) * 8
    assert rows.shape[1] == 8 * (16 + 10)
    assert prices.sensors_of(0) == prices.sensors_of(15) != prices.sensors_of(16)
    assert (prices.sensor > 0).all()


def test_scene15_has_the_papers_sizes():
    assert sum(images.SCENES.values()) == 4485
    every, dataset = sum(images.SCENES.values()), Scene15()
    label = np.repeat(np.arange(15), list(images.SCENES.values()))
    scenes = _image_folder.Album(Path("s"), ("",) * every, tuple(sorted(images.SCENES)), label, "")
    used, parts = dataset._draw(scenes, "paper", 0)
    assert len(used) == every
    assert [len(part) for part in parts] == [450, 1050, 300, 2685]
    assert np.bincount(label[used[parts[0]]]).tolist() == [30] * 15
    assert len(DESCRIPTORS) * len(regions(128)) * 15 == 2760
    assert dataset.folds == 10


def test_the_publishers_zip_is_read_packed(photos, tmp_path, monkeypatch):
    shutil.make_archive(str(tmp_path / "scene15" / "scene_categories"), "zip", photos)
    source = DataFolder(tmp_path)
    assert Scene15().complete(source)
    monkeypatch.setattr(Scene15, "counts", dict.fromkeys(KINDS, 16))
    assert len(Scene15()._album(source)) == 48
    monkeypatch.setattr(Scene15, "counts", dict.fromkeys(KINDS, 17))
    with pytest.raises(InputError, match="not the 51 of 3"):
        Scene15()._album(source)


def test_miser_runs_on_measured_prices_end_to_end(bench, photos, tmp_path):
    settings = (
        "path=" + str(photos),
        "train=8",
        "valid=2",
        "side=64",
        'descriptors=["tiny-4","hog-4"]',
    )
    options = [word for s in settings for word in ("--set", f"image-folder.{s}")]
    ended = bench(
        "run", "--data", "image-folder", *options, "--folds", "1",
        "--learners", "miser", "--set", "miser.trees=8", "--set", "miser.min_rows=2",
        "--set", "miser.tradeoff=[0,1]",
        "--executor", "inline", "--audit", "full", "--no-progress", "-q",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    assert bench("export", "-o", "out.csv").status == 0
    import pandas as pd

    rows = pd.read_csv(tmp_path / "out.csv")
    test = rows[rows["split"] == "test"]
    assert set(rows["status"]) == {"ok"}
    assert set(rows["audit"]) == {"verified"}
    assert set(rows["unit"]) == {"CPU ms"}
    assert set(rows["fold"]) == {1}
    assert test["accuracy"].max() > 0.8
    tradeoff = test["params"].map(lambda params: json.loads(params)["tradeoff"])
    costliest = test["feature_cost"].groupby(tradeoff).max()
    assert 0 < costliest[1] < costliest[0]
