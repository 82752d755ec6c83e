"""The claims ledger on the page and on the terminal."""

from io import StringIO

import pytest
from bench_claims.plugin import section, verdicts
from bench_reports.page import page
from bench_reports.panels import Panels
from bench_reports.terminal import show_boards, text_boards
from helpers import browser, example
from rich.console import Console

from bench_core.leaderboard.assembly import boards

SUMMARY = "holds: 1 (a sample: 1), does not hold: 1, data absent: 2"


def sections(info=None):
    made = section(info or example.info(), example.frame())
    return [made] if made else []


def test_claims_of_another_version_are_left_out_and_it_is_said():
    info = example.info(extra={"claims": [{"text": "of old"}]})
    assert verdicts(info, example.frame()) == ()
    (made,) = sections(info)
    assert made.summary == "written for another version of bench, not read"
    html = page(info, boards(info, example.frame()), example.frame(), [made])
    assert made.summary in html
    assert sections(example.info(extra={})) == []


def test_the_terminal_sums_up_and_names_the_command_that_lists():
    info = example.info()
    made = boards(info, example.frame())
    line = f"claims: {SUMMARY}; 'bench claims yahoo' lists them"
    panels = Panels(info, example.frame(), None, made)
    assert text_boards(panels, sections()).splitlines()[-1] == line
    to = Console(file=StringIO(), width=200, force_terminal=True, color_system=None)
    show_boards(panels, to, sections())
    assert isinstance(to.file, StringIO)
    assert line in to.file.getvalue().splitlines()
    assert "claims:" not in text_boards(panels)


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    if browser.executable() is None:
        pytest.skip("no Chromium on the PATH to open the page with")
    file = tmp_path_factory.mktemp("claims") / "board.html"
    info = example.info()
    file.write_text(page(info, boards(info, example.frame()), example.frame(), sections()))
    with browser.opened(file, file.parent / "profile") as opened:
        opened.wait("document.documentElement.dataset.ready === 'yes'")
        yield opened


def cells(tab, claim):
    return list(
        tab.js(f"[...document.getElementById('claim-{claim}').cells].map(c => c.innerText)")
    )


def test_the_page_shows_claim_published_measured_verdict_and_how(tab):
    claim, published, measured, verdict, rests, how = cells(tab, "cheap-forest")
    assert claim.splitlines() == [
        "miser keeps the accuracy at a sixth of the cost on Forest",
        "Somebody, 2012, figure 1",
    ]
    assert (published, measured, verdict) == ("5/6 saved", "83.3%", "holds")
    assert rests == "a sample; from a figure only"
    assert how.startswith("saving of miser against gbrt, accuracy, keeping 99% on validation")
    assert how.endswith("profile quick; sample of 100000 rows")
    assert cells(tab, "licensed")[3] == "data absent"
