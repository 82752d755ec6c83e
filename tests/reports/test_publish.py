"""A site of several runs: what is in it, what changed, and what is not touched."""

import json
import re

import pytest
from bench_reports.palette import look
from bench_reports.publish import changes, entry, index, lines_of
from helpers import browser, example
from helpers.commands import write_csv

from bench_core.errors import UsageError
from bench_core.leaderboard import reports

RUN = ("run", "--data", "data.csv", "--executor", "inline", "-q")


def links_of(index):
    return re.findall(r' (?:href|src)="([^"]*)"', index)


def test_a_site_has_a_line_for_each_run_and_says_what_changed(tmp_path, bench):
    write_csv(tmp_path / "data.csv")
    for learners in ("constant", "constant,greedy-order"):
        assert bench(*RUN, "-l", learners).status == 0
    ended = bench("publish", "site", "--title", "Our tests")
    assert (ended.status, ended.err.splitlines()[-1]) == (0, "published 2 runs in site"), ended.err
    index = (tmp_path / "site/index.html").read_text()
    links = links_of(index)
    assert len(links) == 6
    assert index.count("<h1>Our tests</h1>") == 1
    assert "greedy-order, a baseline, is best on only 24 validation rows: accuracy" in index
    # a constant alone has no curve, a baseline no colour
    assert re.findall('polyline class="([^"]*)"', index) == ["first"]
    assert 'data-ready="yes"' in index  # nothing waits for a script
    assert "Since the last publication" not in index  # this is the first
    for link in links:
        assert (tmp_path / "site" / link).stat().st_size > 100
    assert index.count("<tr>") == 3
    if browser.executable():
        with browser.opened(tmp_path / "site/index.html", tmp_path / "profile") as tab:
            text = "document.querySelector('main')"
            assert tab.js(f"getComputedStyle({text}).visibility") == "visible"
            tab.call(
                "Emulation.setDeviceMetricsOverride",
                width=390, height=844, deviceScaleFactor=1, mobile=True,
            )  # fmt: skip
            assert tab.js("document.querySelector('.scroll').scrollWidth") <= 390
            assert tab.complaints() == []  # its policy allows its script and style
    whole = {p: p.read_bytes() for p in (tmp_path / "site").rglob("*") if p.is_file()}

    assert bench("publish", "site").status == 0
    assert "No changes." in (tmp_path / "site/index.html").read_text()
    runs = {p: b for p, b in whole.items() if p.name not in ("index.html", "published.json")}
    assert {p: p.read_bytes() for p in runs} == runs

    ended = bench("publish", "site", "1")
    assert ended.err.splitlines()[-1].endswith(": taken off")
    assert len([*(tmp_path / "site/runs").iterdir()]) == 1
    assert len(links_of((tmp_path / "site/index.html").read_text())) == 3


def test_a_folder_of_something_else_is_left_alone(tmp_path, bench):
    write_csv(tmp_path / "data.csv")
    assert bench(*RUN, "-l", "constant").status == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/index.html").write_text("mine")
    ended = bench("publish", "mine")
    assert ended.status == 2
    assert "mine: not empty, and not a site of `bench publish`; name another" in ended.err
    assert [p.read_text() for p in (tmp_path / "mine").iterdir()] == ["mine"]
    (tmp_path / "mine/published.json").write_text("[1]")
    assert "damaged" in bench("publish", "mine").err


def test_a_publication_that_fails_half_way_is_made_by_the_next_call(tmp_path, bench, monkeypatch):
    write_csv(tmp_path / "data.csv")
    assert bench(*RUN, "-l", "constant").status == 0
    write = reports.write_report

    def full(registry, request, warn):
        if request.output.suffix == ".json":
            raise UsageError(f"cannot write {request.output}: no space left")
        write(registry, request, warn)

    with monkeypatch.context() as patched:
        patched.setattr(reports, "write_report", full)
        assert bench("publish", "site").status == 2
    assert not (tmp_path / "site/index.html").exists()
    ended = bench("publish", "site")
    assert (ended.status, ended.err.splitlines()[-1]) == (0, "published 1 run in site"), ended.err


def test_an_entry_has_what_tells_runs_apart_once_and_the_whole_conclusion():
    said = ["a keeps 99% of gbrt's accuracy.", "It is 2.0x cheaper.", "No other learner ties."]
    rows = [{"learner": name, "baseline": False, "curve": []} for name in ("a", "gbrt")]
    board = {"dataset": "letters", "higher_is_better": True, "conclusion": said, "learners": rows}
    info = example.info(title="", run="letters-quick-1", datasets=(example.use("letters"),))
    made = entry(info, {"conclusion": [], "datasets": [board]}, [0, 1, 2])
    text = index("Site", [made], [])
    assert " ".join(said).replace("'", "&#39;") in text
    head = re.findall(r'<th scope="row"[^>]*>(.*?)</th>', text, re.S)[0]
    words = "letters run 3, letters-quick-1, of 2026-01-02 03:04 UTC; profile quick; seeds 0, 1, 2"
    assert " ".join(re.sub("<[^>]*>", " ", head).split()) == words
    two = entry(info, {"conclusion": [], "datasets": [board, board]}, [0])
    assert two["answer"].startswith("letters: a keeps 99%")


@pytest.mark.skipif(browser.executable() is None, reason="no Chromium on the PATH")
def test_runs_are_sorted_by_a_click_and_found_by_words(tmp_path):
    rows = [{"learner": "a", "baseline": False, "curve": []}]
    entries = []
    for name, day, said in (("old", 1, "b wins."), ("new", 3, "a wins."), ("mid", 2, "c wins.")):
        board = {"dataset": name, "higher_is_better": True, "conclusion": [said], "learners": rows}
        info = example.info(title=name, created_at=f"2026-01-0{day}T00:00:00Z")
        entries.append(entry(info, {"conclusion": [], "datasets": [board]}, [0]))
    (tmp_path / "index.html").write_text(index("Site", entries), encoding="utf-8")
    with browser.opened(tmp_path / "index.html", tmp_path / "profile") as tab:
        shown = "[...document.querySelectorAll('tbody tr')].filter(r => r.offsetHeight).map(r =>"
        shown += " r.querySelector('a').textContent)"
        assert tab.js(shown) == ["old", "new", "mid"]
        for heading, order in ((0, "new mid old"), (0, "old mid new"), (1, "new old mid")):
            tab.js(f"document.querySelectorAll('thead th')[{heading}].firstChild.click()")
            assert tab.js(shown) == order.split()
        field = "document.querySelector('[type=search]')"
        tab.js(f"{field}.value = 'WINS b'; {field}.dispatchEvent(new Event('input'))")
        assert tab.js(shown) == ["old"]
        assert tab.complaints() == []


def test_curves_have_the_colour_of_their_learner_and_the_first_is_on_top():
    names = ("cegb", "gbrt", "greedy-order")
    steps = (0.0, 0.5), (1.0, 0.5), (10.0, 0.7), (100.0, 0.6)
    curve = [{"budget": budget, "quality": quality} for budget, quality in steps]
    rows = [{"learner": n, "baseline": n == names[2], "curve": curve} for n in names]
    lines = lines_of({"higher_is_better": True, "reference": "gbrt", "learners": rows})
    colours = [f"k{look(name).colour}" for name in names]
    assert [line[0] for line in lines] == ["", colours[1], f"{colours[0]} first"]
    # a decade of budgets is half the width; what costs nothing is at the left end
    corners = "3.0,57.0 3.0,57.0 3.0,57.0 80.0,57.0 80.0,3.0 157.0,3.0 157.0,30.0 157.0,30.0"
    assert {points for _, points in lines} == {corners}


def test_changes_name_runs_learners_and_figures():
    before = {"a": {"d / x": [0.9, 3.0], "d / y": [0.8, 1.0]}, "b": {}}
    now = json.loads(json.dumps({"a": {"d / x": [0.91, 3.0], "d / z": [0.8, 1.0]}, "c": {}}))
    assert list(changes(before, now)) == [
        "a: d / x: 0.9 at cost 3, now 0.91 at 3",
        "a: d / y: no longer there",
        "a: d / z: new",
        "b: taken off",
        "c: new",
    ]
    assert list(changes(now, now)) == []
