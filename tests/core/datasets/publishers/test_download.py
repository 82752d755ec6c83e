"""Fetching files from a server that cuts transfers; unpacking archives, hostile ones too."""

import hashlib
import io
import tarfile
import zipfile

import pooch
import pytest
from helpers.kit import refused
from helpers.webserver import Offer, serving

from bench_core.datasets.publishers import Download, fetch, unpack

CONTENT = bytes(range(256)) * 4000
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)


def left(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_arrives_whole_and_nothing_is_left_beside_it(tmp_path):
    with serving({"/a": Offer(CONTENT)}) as at:
        path = fetch(Download(f"{at}/a", "a.bin", SUM, len(CONTENT)), tmp_path)
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == ["a.bin"]


def test_what_is_there_is_not_fetched_again(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"mine")
    assert fetch(Download("http://127.0.0.1:9/a", "a.bin"), tmp_path).read_bytes() == b"mine"


def test_a_transfer_that_is_cut_is_tried_again(tmp_path):
    with serving({"/a": Offer(CONTENT, cuts=[300_000])}) as at:
        assert fetch(Download(f"{at}/a", "a", SUM), tmp_path).read_bytes() == CONTENT
    with serving({"/b": Offer(CONTENT, cuts=[300_000] * 3)}) as at:
        refused("IncompleteRead", fetch, Download(f"{at}/b", "b", SUM), tmp_path)
    assert left(tmp_path) == ["a"]


def test_a_busy_server_is_asked_again(tmp_path):
    with serving({"/a": Offer(CONTENT, statuses=[503, 500])}) as at:
        assert fetch(Download(f"{at}/a", "a", SUM), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("offer", "wanted", "why"),
    [
        (Offer(CONTENT), {"sha256": "0" * 64}, f"not the expected file|{SUM}"),
        (Offer(CONTENT), {"bytes": 10}, "1024000 bytes instead of 10"),
        (Offer(CONTENT, status=404), {}, "404 Client Error"),
        (Offer(CONTENT, status=503), {}, "503 Server Error"),
    ],
)
def test_a_wrong_answer_is_one_line_and_leaves_no_file(offer, wanted, why, tmp_path):
    with serving({"/a": offer}) as at:
        refused(f"{at}/a|{why}", fetch, Download(f"{at}/a", "a", **wanted), tmp_path)
    assert not (tmp_path / "a").exists()


def test_no_network_says_what_to_get_and_where_to_put_it(tmp_path):
    absent = Download("http://127.0.0.1:9/a", "a.bin")
    refused(f"Connection refused|{tmp_path / 'a.bin'}", fetch, absent, tmp_path)
    (tmp_path / "file").write_text("")
    refused("cannot be written", fetch, absent, tmp_path / "file")


def test_progress_ends_with_all_bytes(tmp_path):
    told = []
    with serving({"/a": Offer(CONTENT, cuts=[300_000])}) as at:
        fetch(Download(f"{at}/a", "a"), tmp_path, lambda done, total: told.append((done, total)))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path, files, link=""):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            if name == link:
                entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, "/etc/passwd", 0
            archive.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize("make", [zipped, tarred])
def test_named_members_land_where_we_say_and_others_nowhere(make, tmp_path):
    files = {"top/a.txt": b"one", "top/in/b.txt": b"two", "../evil": b"no", "/abs": b"no"}
    archive = make(tmp_path / "x", files)
    to = tmp_path / "to"
    unpack(archive, {"a.txt": "a.txt", "in/b.txt": "deep/b"}, to)
    found = {str(p.relative_to(to)): p.read_bytes() for p in to.rglob("*") if p.is_file()}
    assert found == {"a.txt": b"one", "deep/b": b"two"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["to", "x"]


def test_a_link_in_place_of_a_file_is_not_followed(tmp_path):
    archive = tarred(tmp_path / "x", {"a": b"/etc/passwd"}, link="a")
    refused("no a in it", unpack, archive, {"a": "a"}, tmp_path / "to")


@pytest.mark.parametrize("make", [zipped, tarred])
@pytest.mark.parametrize(
    ("files", "why"), [({"b": b""}, "no a in it"), ({"x/a": b"1", "y/a": b"2"}, "2 files a in it")]
)
def test_a_missing_or_ambiguous_member_is_refused(make, files, why, tmp_path):
    archive = make(tmp_path / "x", files)
    refused(why, unpack, archive, {"a": "a"}, tmp_path / "to")


@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_damaged_archive_is_one_line(make, tmp_path):
    noise = bytes((i * 7919 >> 3) & 255 for i in range(5000))
    archive = make(tmp_path / "x", {"a": noise, "b": noise[::-1]})
    raw = bytearray(archive.read_bytes())
    raw[1000:1100] = bytes(100)
    archive.write_bytes(bytes(raw))
    refused("x: ", unpack, archive, {"a": "a", "b": "b"}, tmp_path / "to")
    (tmp_path / "x").write_text("<html>Log in first</html>")
    refused("neither a zip nor a tar", unpack, tmp_path / "x", {"a": "a"}, tmp_path / "to")
