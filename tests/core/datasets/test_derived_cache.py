"""What data sets keep for all their folds, and folders that they find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench_core.datasets.cache import kept_arrays, kept_text
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import InputError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_arrays_are_built_once_and_opened_read_only() -> None:
    built = []

    def build() -> dict[str, np.ndarray]:
        built.append(1)
        return {"a": np.arange(3), "b": np.ones((2, 2))}

    for _ in range(2):
        found = kept_arrays("things", [1, "x"], ("json",), build)
        assert found["a"].tolist() == [0, 1, 2]
        assert not found["b"].flags.writeable
    assert len(built) == 1


def test_other_inputs_or_other_code_are_built_anew(cache: Path) -> None:
    for depends, modules in (([1], ("json",)), ([2], ("json",)), ([1], ("csv",))):
        kept_arrays("things", depends, modules, lambda: {"a": np.zeros(1)})
    assert len(list((cache / "kept").glob("things-*"))) == 3


def test_a_text_is_built_once_and_keeps_its_suffix() -> None:
    paths = {kept_text("costs.json", 1, (), lambda k=k: f"text {k}") for k in range(2)}
    [path] = paths
    assert path.suffix == ".json"
    assert path.read_text() == "text 0"


def test_a_build_that_fails_leaves_nothing_to_be_taken_for_whole(cache: Path) -> None:
    def fail() -> str:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        kept_text("costs.json", 1, (), fail)
    assert kept_text("costs.json", 1, (), lambda: "yes").read_text() == "yes"


@pytest.mark.parametrize("kept", [kept_arrays, kept_text])
def test_a_file_that_is_gone_while_building_is_not_blamed_on_the_cache(kept: Any) -> None:
    def read() -> str:
        return Path("/nowhere/photo.png").read_text()

    with pytest.raises(InputError, match=r"things: .*photo\.png") as caught:
        kept("things", 1, (), read)
    assert "BENCH_CACHE" not in str(caught.value)


def test_a_cache_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="name a writable folder in BENCH_CACHE"):
        kept_text("costs.json", 1, (), lambda: "text")


def test_a_folder_is_found_by_its_whole_path_here_or_where_data_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, here = tmp_path / "data", tmp_path / "here"
    for folder in (data / "deep" / "photos", here / "mine"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(here)
    source = DataFolder(data)
    assert source.find_folder(str(here / "mine")) == here / "mine"
    assert source.find_folder("mine") == here / "mine"
    assert source.find_folder("photos") == data / "deep" / "photos"


def test_two_folders_of_a_name_and_none_are_refused(tmp_path: Path) -> None:
    for k in "ab":
        (tmp_path / k / "photos").mkdir(parents=True)
    source = DataFolder(tmp_path)
    with pytest.raises(InputError, match="both match photos"):
        source.find_folder("photos")
    with pytest.raises(InputError, match="no such folder"):
        source.find_folder("/nowhere/at/all")
    with pytest.raises(InputError, match="no such folder"):
        source.find_folder("pictures")


def test_a_folder_that_may_not_be_read_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refused)
    with pytest.raises(InputError, match=r"cannot be kept .*Permission denied.*BENCH_CACHE"):
        kept_text("costs.json", 1, (), lambda: "yes")
