"""``bench data``: files fetched from a local server, imported, verified."""

import io
import re
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import pairs_plugin
from helpers.commands import Ended
from helpers.webserver import Offer, serving

TRAIN = b"0,0\n1,1\n0,0\n1,1\n"
TEST = b"0,0\n1,1\n"
Pairs = Callable[..., Ended]


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
    ended = data("fetch", "pairs")
    assert ended.status == 0, ended.err
    steps = ["fetching", "unpacking", "reading", "pairs:"]
    assert [line.split()[0] for line in ended.err.splitlines()] == steps
    assert "fetched and verified" in ended.err
    assert kept() == ["pairs/test.csv", "pairs/train.csv"]
    assert Path("data/pairs/train.csv").read_bytes() == TRAIN


def test_what_is_there_is_not_fetched_again_unless_asked(data, offer):
    data("fetch", "pairs")
    assert "already present" in data("fetch", "pairs").err
    assert len(offer.asked) == 1
    assert data("fetch", "pairs", "--again").status == 0
    assert len(offer.asked) == 2


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (archive(train=b"0,0\n1,1\n"), "2/2/2 rows instead of 4/4/2"),
        (archive(train=b"0,0\n1,1\n0,0\n1,0\n"), "labels"),
        (archive(train=b"0,0\n1,1\n0,0\n9,1\n"), "values 0 to 9 outside 0 to 1"),
        (b"<html>please log in</html>", "neither a zip nor a tar archive"),
        (archive()[:100], "damaged|neither"),
    ],
    ids=["rows", "labels", "values", "page", "cut"],  # an archive's bytes hold the time of day
)
def test_wrong_content_is_one_line_and_nothing_lands(data, offer, content, why):
    offer.content = content
    ended = data("fetch", "pairs")
    assert ended.status == 2
    last = ended.err.strip().splitlines()[-1]
    assert last.startswith("error: ")
    assert re.search(why, last)
    assert kept() == []


def test_a_cut_transfer_is_one_line_and_can_be_repeated(data, offer, monkeypatch):
    monkeypatch.setattr("bench_core.datasets.publishers.AGAIN", 0)
    offer.cuts = [50]
    ended = data("fetch", "pairs")
    assert ended.status == 2
    assert "IncompleteRead" in ended.err
    assert "bench data import pairs FOLDER" in ended.err
    offer.cuts = []
    assert data("fetch", "pairs").status == 0
    assert kept() == ["pairs/test.csv", "pairs/train.csv"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("fetch", "licensed-pairs"),
            "allows no automatic download; get train.csv, test.csv from https://pairs.example",
        ),
        (("fetch", "bundled-pairs"), "needs no files"),
        (("verify", "bundled-pairs"), "needs no files"),
        (("fetch", "pears"), "pairs"),
        (("verify", "pairs"), "no file train.csv"),
        (("verify", "pairs"), "https://pairs.example"),
    ],
)
def test_files_that_cannot_be_had_are_one_line(data, words, says):
    ended = data(*words)
    assert ended.status == 2
    assert says in ended.err


@pytest.mark.parametrize("form", ["folder", "nested", "archive", "folder of the archive"])
def test_ones_own_copy_is_taken_over_in_any_form(data, form):
    own = Path("own") / ("deep/er" if form == "nested" else "")
    own.mkdir(parents=True)
    if "archive" in form:
        (own / "pairs.zip").write_bytes(archive())
    else:
        (own / "train.csv").write_bytes(TRAIN)
        (own / "test.csv").write_bytes(TEST)
    ended = data("import", "pairs", "own/pairs.zip" if form == "archive" else "own")
    assert ended.status == 0, ended.err
    assert kept() == ["pairs/test.csv", "pairs/train.csv"]
    assert len(kept("own")) == (1 if "archive" in form else 2)


@pytest.mark.parametrize("form", ["folder", "archive"])
def test_what_is_wrong_with_ones_own_copy_names_that_copy(form, data):
    Path("own").mkdir()
    given = {"folder": "own", "archive": "own/pairs.zip"}[form]
    Path("own/pairs.zip").write_bytes(archive(TRAIN, b"0,0\n0,1\n0,1\n"))
    if form == "folder":
        Path("own/test.csv").write_bytes(b"0,0\n0,1\n0,1\n")
        Path("own/train.csv").write_bytes(TRAIN)
    ended = data("import", "pairs", given)
    assert ended.status == 2
    assert f"error: {given}: not the publisher's pairs: 4/4/3 rows instead of 4/4/2" in ended.err
    assert ".fetching-" not in ended.err


def test_a_file_of_ones_own_copy_is_named_as_it_lies_there(data):
    Path("own").mkdir()
    Path("own/letter-recognition.data").write_bytes(b"T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8\n")
    ended = data("import", "letters", "own")
    assert ended.status == 2
    assert "error: own: letter-recognition.data: not the publisher's file (" in ended.err


def test_a_file_damaged_later_is_found(data):
    data("fetch", "pairs")
    Path("data/pairs/test.csv").write_bytes(b"0,0\n0,1\n0,1\n")
    ended = data("verify", "pairs")
    assert ended.status == 2
    assert "4/4/3 rows instead of 4/4/2" in ended.err
    assert ended.err.rstrip().endswith("; run 'bench data fetch pairs --again'")


def test_verifying_all_looks_at_what_is_there(data):
    data("fetch", "pairs")
    shutil.copytree("data/pairs", "data/other/deeper/than/looked/for")
    ended = data("verify", "all")
    assert ended.status == 0, ended.err
    assert "letters" not in ended.out


def test_what_fails_does_not_keep_the_others_from_being_fetched(data):
    ended = data("fetch", "licensed-pairs", "bundled-pairs", "pairs")
    assert ended.status == 2
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert [line.split(":")[1].strip() for line in errors] == ["licensed-pairs", "bundled-pairs"]
    assert kept() == ["pairs/test.csv", "pairs/train.csv"]


def test_verifying_nothing_says_so(data, elsewhere):
    ended = data("verify", "all")
    assert (ended.status, ended.out) == (0, "")
    assert f"nothing to verify in {elsewhere / 'data'}" in ended.err


def test_without_a_terminal_a_long_transfer_tells_how_far_it_is(data, monkeypatch):
    monkeypatch.setattr("bench_core.terminal.progress.LINE_EVERY", 0.0)
    size = f"{len(archive()) / (1 << 20):.1f}"
    assert f"{size} of {size} MiB" in data("fetch", "pairs").err
    assert "MiB" not in data("fetch", "pairs", "--again", "-q").err


OWN = """
[mine]
file = "all.csv"
task = "binary"
"""


def test_ones_own_files_are_verified_where_they_are(data):
    Path("data").mkdir()
    Path("data/datasets.toml").write_text(OWN)
    Path("data/all.csv").write_text("a,label\n" + "1,0\n2,1\n" * 50)
    assert "as expected" in data("verify", "all").out
    assert "its files are your own and stay where" in data("import", "mine", "data").err
    assert len(Path("data/all.csv").read_text()) > 300
    Path("data/all.csv").unlink()
    for verb in ("verify", "fetch"):
        ended = data(verb, "mine")
        assert ended.status == 2
        assert "bench data import" not in ended.err
    assert "put it there, or correct" in data("verify", "mine").err
    assert "datasets.toml, [mine]" in data("verify", "mine").err


def test_verifying_all_says_that_ones_own_table_cannot_be_read(data):
    data("fetch", "pairs")
    Path("data/datasets.toml").write_text(OWN.replace("binary", "bin"))
    ended = data("verify", "all")
    assert ended.status == 2
    assert "as expected" in ended.out
    assert "error: " in ended.err
    assert "key 'task': expected one of" in ended.err
