"""Fetching files from a server that cuts transfers and gives other files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pooch
import pytest
from helpers.webserver import Offer, serving

from bench_core.datasets.publishers import Download, fetch
from bench_core.errors import InputError

CONTENT = bytes(range(256)) * 4000
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooch.core.time, "sleep", lambda seconds: None)


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_file_arrives_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    with serving({"/a": Offer(CONTENT)}) as at:
        path = fetch(Download(f"{at}/a", "a.bin", SUM, len(CONTENT)), tmp_path)
    assert path.read_bytes() == CONTENT
    assert left(tmp_path) == ["a.bin"]


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"mine")
    assert fetch(Download("http://127.0.0.1:9/a", "a.bin"), tmp_path).read_bytes() == b"mine"


def test_a_transfer_that_is_cut_is_tried_again(tmp_path: Path) -> None:
    with serving({"/a": Offer(CONTENT, cuts=[300_000])}) as at:
        assert fetch(Download(f"{at}/a", "a", SUM), tmp_path).read_bytes() == CONTENT
    with (
        serving({"/b": Offer(CONTENT, cuts=[300_000] * 3)}) as at,
        pytest.raises(InputError, match="IncompleteRead"),
    ):
        fetch(Download(f"{at}/b", "b", SUM), tmp_path)
    assert left(tmp_path) == ["a"]


def test_a_busy_server_is_asked_again(tmp_path: Path) -> None:
    with serving({"/a": Offer(CONTENT, statuses=[503, 500])}) as at:
        assert fetch(Download(f"{at}/a", "a", SUM), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("offer", "wanted", "why"),
    [
        (Offer(CONTENT), {"sha256": "0" * 64}, f"not the expected file.*{SUM}"),
        (Offer(CONTENT), {"bytes": 10}, "1024000 bytes instead of 10"),
        (Offer(CONTENT, status=404), {}, "404 Client Error"),
        (Offer(CONTENT, status=503), {}, "503 Server Error"),
    ],
)
def test_a_wrong_answer_is_one_line_and_leaves_no_file(
    offer: Offer, wanted: dict[str, object], why: str, tmp_path: Path
) -> None:
    with serving({"/a": offer}) as at, pytest.raises(InputError, match=why) as caught:
        fetch(Download(f"{at}/a", "a", **wanted), tmp_path)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert f"{at}/a" in str(caught.value)
    assert not (tmp_path / "a").exists()


def test_no_network_says_what_to_get_and_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        fetch(Download("http://127.0.0.1:9/a", "a.bin"), tmp_path)
    assert "Connection refused" in str(caught.value)
    assert str(tmp_path / "a.bin") in str(caught.value)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        fetch(Download("http://127.0.0.1:9/a", "a"), tmp_path / "file")


def test_progress_ends_with_all_bytes(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with serving({"/a": Offer(CONTENT, cuts=[300_000])}) as at:
        fetch(Download(f"{at}/a", "a"), tmp_path, lambda done, total: told.append((done, total)))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
