"""``bench data``: files fetched from a local server."""

import io
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from helpers import pairs_plugin
from helpers.webserver import Offer, serving

TRAIN = b"0,0\n1,1\n0,0\n1,1\n"
TEST = b"0,0\n1,1\n"


def archive(train=TRAIN, test=TEST):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        packed.writestr("pairs/train.csv", train)
        packed.writestr("pairs/test.csv", test)
        packed.writestr("../evil.txt", b"boo")
    return made.getvalue()


@pytest.fixture
def offer():
    return Offer(archive())


@pytest.fixture
def data(bench, offer, elsewhere, monkeypatch):
    """``bench data``, with the plugin in the current folder and its publisher's server up."""
    shutil.copy(pairs_plugin.__file__, "pairs_here.py")
    monkeypatch.setenv("BENCH_DATA", str(elsewhere / "data"))
    with serving({"/pairs.zip": offer}) as at:
        monkeypatch.setenv("PAIRS_AT", at)
        sys.modules.pop("pairs_here", None)
        yield lambda verb, *words: bench("data", verb, *words, "-p", "pairs_here")
    sys.modules.pop("pairs_here", None)


def kept(folder="data"):
    """All files under a folder but locks."""
    found = (p for p in Path(folder).rglob("*") if p.is_file() and p.suffix != ".lock")
    return sorted(str(p.relative_to(folder)) for p in found)


def test_fetched_files_are_there_whole_and_nothing_else_is(data):
    ended = data("fetch", "pairs").ok()
    steps = ["fetching", "unpacking", "pairs:"]
    assert [line.split()[0] for line in ended.err.splitlines()] == steps
    assert kept() == ["pairs/test.csv", "pairs/train.csv"]
    assert Path("data/pairs/train.csv").read_bytes() == TRAIN


def test_what_is_there_is_not_fetched_again_unless_asked(data, offer):
    data("fetch", "pairs")
    assert "already present" in data("fetch", "pairs").err
    assert len(offer.asked) == 1
    data("fetch", "pairs", "--again").ok()
    assert len(offer.asked) == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (
            archive(train=b"0,0\n1,1\n"),
            "pairs as fetched: train.csv: not the publisher's file .sha256",
        ),
        (b"<html>please log in</html>", "neither a zip nor a tar archive"),
        (archive()[:100], "damaged|neither"),
    ],
    ids=["another", "page", "cut"],  # an archive's bytes hold the time of day
)
def test_wrong_content_is_one_line_and_nothing_lands(data, offer, content, why):
    offer.content = content
    ended = data("fetch", "pairs")
    assert ended.status == 2
    last = ended.err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert re.search(why, last)
    assert kept() == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("fetch", "licensed-pairs"),
            "allows no automatic download; get train.csv, test.csv from https://pairs.example",
        ),
        (("fetch", "bundled-pairs"), "needs no files"),
        (("fetch", "pears"), "pairs"),
    ],
)
def test_files_that_cannot_be_had_are_one_line(data, words, says):
    ended = data(*words)
    assert ended.status == 2
    assert says in ended.err


def test_what_fails_does_not_keep_the_others_from_being_fetched(data):
    ended = data("fetch", "licensed-pairs", "bundled-pairs", "pairs")
    assert ended.status == 2
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert [line.split(":")[1].strip() for line in errors] == ["licensed-pairs", "bundled-pairs"]
    assert kept() == ["pairs/test.csv", "pairs/train.csv"]


def test_without_a_terminal_a_long_transfer_tells_how_far_it_is(data, monkeypatch):
    monkeypatch.setattr("bench_core.terminal.progress.LINE_EVERY", 0.0)
    size = f"{len(archive()) / (1 << 20):.1f}"
    assert f"{size} of {size} MiB" in data("fetch", "pairs").err
    assert "MiB" not in data("fetch", "pairs", "--again", "-q").err
