"""The page as text; tests/reports/test_page_in_browser.py opens it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pandas as pd
import plotly.graph_objects
import pytest
from bench_reports.html import figure, page, script_json
from helpers import example

from bench_core.leaderboard.assembly import boards


@pytest.fixture(scope="module")
def html() -> str:
    return page(example.info(), boards(example.info(), example.frame()), example.frame())


class Elements(HTMLParser):
    """Collects elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += data


@pytest.fixture(scope="module")
def parsed(html: str) -> Elements:
    return Elements(html)


def test_nothing_is_loaded_from_elsewhere(parsed: Elements) -> None:
    assert [e for e in parsed.elements if {"src", "href", "srcset", "data"} & set(e[1])] == []
    (policy,) = [a for tag, a in parsed.elements if a.get("http-equiv")]
    assert str(policy["content"]).startswith("default-src 'none';")


def test_names_and_errors_nobody_vouches_for_are_text(html: str, parsed: Elements) -> None:
    assert example.HOSTILE not in html
    assert example.HOSTILE in parsed.text
    assert "alert('boo')" in parsed.text
    assert html.count("<script") - html.count("<script>") == 1  # the JSON alone has a type


def test_a_hostile_name_on_a_curve_is_escaped_for_plotly_and_for_the_script() -> None:
    info = example.info(datasets=(example.use("d"),))
    made = example.rows("d", "<b>x</b></script>", {}, [({"t": 1}, 0.8, 9.0)])
    (board,) = boards(info, pd.DataFrame(made))
    drawn = figure(board, "chart0", [r.learner for r in board.rows])
    assert drawn["traces"][0]["name"] == "&lt;b&gt;x&lt;/b&gt;&lt;/script&gt;"
    assert "<" not in script_json([drawn, "</script>"])
    assert json.loads(script_json(["</script>\u2028"])) == ["</script>\u2028"]


def test_plotly_accepts_every_trace() -> None:
    for board in boards(example.info(), example.frame()):
        drawn = figure(board, "chart0", [row.learner for row in board.rows])
        for trace in drawn["traces"]:
            plotly.graph_objects.Scatter(
                x=trace["x"],
                y=trace["y"],
                text=trace["text"],
                line={"dash": trace["dash"]},
                marker={"symbol": trace["symbol"]},
            )


def test_a_learner_looks_the_same_on_all_data_sets(html: str) -> None:
    (text,) = re.findall(r'<script type="application/json" id="figures">(.*?)</script>', html)
    looks: dict[str, set[tuple[object, ...]]] = {}
    for drawn in json.loads(text):
        for trace in drawn["traces"]:
            look = (trace["colour"], trace["dash"], trace["symbol"])
            looks.setdefault(trace["name"], set()).add(look)
    assert {name: len(own) for name, own in looks.items()} == {"miser": 1, "gbrt": 1, "cegb": 1}
    assert len(set.union(*looks.values())) == 3


def test_no_two_of_forty_learners_share_colour_and_symbol() -> None:
    info = example.info(datasets=(example.use("d"),))
    made = [r for k in range(40) for r in example.rows("d", f"l{k}", {}, [({"t": 1}, 0.8, 9.0)])]
    (board,) = boards(info, pd.DataFrame(made))
    drawn = figure(board, "chart0", sorted(r.learner for r in board.rows))
    assert len({(trace["colour"], trace["symbol"]) for trace in drawn["traces"]}) == 40


def test_stand_ins_and_samples_are_marked_on_board_and_chart(html: str, parsed: Elements) -> None:
    assert "yahoo is not here: these results are on the generator yahoo-sim" in parsed.text
    assert '"watermark":"stand-in data"' in html
    assert html.count('"watermark":""') == 1
    assert ">sample</span>" in html


def test_how_it_was_run_tells_request_seeds_machine_and_versions(parsed: Elements) -> None:
    for fact in ("suite=yahoo", "0, 1, 2", "two cores", "miser 1", "budget-bench", "path"):
        assert fact in parsed.text


def test_headings_and_tables_are_marked_up_for_screen_readers(parsed: Elements) -> None:
    heads = [a for tag, a in parsed.elements if tag == "th"]
    assert all("scope" in a for a in heads)
    regions = [a for tag, a in parsed.elements if a.get("role") == "region"]
    assert all(a.get("aria-label") and a.get("tabindex") == "0" for a in regions)
    charts = [a for tag, a in parsed.elements if a.get("role") == "img"]
    assert len(charts) == 2
    assert all(a.get("aria-label") for a in charts)


def relative_luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(relative_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out_from_the_ground(html: str, theme: str) -> None:
    block = r":root \{(.*?)\}" if theme == "light" else r'data-theme="dark"\] \{(.*?)\}'
    (css,) = re.findall(block, html, flags=re.S)[:1]
    tokens = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", css))
    for name in ("ink", "faint", "bad", "good"):
        assert contrast(tokens[name], tokens["ground"]) >= 4.5, name
    for i in range(8):
        assert contrast(tokens[f"c{i}"], tokens["ground"]) >= 3, i
    assert contrast(tokens["warn-ink"], tokens["warn-ground"]) >= 4.5


def test_baselines_are_marked_and_drawn_apart() -> None:
    info = example.info(baselines=("cegb",))
    made = boards(info, example.frame())
    elements = Elements(page(info, made, example.frame())).elements
    assert [a for tag, a in elements if tag == "tr" and a.get("class") == "baseline"] != []
    board = made[0]
    drawn = figure(board, "chart0", [row.learner for row in board.rows])
    assert [t["name"] for t in drawn["traces"] if t["baseline"]] == ["cegb"]
