"""The prepared-data cache: whole or absent, whatever is killed, changed or damaged."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.cache_cases import Toy, entry, made
from helpers.kit import refused

from bench_core.costs.model import Prices
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.cache import (
    fingerprint,
    kept_arrays,
    kept_text,
    open_prepared,
    prepare,
)
from bench_core.datasets.user_files import FileData
from bench_core.splits import Splits


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "toy.data").write_text("1")
    return tmp_path


def times(folder):
    return len((folder / "log").read_text().splitlines())


def assert_same(one, other):
    for name in ("train", "valid", "test"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_array_equal(a.X, b.X)
        np.testing.assert_array_equal(a.y, b.y)
        np.testing.assert_array_equal(a.queries.boundaries, b.queries.boundaries)
        np.testing.assert_array_equal(a.multiplicity, b.multiplicity)
        assert a.X.dtype == b.X.dtype == np.float32
    for name in ("start", "needed", "sensor", "multiplier"):
        np.testing.assert_array_equal(getattr(one.prices, name), getattr(other.prices, name))
    for name in ("task", "classes", "feature_names", "stand_in"):
        assert getattr(one, name) == getattr(other, name)
    assert one.notes[: len(other.notes)] == other.notes


def test_what_is_opened_equals_what_was_prepared(folder):
    path, splits = entry(folder)
    assert_same(splits, made(1.0))
    assert_same(open_prepared(path), made(1.0))
    assert splits.fingerprint == fingerprint(made(1.0))


def test_arrays_are_read_only_memory_maps(folder):
    _, splits = entry(folder)
    assert isinstance(splits.train.X.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        splits.train.X[0, 0] = 1


def holding(splits, task=Task.RANKING):
    """A data set of these splits."""
    return type("Held", (Toy,), {"prepare": lambda *_: splits, "task": task})()


def test_a_distribution_comes_back_and_belongs_to_the_data(folder):
    def told(chance):
        return replace(made(1.0), truth={"table": np.array([[chance, 1 - chance]])})

    _, splits = entry(folder, holding(told(0.25)))
    (table,) = splits.truth.values()
    assert table.tolist() == [[0.25, 0.75]]
    assert_same(splits, made(1.0))
    prints = [fingerprint(one) for one in (told(0.25), told(0.5), made(1.0))]
    assert splits.fingerprint == prints[0]
    assert len({*prints}) == 3


@pytest.mark.parametrize("tags", [None, [2, 1]])
@pytest.mark.parametrize("kind", ["groups", "queries"])
def test_groups_and_queries_come_back_with_their_tags(folder, tags, kind):
    drawn = {kind: Queries(np.array([0, 4, 6]), None if tags is None else np.array(tags))}
    part = Examples(np.ones((6, 1), dtype=np.float32), np.zeros(6), **drawn)
    given = Splits(part, part, part, Prices.additive(np.ones(1)), Task.BINARY, 2)
    _, splits = entry(folder, holding(given, Task.BINARY))
    again = getattr(splits.test, kind)
    assert again.boundaries.tolist() == [0, 4, 6]
    assert (again.tags is None) == (tags is None)
    assert again.tags is None or again.tags.tolist() == tags
    assert (splits.train.queries is None) == (kind == "groups")


def test_the_second_time_nothing_is_prepared_and_nothing_said(folder):
    said = []
    first, _ = entry(folder, say=said.append)
    second, _ = entry(folder, say=said.append)
    assert first == second
    assert times(folder) == 1
    assert said == ["preparing toy"]


@pytest.mark.parametrize(
    "other",
    [{"size": "paper"}, {"fold": 1}, {"seed": 1}, {"toy": Toy(scale=2.0)}],
    ids=["size", "fold", "seed", "option"],
)
def test_whatever_changes_the_arrays_changes_the_entry(other, folder):
    first, _ = entry(folder)
    second, _ = entry(folder, **other)
    assert first != second
    assert times(folder) == 2


def shuffled_csv(path, rng):
    frame = pd.read_csv(path)
    frame.assign(y=rng.permutation(frame["y"])).to_csv(path, index=False)


def other_groups(path, rng):
    side = path.with_name(f"{path.name}.query")
    side.write_text("".join(reversed(side.read_text().splitlines(keepends=True))))


def other_labels_in_test(path, rng):
    shuffled_csv(path.with_name("test.csv"), rng)


@pytest.mark.parametrize("inode", [False, True], ids=["in place", "replaced"])
@pytest.mark.parametrize(
    ("name", "change", "options"),
    [
        ("rows.csv", shuffled_csv, {}),
        ("ranks.svm", other_groups, {}),
        ("rows.csv", other_labels_in_test, {"test": "test.csv"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_data_of_the_same_size_and_time_are_noticed(
    name, change, options, inode, tmp_path, monkeypatch, cache
):
    """As after ``cp -p``, ``rsync -t``, or an archive with fixed times."""
    rng = np.random.default_rng(1)
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"a": np.arange(200.0), "y": np.arange(200) % 2})
    for file in ("rows.csv", "test.csv"):
        frame.to_csv(file, index=False)
    lines = [f"{y} 1:{a:g}\n" for a, y in frame.itertuples(index=False)]
    Path("ranks.svm").write_text("".join(lines))
    Path("ranks.svm.query").write_text("12\n" * 10 + "8\n" * 10)
    before = {
        path: (path.read_bytes(), path.stat()) for path in tmp_path.iterdir() if path.is_file()
    }
    first = prepare(FileData(name, **options))
    assert prepare(FileData(name, **options)).path == first.path
    change(tmp_path / name, rng)
    for path, (content, facts) in before.items():
        if path.read_bytes() != content:
            assert path.stat().st_size == facts.st_size
            if inode:
                shutil.copy(path, path.with_suffix(".new"))
                path.with_suffix(".new").replace(path)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    second = prepare(FileData(name, **options))
    assert second.splits.fingerprint != first.splits.fingerprint


DAMAGE = {
    "a missing array": lambda p: (p / "test.y.npy").unlink(),
    "a truncated array": lambda p: os.truncate(p / "train.X.npy", 150),
    "no meta file": lambda p: (p / "meta.json").unlink(),
    "an array of another shape": lambda p: swap(p / "valid.X.npy"),
}


def swap(path):
    array = np.load(path)
    np.save(path, array.T.copy())


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed_and_mended(damage, folder):
    path, _ = entry(folder)
    DAMAGE[damage](path)
    refused("run again to rebuild them", open_prepared, path)
    again, splits = entry(folder)
    assert again == path
    assert_same(splits, made(1.0))
    assert times(folder) == 2
    assert not [*(folder / "cache" / "prepared").glob(".*.new")]


def test_what_is_interrupted_half_way_leaves_nothing(folder, monkeypatch):
    """``_io/test_files.py`` kills a process that writes a folder."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            entry(folder)
    assert not [path for path in (folder / "cache" / "prepared").iterdir() if path.is_dir()]
    assert_same(entry(folder)[1], made(1.0))


def test_a_cache_that_cannot_be_written_is_named(folder):
    (folder / "cache").write_text("a file where a folder is wanted")
    refused("cannot keep prepared data| BENCH_CACHE", entry, folder)


def test_the_fingerprint_leaves_prices_out_and_holds_every_array():
    base = made(1.0)
    assert fingerprint(base) == fingerprint(made(1.0))
    assert fingerprint(replace(base, prices=Prices.additive(np.ones(3)))) == fingerprint(base)
    others = {fingerprint(base)}
    for split in ("train", "valid", "test"):
        part = getattr(base, split)
        assert part.multiplicity is not None
        for changed in (
            replace(part, X=part.X + np.float32(1)),
            replace(part, y=part.y + 1),
            replace(part, queries=Queries.from_sizes(np.array([1, len(part) - 1]))),
            replace(part, queries=None),
            replace(part, multiplicity=part.multiplicity + 1),
            replace(part, multiplicity=None),
        ):
            others.add(fingerprint(replace(base, **{split: changed})))
        grouped = replace(part, queries=None, groups=Queries(np.array([0, len(part)])))
        others.add(fingerprint(replace(base, **{split: grouped})))
        tagged = Queries(np.array([0, len(part)]), np.array([len(part)]))
        others.add(fingerprint(replace(base, **{split: replace(grouped, groups=tagged)})))
    assert len(others) == 1 + 3 * 8


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_arrays_are_built_once_and_opened_read_only(cache):
    built = []

    def build():
        built.append(1)
        return {"a": np.arange(3), "b": np.ones((2, 2))}

    for _ in range(2):
        found = kept_arrays("things", [1, "x"], ("json",), build)
        assert found["a"].tolist() == [0, 1, 2]
        assert not found["b"].flags.writeable
    assert len(built) == 1


def test_other_inputs_or_other_code_are_built_anew(cache):
    for depends, modules in (([1], ("json",)), ([2], ("json",)), ([1], ("csv",))):
        kept_arrays("things", depends, modules, lambda: {"a": np.zeros(1)})
    assert len(list((cache / "kept").glob("things-*"))) == 3


def test_a_text_is_built_once_and_keeps_its_suffix(cache):
    paths = {kept_text("costs.json", 1, (), lambda k=k: f"text {k}") for k in range(2)}
    [path] = paths
    assert path.suffix == ".json"
    assert path.read_text() == "text 0"


def test_task_and_classes_come_from_the_class_and_the_labels(folder):
    parts = [
        Examples(np.ones((len(y), 1), np.float32), np.array(y, dtype=np.float64))
        for y in ((0, 1), (1,), (2,))
    ]
    given = Splits(*parts, Prices.additive(np.ones(1)))
    _, splits = entry(folder, holding(given, Task.MULTICLASS))
    assert (splits.task, splits.classes) == (Task.MULTICLASS, 3)
    assert splits.complete(Task.RANKING).task is Task.MULTICLASS
