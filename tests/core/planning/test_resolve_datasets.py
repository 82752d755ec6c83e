"""Which data sets a request means."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from helpers.kit import refused

from bench_core import Task, param
from bench_core.contracts import check
from bench_core.datasets.data_folder import DataFolder
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_datasets import ChosenDataset, choose_datasets
from bench_core.planning.suites import DatasetEntry, Suite
from bench_core.plugins import Registry
from bench_core.protocols import CompleteDataset


class Rows:
    task: ClassVar[Task] = Task.BINARY

    def prepare(self, *given):
        raise AssertionError


@dataclass(frozen=True)
class Licensed(Rows):
    name: ClassVar[str] = "licensed"
    files: ClassVar[tuple[str, ...]] = ("rows.txt", "columns.txt")
    rows: int = param(10, "how many")
    edition: int = param(1, "of the publisher's files")


@dataclass(frozen=True)
class Drawn(Rows):
    name: ClassVar[str] = "drawn"
    stand_in_for: ClassVar[str] = "licensed"
    rows: int = param(10, "how many")


@dataclass(frozen=True)
class Made(Drawn):
    name: ClassVar[str] = "made"


@dataclass(frozen=True)
class Free(Rows):
    name: ClassVar[str] = "free"
    files: ClassVar[tuple[str, ...]] = ("free.txt",)


@pytest.fixture
def registry():
    classes = [Made, Drawn, Licensed, Free]
    for cls in classes:
        check(cls, CompleteDataset, "a data set")
    return Registry(datasets={cls.name: cls for cls in classes})


def suite(*datasets):
    return Suite(name="mine", datasets=datasets or (DatasetEntry("licensed"),), place="mine.toml")


def chosen(registry, folder, of, **options):
    request = RunRequest(**options)
    source = DataFolder(str(folder))
    return choose_datasets(request, of, registry, source, (), lambda line, warning: None)


def labels(registry, folder, of, **options):
    return [c.label for c in chosen(registry, folder, of, **options)[0]]


def test_the_first_stand_in_by_name_takes_the_place_of_a_set_whose_first_file_is_absent(
    registry, tmp_path
):
    (tmp_path / "columns.txt").write_text("x")
    assert labels(registry, tmp_path, suite()) == ["drawn"]
    (tmp_path / "rows.txt").write_text("x")
    assert labels(registry, tmp_path, suite()) == ["licensed"]


def test_a_stand_in_takes_the_options_that_it_has_and_no_others(registry, tmp_path):
    of = suite(DatasetEntry("licensed", {"rows": 5, "edition": 2}))
    ((found,), absent) = chosen(registry, tmp_path, of)
    assert (found, absent) == (ChosenDataset("drawn(rows=5)", Drawn(5), "licensed"), ())
    (tmp_path / "rows.txt").write_text("x")
    assert labels(registry, tmp_path, of) == ["licensed(edition=2,rows=5)"]
    wrong = suite(DatasetEntry("licensed", {"edtion": 2}))
    refused("data set licensed|'edtion'", chosen, registry, tmp_path, wrong)


def test_the_only_data_set_of_a_suite_is_not_left_out_where_its_files_are_absent(
    registry, tmp_path
):
    found, absent = chosen(registry, tmp_path, suite(DatasetEntry("free")))
    assert ([c.label for c in found], absent) == (["free"], ())
    both = suite(DatasetEntry("free"), DatasetEntry("licensed"))
    found, absent = chosen(registry, tmp_path, both)
    assert ([c.label for c in found], absent) == (["drawn"], ("free",))


@pytest.mark.parametrize("option", ["test", "valid", "label", "query", "split", "task"])
def test_options_of_a_file_are_refused_with_a_suite(registry, tmp_path, option):
    words = f"{option}|suite|data=FILE"
    refused(words, chosen, registry, tmp_path, suite(), **{option: "binary"})
