"""Unpacking archives, hostile ones among them."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from bench_core.datasets.publishers import unpack
from bench_core.errors import InputError


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: dict[str, bytes], link: str = "") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if name == link:
                entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, "/etc/passwd", 0
            archive.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize("make", [zipped, tarred])
def test_named_members_land_where_we_say_and_others_nowhere(make: object, tmp_path: Path) -> None:
    files = {"top/a.txt": b"one", "top/in/b.txt": b"two", "../evil": b"no", "/abs": b"no"}
    archive = make(tmp_path / "x", files)  # type: ignore[operator]
    to = tmp_path / "to"
    unpack(archive, {"a.txt": "a.txt", "in/b.txt": "deep/b"}, to)
    found = {str(p.relative_to(to)): p.read_bytes() for p in to.rglob("*") if p.is_file()}
    assert found == {"a.txt": b"one", "deep/b": b"two"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["to", "x"]


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    archive = tarred(tmp_path / "x", {"a": b"/etc/passwd"}, link="a")
    with pytest.raises(InputError, match="no a in it"):
        unpack(archive, {"a": "a"}, tmp_path / "to")


@pytest.mark.parametrize("make", [zipped, tarred])
@pytest.mark.parametrize(
    ("files", "why"), [({"b": b""}, "no a in it"), ({"x/a": b"1", "y/a": b"2"}, "2 files a in it")]
)
def test_a_missing_or_ambiguous_member_is_refused(
    make: object, files: dict[str, bytes], why: str, tmp_path: Path
) -> None:
    archive = make(tmp_path / "x", files)  # type: ignore[operator]
    with pytest.raises(InputError, match=why):
        unpack(archive, {"a": "a"}, tmp_path / "to")


@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_damaged_archive_is_one_line(make: object, tmp_path: Path) -> None:
    noise = bytes((i * 7919 >> 3) & 255 for i in range(5000))
    archive = make(tmp_path / "x", {"a": noise, "b": noise[::-1]})  # type: ignore[operator]
    raw = bytearray(archive.read_bytes())
    raw[1000:1100] = bytes(100)
    archive.write_bytes(bytes(raw))
    with pytest.raises(InputError, match="x: ") as caught:
        unpack(archive, {"a": "a", "b": "b"}, tmp_path / "to")
    assert "\n" not in str(caught.value)


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("<html>Log in first</html>")
    with pytest.raises(InputError, match="neither a zip nor a tar"):
        unpack(tmp_path / "x", {"a": "a"}, tmp_path / "to")
