"""Yahoo's set 1, read from small files in the publisher's format made here."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from bench_datasets import yahoo
from bench_datasets.yahoo import Yahoo, YahooSubset
from helpers.kit import all_cells, every, parts, prepared_set, refused, sizes
from helpers.webserver import Offer, serving

from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.publishers import home_of, is_there
from bench_core.errors import InputError
from bench_core.splits import SAMPLE

USED = [0, 5, 6, 7, 350, 699]


@dataclass(frozen=True)
class Made:
    X: np.ndarray  # all 700 columns
    y: np.ndarray
    sizes: list[int]


def write_split(path, queries, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, queries).tolist()
    n = sum(sizes)
    X = np.zeros((n, 700), dtype=np.float32)
    for column in USED:  # the publisher's columns that have no price hold nothing in set 1
        X[:, column] = rng.integers(0, 1000, n) / 1000 * (rng.random(n) < 0.6)
    y = rng.integers(0, 5, n).astype(float)
    qid = np.repeat(np.arange(1, queries + 1) + 100 * seed, sizes)
    lines = [
        f"{y[i]:g} qid:{qid[i]} " + " ".join(f"{j + 1}:{X[i, j]:.6g}" for j in np.flatnonzero(X[i]))
        for i in range(n)
    ]
    path.write_text("\n".join(lines) + "\n")
    return Made(X, y, sizes)


def cost_file(folder):
    cost = np.full(700, 10000)
    cost[USED] = [1, 5, 20, 50, 150, 200]
    path = folder / "yahoo_feature_cost.txt"
    path.write_text("".join(f"{c}\n" for c in cost))
    return path


@pytest.fixture
def made(tmp_path):
    cost_file(tmp_path)
    return {
        name: write_split(tmp_path / f"set1.{name}.txt", queries, seed)
        for name, queries, seed in (("train", 40, 1), ("valid", 10, 2), ("test", 20, 3))
    }


def prepared(folder, size="paper", **options):
    return prepared_set(Yahoo(**options), folder, size)


def test_the_priced_columns_are_kept_with_their_prices(tmp_path, made):
    splits = prepared(tmp_path)
    assert splits.feature_names == ("1", "6", "7", "8", "351", "700")
    assert splits.prices.feature_price().tolist() == [1, 5, 20, 50, 150, 200]
    assert (splits.prices.split, splits.prices.tree) == (0.25, 0)
    assert splits.task is Task.RANKING
    assert splits.notes == ()
    assert not splits.stand_in
    for name, wanted in made.items():
        part = getattr(splits, name)
        np.testing.assert_array_equal(part.X, wanted.X[:, USED])
        np.testing.assert_array_equal(part.y, wanted.y)
        assert part.queries.sizes.tolist() == wanted.sizes


def test_smaller_profiles_take_the_first_whole_queries_and_say_so(tmp_path, made, monkeypatch):
    monkeypatch.setitem(yahoo.ROWS, "quick", (30, 1000, 20))
    splits = prepared(tmp_path, "quick")
    ends = np.cumsum(made["train"].sizes)
    assert len(splits.train) == ends[ends <= 30].max()
    assert len(splits.valid) == sum(made["valid"].sizes)
    np.testing.assert_array_equal(splits.train.y, made["train"].y[: len(splits.train)])
    assert [(note.kind, note.text.split(" of ")[0]) for note in splits.notes] == [
        (SAMPLE, f"sample: the first {len(splits.train)}"),
        (SAMPLE, f"sample: the first {len(splits.test)}"),
    ]


@pytest.mark.parametrize(("relevant", "copied"), [(3, 2), (0, 0)])
def test_labels_and_copies_follow_the_options(relevant, copied, tmp_path, made):
    splits = prepared(tmp_path, relevant=relevant, copies=10, copied_in="test")
    grades = made["train"].y
    assert splits.train.y.tolist() == (grades >= 3 if relevant else grades).tolist()
    assert splits.train.multiplicity is None
    copies = np.where(made["test"].y <= copied, 10, 1)
    assert splits.test.multiplicity.tolist() == copies.tolist()


def test_the_cost_file_is_fetched_into_the_data_folder(tmp_path, made, real_data, monkeypatch):
    """The expected sha256 is that of the authors' file."""
    published = real_data / "feature-costs" / "yahoo_feature_cost.txt"
    (tmp_path / "yahoo_feature_cost.txt").unlink()
    with serving({"/cost.txt": Offer(published.read_bytes())}) as at:
        monkeypatch.setattr(yahoo, "COST", replace(yahoo.COST, url=f"{at}/cost.txt"))
        assert prepared(tmp_path).prices.features == 519
    assert (tmp_path / "yahoo_feature_cost.txt").read_bytes() == published.read_bytes()


def test_the_published_costs_are_519_in_the_known_groups(real_data):
    cost = yahoo.yahoo_costs(DataFolder(real_data))
    values, counts = np.unique(cost, return_counts=True)
    assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == {
        1: 123, 5: 31, 20: 191, 50: 125, 100: 16, 150: 32, 200: 1, 10000: 181,
    }  # fmt: skip


def subset(folder, monkeypatch, rows):
    monkeypatch.setattr(yahoo, "SUBSET", rows)
    return prepared_set(YahooSubset(), folder, "paper")


def test_the_subset_is_the_training_split_cut_in_three_in_file_order(tmp_path, made, monkeypatch):
    for name in ("valid", "test"):
        (tmp_path / f"set1.{name}.txt").unlink()
    whole = made["train"]
    rows = (sum(whole.sizes[:12]), sum(whole.sizes[12:25]), sum(whole.sizes[25:]))
    splits = subset(tmp_path, monkeypatch, rows)
    assert sizes(splits) == [*rows]
    np.testing.assert_array_equal(all_cells(splits), whole.X[:, USED])
    np.testing.assert_array_equal(every(splits), whole.y)
    queries = [part.queries.sizes.tolist() for part in parts(splits)]
    assert queries == [whole.sizes[:12], whole.sizes[12:25], whole.sizes[25:]]
    assert splits.prices.feature_price().tolist() == [1, 5, 20, 50, 150, 200]
    assert splits.notes == (yahoo.RECIPE,)


def test_where_no_query_ends_at_the_published_size_the_nearest_end_is_taken(
    tmp_path, made, monkeypatch
):
    sizes = made["train"].sizes
    ends = np.cumsum(sizes)
    at = next(k for k in range(10, 30) if sizes[k] >= 5)  # query k is to be torn near its end
    later = next(k for k in range(at + 2, 40) if sizes[k] >= 5)  # this one near its beginning
    torn = (int(ends[at]) - 1, int(ends[later - 1]) + 1)
    splits = subset(tmp_path, monkeypatch, (torn[0], torn[1] - torn[0], int(ends[-1]) - torn[1]))
    assert len(splits.train) == ends[at]
    assert len(splits.train) + len(splits.valid) == ends[later - 1]


def test_the_subset_of_another_training_split_is_refused(tmp_path, made):
    rows = sum(made["train"].sizes)
    words = f"set1.train.txt: {rows} rows instead of 473134; get"
    refused(words, prepared_set, YahooSubset(), tmp_path, error=InputError)


def test_one_copy_of_the_files_serves_the_set_and_its_subset(tmp_path, made):
    source = DataFolder(tmp_path)
    assert is_there(Yahoo(), source)
    assert is_there(YahooSubset(), source)
    assert home_of(YahooSubset()) == home_of(Yahoo()) == "yahoo"
    (tmp_path / "set1.test.txt").unlink()
    assert not is_there(Yahoo(), source)
    assert is_there(YahooSubset(), source)
