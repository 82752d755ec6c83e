"""Files and folders that are there as a whole or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench_core._io.files import at_home, atomic_file, atomic_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fails(writer, inner):
    with writer as new:
        (new / inner).write_text("half")
        raise RuntimeError


def test_a_home_is_found_where_there_is_such_a_user():
    assert at_home("~/rows.csv") == Path.home() / "rows.csv"
    assert at_home("~nobody-here/rows.csv") == Path("~nobody-here/rows.csv")
    assert at_home("rows.csv") == Path("rows.csv")


def test_a_file_takes_the_place_of_another_in_the_end(tmp_path):
    path = tmp_path / "new" / "some.txt"
    with atomic_file(path) as first:
        first.write_text("old")
    with atomic_file(path) as second:
        second.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(path.parent) == ["some.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError):
        fails(atomic_file(path), "")
    with pytest.raises(FileNotFoundError), atomic_file(path):
        pass  # nothing written
    assert path.read_text() == "old"
    assert names(tmp_path) == ["some.txt"]


def test_a_folder_takes_the_place_of_another_whose_open_files_stay(tmp_path):
    path = tmp_path / "some"
    for text in ("old", "new"):
        with atomic_folder(path) as folder:
            (folder / "inner").mkdir()
            (folder / "inner" / "file").write_text(text)
            reader = (path / "inner" / "file").open() if text == "new" else None
    with reader:
        assert reader.read() == "old"
    assert (path / "inner" / "file").read_text() == "new"
    assert names(tmp_path) == ["some"]


def test_a_failure_leaves_the_old_folder_and_nothing_else(tmp_path):
    path = tmp_path / "some"
    (path / "kept").mkdir(parents=True)
    with pytest.raises(RuntimeError):
        fails(atomic_folder(path), "half")
    assert names(path) == ["kept"]
    assert names(tmp_path) == ["some"]


KILLED = """
import os, sys
from pathlib import Path
from bench_core._io.files import atomic_file, atomic_folder
with atomic_file(Path(sys.argv[1], "a[1].txt")) as file, atomic_folder(Path(sys.argv[1], "b")) as b:
    file.write_text("half")
    (b / "half").touch()
    os._exit(9)
"""


def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path):
    process = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert process.returncode == 9
    assert len(names(tmp_path)) == 2
    with atomic_file(tmp_path / "a[1].txt") as file, atomic_folder(tmp_path / "b"):
        file.touch()
    assert names(tmp_path) == ["a[1].txt", "b"]


def test_what_a_running_process_is_writing_stays(tmp_path):
    path = tmp_path / "some.txt"
    with atomic_file(path) as first, atomic_file(path) as second:
        second.write_text("second")
        first.write_text("first")
    assert path.read_text() == "first"
