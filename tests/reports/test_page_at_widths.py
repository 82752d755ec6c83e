"""The page at the widths of a phone, a tablet and a desk, light and dark, and on paper."""

import base64
import json
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from helpers import browser, page_run
from helpers.valued_run import ValuedRun, learner_of

from bench_core.leaderboard.assembly import boards

pytestmark = pytest.mark.skipif(
    browser.executable() is None, reason="no Chromium on the PATH to open the page with"
)

WIDTHS = (390, 800, 1280)
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
PAGES = {"two": page_run.run, "many": lambda: page_run.large_run(13, 2, points=6)}
OPEN = "section.set:not(.off)"


@pytest.fixture(scope="module", params=[*PAGES])
def made(request):
    """A run of two data sets, and one of many learners on many."""
    return PAGES[request.param]()


@pytest.fixture(scope="module")
def tab(made, tmp_path_factory):
    file = tmp_path_factory.mktemp("widths") / "board.html"
    page = page_run.known_page() if made is page_run.run() else page_run.page(made)
    file.write_text(page, encoding="utf-8")
    with browser.opened(file, file.parent / "profile") as opened:
        opened.wait("document.documentElement.dataset.ready === 'yes'")
        yield opened


def show(tab, width, theme):
    browser.resize(tab, width)
    tab.js("document.getElementById('f-reset').click()")
    other = "dark" if theme == "light" else "light"
    tab.js(f"document.documentElement.dataset.theme = {json.dumps(other)}")
    tab.js("document.getElementById('theme').click()")
    assert tab.js("document.documentElement.dataset.theme") == theme
    tab.wait(f"Math.abs(document.querySelector('{OPEN} .chart').clientWidth - {width}) < 200")
    tab.js(SETTLED)


def reload(tab):
    tab.js("window.before = true")
    tab.call("Page.reload")
    tab.wait("!window.before && document.documentElement?.dataset.ready === 'yes'")


def too_wide(tab):
    """What reaches over the edge of the window, or scrolls although it is a table of the board."""
    return tab.js(
        "[...document.querySelectorAll('body, main > *, .board, .chart svg')]"
        " .filter(e => e.offsetParent !== null && e.getBoundingClientRect().right > innerWidth + 1)"
        " .map(e => e.outerHTML.slice(0, 60))"
    ) or [1] * (tab.js("document.documentElement.scrollWidth > innerWidth"))


@pytest.mark.parametrize(
    ("width", "theme"), [*zip(WIDTHS, ("light", "light", "dark"), strict=True)]
)
def test_whatever_is_clicked_nothing_is_wider_than_the_window(tab, width, theme):
    show(tab, width, theme)
    clicks = {
        f"{OPEN} .board thead button": [0, 1, 2, 4, 4],
        f"{OPEN} [data-curve]": [0, 1],
        "#f-scale, #f-range, #f-bands": [0, 1, 2],
        "#strip button": [1, 0],
        "#f-all": [0],
    }
    wrong = {"at first": too_wide(tab)}
    for selector, numbers in clicks.items():
        for k in numbers:
            tab.js(f"document.querySelectorAll({json.dumps(selector)})[{k}]?.click(); {SETTLED}")
            wrong[f"{selector} {k}"] = too_wide(tab)
    for id_, place in (("f-set", 1), ("f-kind", 1), ("f-metric", 0), ("f-budget", 3)):
        tab.js(
            f"(() => {{ const e = document.getElementById('{id_}');"
            f" e.value = e.options?.[{place}]?.value ?? e.options?.[0].value ?? {place};"
            " e.dispatchEvent(new Event(e.options ? 'change' : 'input', {bubbles: true})); })()"
        )
        tab.js(SETTLED)
        wrong[id_] = too_wide(tab)
    assert {place: what for place, what in wrong.items() if what} == {}
    assert tab.complaints() == []
    if width == 1280:
        assert tab.js("document.querySelectorAll('.board').length") > 1
        assert not tab.js(
            "[...document.querySelectorAll('.scroll.wide')].some(e => e.offsetParent)"
        )


@pytest.mark.parametrize("width", WIDTHS)
def test_the_button_of_the_theme_stands_beside_the_title(tab, width):
    show(tab, width, "light")
    title, button = (
        tab.js(f"document.querySelector('{one}').getBoundingClientRect().toJSON()")
        for one in ("h1", "#theme")
    )
    assert title["right"] <= button["left"]
    assert button["right"] <= width
    assert abs(button["top"] - title["top"]) < 10


def test_rows_stand_in_the_order_of_the_terminal_on_each_data_set(tab, made):
    reload(tab)
    expected = {}
    for board in boards(made.info, made.frame, made):
        expected[board.dataset] = [row.learner for row in board.rows]
    shown = tab.js(
        "Object.fromEntries([...document.querySelectorAll('section.set')].map(s => [s.querySelector"
        "('h2').innerText.trim(), [...s.querySelectorAll('.board tbody th')].map(t => "
        "t.innerText.trim().split(' ').pop())]))"
    )
    assert shown == {**shown, **expected}
    assert len(shown) == len(expected) > 1


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1280, "light")])
def test_axe_finds_nothing_serious(tab, width, theme):
    if (axe := find_spec("axe_playwright_python")) is None:
        pytest.skip("axe-core is not installed: pip install -e '.[dev]'")
    show(tab, width, theme)
    source = Path(str(axe.origin)).with_name("axe.min.js").read_text(encoding="utf-8")
    found = tab.js(f"{source}; axe.run()")
    assert len(found["passes"]) > 30
    assert [
        (one["id"], [node["target"] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ] == []


def test_nothing_moves_while_the_page_loads(tab):
    shift = (
        "new Promise(done => { let all = 0; const seen = new PerformanceObserver(list => {"
        " for (const one of list.getEntries()) all += one.value; });"
        " seen.observe({type: 'layout-shift', buffered: true});"
        " setTimeout(() => done(all), 300); })"
    )
    reload(tab)
    assert tab.js(shift) < 0.02


def test_names_are_whole_on_a_phone(tmp_path):
    long, run, rng = "budget-boosting", ValuedRun(), np.random.default_rng(3)
    for name, best in (("gbrt", 0.7), (long, 0.9)):
        run.add(name, *learner_of(rng, (0.5, best), (1.0, 9.0), 50))
    (tmp_path / "board.html").write_text(page_run.page(run), encoding="utf-8")
    with browser.opened(tmp_path / "board.html", tmp_path / "profile") as tab:
        tab.wait("document.documentElement.dataset.ready === 'yes'")
        show(tab, 390, "light")
        shown = tab.js(
            f"[...document.querySelectorAll('{OPEN} .chart text, {OPEN} .board tbody th')]"
            f" .filter(e => e.textContent.trim().endsWith('{long}')).map(e =>"
            " [e.getBoundingClientRect().right <= innerWidth, e.scrollWidth <= e.clientWidth + 1])"
        )
    assert shown == [[True, True]] * 2


def test_a_data_set_takes_a_sheet_of_paper_and_so_does_the_rest_and_no_table_is_cut(tab, made):
    show(tab, 1280, "dark")
    pdf = base64.b64decode(tab.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) <= len({*made.frame["dataset"]}) + 1
    # as wide as the paper, but for its margins
    browser.resize(tab, 718, 1000)
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.js(SETTLED)
    cut = tab.js(
        "[...document.querySelectorAll('table, svg')].filter(e => e.offsetParent !== null"
        " && e.getBoundingClientRect().right > 719).map(e => e.outerHTML.slice(0, 60))"
    )
    assert cut == []
    breaks = tab.js(
        "[...document.querySelectorAll('section.set:not(.off) :is(h2, h2 + p, .conclusion, .story)"
        ":not([hidden])')].map(e => getComputedStyle(e).breakAfter)"
    )
    assert {*breaks} == {"avoid"}  # no heading at the foot of a sheet
    assert len(breaks) >= 3
    # a select is as wide as its choice, so that sentences around it have no gap
    gaps = tab.js(
        "[...document.querySelectorAll('section.set select')].filter(e => e.offsetParent)"
        ".map(e => { const text = document.createElement('span'); "
        " text.textContent = e.selectedOptions[0].text; text.style.font = getComputedStyle(e).font;"
        " e.after(text); const gap = e.offsetWidth - text.offsetWidth; text.remove(); return gap;"
        " })"
    )
    assert gaps
    assert max(map(abs, gaps)) <= 4
    chart = "document.querySelector('.chart svg').width.baseVal.value"
    assert tab.js(chart) == 720
    tab.call("Emulation.setEmulatedMedia", media="")
    show(tab, 1280, "light")
    assert tab.js(chart) > 1000  # as it was
