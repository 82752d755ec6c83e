from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bench_reports.html import page
from helpers import browser, example

from bench_core.leaderboard.assembly import boards

pytestmark = pytest.mark.skipif(
    browser.executable() is None, reason="no Chromium on the PATH to open the page with"
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "board.html"
    path.write_text(page(example.info(), boards(example.info(), example.frame()), example.frame()))
    return path


@pytest.fixture(scope="module")
def tab(file: Path) -> Iterator[browser.Page]:
    with browser.opened(file, file.parent / "profile") as opened:
        opened.wait("document.documentElement.dataset.ready === 'yes'")
        yield opened


def shown(tab: browser.Page) -> list[int]:
    """How many curves each chart draws."""
    return list(
        tab.js(
            "[...document.querySelectorAll('.chart')]"
            ".map(c => c.querySelectorAll('.scatterlayer .trace').length)"
        )
    )


def test_the_page_asks_for_nothing_but_itself(tab: browser.Page, file: Path) -> None:
    outside = [url for url in tab.requests() if not url.startswith(("data:", "blob:"))]
    assert outside == [file.as_uri()]


def test_no_script_complains(tab: browser.Page) -> None:
    assert tab.complaints() == []


def test_there_is_one_curve_for_each_learner_of_each_data_set(tab: browser.Page) -> None:
    assert shown(tab) == [3, 2]


def test_every_curve_has_as_many_points_as_the_data(tab: browser.Page) -> None:
    # budgets: miser 1000, 3000, 5000; gbrt 2000, 6000, 9000; cegb 500
    count = "[...document.querySelectorAll('#chart0 .trace')]"
    points = tab.js(count + ".map(t => t.querySelectorAll('.points path').length)")
    assert sorted(points) == [1, 3, 3]


def test_a_hostile_name_is_text_and_no_element(tab: browser.Page) -> None:
    assert tab.js("document.querySelectorAll('img[src=x]').length") == 0
    assert example.HOSTILE in tab.js("document.body.innerText")


def test_a_learners_button_takes_its_curve_away_and_brings_it_back(tab: browser.Page) -> None:
    button = "document.querySelector('[data-curve=chart0]')"
    tab.js(f"{button}.click()")
    tab.wait("document.querySelectorAll('#chart0 .scatterlayer .trace').length === 2")
    assert tab.js(f"{button}.getAttribute('aria-pressed')") == "false"
    tab.js(f"{button}.click()")
    tab.wait("document.querySelectorAll('#chart0 .scatterlayer .trace').length === 3")
    assert tab.js(f"{button}.getAttribute('aria-pressed')") == "true"


def test_the_cost_axis_becomes_logarithmic_by_a_button(tab: browser.Page) -> None:
    tab.js("document.querySelector('[data-log=chart1]').click()")
    tab.wait("document.getElementById('chart1').layout.xaxis.type === 'log'")
    tab.js("document.querySelector('[data-log=chart1]').click()")
    tab.wait("document.getElementById('chart1').layout.xaxis.type === 'linear'")


def first_column(tab: browser.Page) -> list[str]:
    return list(
        tab.js(
            "[...document.querySelector('table').tBodies[0].rows].map(r => r.cells[0].innerText)"
        )
    )


def test_a_heading_sorts_by_value_and_again_the_other_way(tab: browser.Page) -> None:
    cost = "document.querySelector('button[data-column=\"3\"]')"
    tab.js(f"{cost}.click()")
    assert first_column(tab) == ["cegb", "miser", "gbrt"]  # 500, 5000, 9000
    assert tab.js(f"{cost}.closest('th').getAttribute('aria-sort')") == "ascending"
    tab.js(f"{cost}.click()")
    assert first_column(tab) == ["gbrt", "miser", "cegb"]


def test_rows_without_a_value_stay_last_whichever_way_is_sorted(tab: browser.Page) -> None:
    saving = "document.querySelector('button[data-column=\"6\"]')"
    tab.js(f"{saving}.click()")
    assert first_column(tab) == ["gbrt", "miser", "cegb"]  # 1.5x, 3.0x, none
    tab.js(f"{saving}.click()")
    assert first_column(tab) == ["miser", "gbrt", "cegb"]


def test_the_theme_button_turns_page_and_charts_dark(tab: browser.Page) -> None:
    tab.js("document.getElementById('theme').click()")
    tab.wait("document.getElementById('chart0').layout.paper_bgcolor === '#14171a'")
    assert tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
    tab.js("document.getElementById('theme').click()")
    tab.wait("document.getElementById('chart0').layout.paper_bgcolor === '#ffffff'")


def test_hovering_shows_the_parameters(tab: browser.Page) -> None:
    tab.js("Plotly.Fx.hover('chart0', [{curveNumber: 0, pointNumber: 1}])")
    text = tab.js("document.querySelector('#chart0 .hoverlayer').textContent")
    assert "tradeoff=1" in text
    assert "miser" in text


def test_every_button_can_be_reached_by_keyboard(tab: browser.Page) -> None:
    assert tab.js("[...document.querySelectorAll('button')].every(b => b.tabIndex === 0)")


def test_without_scripts_the_tables_are_there(file: Path, tmp_path: Path) -> None:
    with browser.opened(file, tmp_path / "profile", script=False) as tab:
        text = tab.js("document.body.innerText")
    assert "miser" in text
    assert "3.0x" in text
    assert "The curves need JavaScript" in text
