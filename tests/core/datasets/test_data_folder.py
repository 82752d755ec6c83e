"""Finding publishers' files, splitting by a hash."""

from pathlib import Path

import numpy as np
import pytest
from helpers.kit import refused

from bench_core.datasets.cache import cache_folder
from bench_core.datasets.data_folder import DataFolder, data_folder, local_path
from bench_core.datasets.splitting import cut, cut_by_class, drawn, hashed, in_proportion, shuffled
from bench_core.datasets.user_files import FileData


def put(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")


@pytest.mark.parametrize("place", ["a.data", "a.data.gz", "set/a.data", "uci/set/a.data.gz"])
def test_a_file_is_found_packed_or_not_and_in_subfolders(place, tmp_path):
    put(tmp_path, place, "other/b.data")
    source = DataFolder(tmp_path)
    assert source.find("a.data") == tmp_path / place
    assert source.find("a.data.gz") == tmp_path / place
    assert source.has("a.data")


def test_hidden_folders_hold_nothing_finished(tmp_path):
    put(tmp_path, ".fetching/a.data", "set/.new/a.data")
    assert not DataFolder(tmp_path).has("a.data")
    assert DataFolder(tmp_path / ".fetching").has("a.data")


def test_a_folder_may_be_absolute_here_or_where_data_lie(tmp_path, monkeypatch):
    put(tmp_path, "data/deep/er/photos/a", "here/others/b")
    monkeypatch.chdir(tmp_path / "here")
    source = DataFolder(tmp_path / "data")
    assert source.find_folder("photos") == tmp_path / "data" / "deep" / "er" / "photos"
    assert source.find_folder("others") == tmp_path / "here" / "others"
    assert source.find_folder(str(tmp_path / "data")) == tmp_path / "data"
    refused("no such folder", source.find_folder, "pictures")
    put(tmp_path, "data/photos/c")
    refused("both match photos", source.find_folder, "photos")


@pytest.mark.parametrize("name", ["https://host/x.csv", "s3://b/x.svm", "FILE:///x"])
def test_a_url_in_place_of_a_file_or_folder_is_refused(name):
    for call in (local_path, DataFolder, lambda own: FileData(own).files):
        refused(
            f"{name}: a URL; download the file first (curl -LO URL) and name it here", call, name
        )
    for path in ("x.csv", "/x://y", "C:\\x", "a:b"):
        assert local_path(path) == Path(path)


@pytest.mark.parametrize("twice", [("a", "a.gz"), ("a", "set/a"), ("one/a", "two/a")])
def test_two_matches_are_an_error_that_names_both(twice, tmp_path):
    put(tmp_path, *twice)
    places = "|".join(str(tmp_path / place) for place in twice)
    refused(f"{places}|data_dir", DataFolder(tmp_path).find, "a")


def test_a_missing_file_says_what_to_put_where(tmp_path):
    source = DataFolder(tmp_path)
    assert not source.has("a.data")
    refused(f"{tmp_path}|a.data or b.csv|BENCH_DATA", source.find, "a.data", "b.csv")


@pytest.mark.parametrize(
    ("variable", "folder"), [("BENCH_DATA", data_folder), ("BENCH_CACHE", cache_folder)]
)
def test_a_folder_is_the_argument_then_the_environment_then_the_users(
    variable, folder, tmp_path, monkeypatch
):
    monkeypatch.setenv(variable, str(tmp_path / "env"))
    assert folder(tmp_path) == tmp_path
    assert folder() == tmp_path / "env"
    monkeypatch.delenv(variable)
    assert "budget-bench" in str(folder())


def splitmix(counter, seed):
    m = 2**64 - 1
    z = ((counter + 1) * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019 * (seed + 1)) & m
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & m
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & m
    return z ^ z >> 31


def test_the_hash_is_splitmix_on_every_machine():
    counters = [0, 1, 12345, 2**40]
    for seed in (0, 7):
        assert hashed(np.array(counters), seed).tolist() == [splitmix(c, seed) for c in counters]


def test_shuffling_orders_by_the_hash():
    assert shuffled(50, 3).tolist() == sorted(range(50), key=lambda i: splitmix(i, 3))


def test_a_cut_holds_every_row_once_in_the_given_shares():
    parts = cut(1000, (0.6, 0.2, 0.2), seed=1)
    assert [len(p) for p in parts] == [600, 200, 200]
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
    assert all((np.diff(p) > 0).all() for p in parts)
    assert not np.array_equal(parts[0], cut(1000, (0.6, 0.2, 0.2), seed=2)[0])


def test_drawn_parts_follow_one_another_in_the_shuffled_order():
    parts = drawn(100, (50, 20), seed=3)
    assert [len(part) for part in parts] == [50, 20]
    assert np.concatenate(parts).tolist() == shuffled(100, 3)[:70].tolist()


def test_rows_in_proportion_are_all_there():
    assert in_proportion(100, (1, 1, 1)) == (33, 33, 34)
    assert in_proportion(10, (36603, 15688, 58101)) == (3, 1, 6)


def test_a_cut_by_class_keeps_the_share_of_every_class():
    y = np.array([0.0] * 100 + [1.0] * 10 + [2.0] * 30)
    train, valid = cut_by_class(y, (0.7, 0.3), seed=0)
    assert np.bincount(y[train].astype(int)).tolist() == [70, 7, 21]
    assert np.bincount(y[valid].astype(int)).tolist() == [30, 3, 9]
    assert sorted([*train, *valid]) == list(range(140))
