"""The page as text; tests/reports/test_page_in_browser.py opens it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bench_reports import svg, views
from bench_reports.html import content, linked, packed, page, policy_hash, public, render
from bench_reports.payload import Packed, gathered, packed_rows
from bench_reports.pictures import Groups, Step, followed, purchases_value
from bench_reports.rows import legend, overview, saving_sentences
from bench_reports.views import Curve, View, places, shares
from helpers import example, made_board, page_run

from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.ranks import over_datasets
from bench_core.planning.invocation import command
from bench_core.protocols import Section
from bench_core.results.operating_points import Criterion


@pytest.fixture(scope="module")
def html() -> str:
    return page(example.info(), boards(example.info(), example.frame()), example.frame())


@pytest.fixture(scope="module")
def sure() -> str:
    """A page whose run stored values, so that it knows how sure it is."""
    return page_run.page()


def text_of(html: str, name: str) -> str:
    (text,) = re.findall(rf'id="{name}">(.*?)</script>', html)
    return gzip.decompress(base64.b85decode(text.replace(",", "<"))).decode()


def rows_of(text: str) -> list[list[int]]:
    """As ``rowsOf`` in data.js: lengths, first numbers, and what each adds."""
    characters = iter(map(ord, text))
    rows = []
    for code in characters:
        places = []
        for _ in range(code - 35):
            place = next(characters)
            high = (place - 0xF000) * 2**15 + next(characters) if place >= 0xF000 else place
            places.append(high - 35)
        rows.append(np.cumsum([-(p + 1) // 2 if p % 2 else p // 2 for p in places]).tolist())
    return rows


def unpacked(html: str) -> Any:
    """The data with its texts where they belong, all but settings and rows of tables as numbers."""
    whole = json.loads(text_of(html, "data"))

    def filled(value: Any) -> Any:
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            if one == "" and key in whole["texts"]:
                text = whole["texts"][key].pop(0)
                value[key] = text if key in ("s", "rows") else rows_of(text)
            elif isinstance(one, dict | list):
                filled(one)
        return value

    data = filled(whole["data"])
    for view in [view for one in data["sets"] for view in one["views"]]:
        columns = view["columns"]
        columns["l"] = [place for (place,) in columns["l"]]
        if "s" in columns:
            columns["s"] = [row.split("\t") for row in columns["s"].split("\n")]
    return data


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
    loads = [e for e in parsed.elements if {"src", "srcset", "data", "href"} & set(e[1])]
    loads = [e for e in loads if e[0] != "a"]  # a link loads nothing by itself
    assert [a["rel"] for _, a in loads] == ["icon"]
    assert str(loads[0][1]["href"]).startswith("data:image/svg+xml,")
    (policy,) = [a for tag, a in parsed.elements if a.get("http-equiv")]
    assert str(policy["content"]).startswith("default-src 'none';")
    assert "unsafe" not in str(policy["content"])


def test_the_policy_allows_the_one_script_and_the_one_style_there_are(html: str) -> None:
    (policy,) = re.findall(r'content="(default-src[^"]*)"', html)
    (style,) = re.findall(r"<style>(.*?)</style>", html, flags=re.S)
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.S)
    policy = policy.replace("&#39;", "'")
    assert f"style-src '{policy_hash(style)}'" in policy
    code = text_of(html, "code")
    assert f"script-src '{policy_hash(script)}' '{policy_hash(code)}'; " in policy
    assert not re.search(r"<[^>]+ (style|on[a-z]+)=", re.sub(r"(?s)<script>.*?</script>", "", html))


def test_names_and_errors_nobody_vouches_for_are_text(html: str, parsed: Elements) -> None:
    assert example.HOSTILE not in html
    assert example.HOSTILE in parsed.text
    assert "alert('boo')" in parsed.text
    assert html.count("<script") - html.count("<script>") == 2  # data and code have a type


def test_a_hostile_name_on_a_curve_is_text_in_chart_and_table() -> None:
    name = "<b>x</b></script>\"'"
    info = example.info(datasets=(example.use("d"),))
    made = pd.DataFrame(example.rows("d", name, {}, [({"t": 1}, 0.8, 9.0)]))
    html = page(info, boards(info, made), made)
    assert "<b>x" not in html
    assert unpacked(html)["learners"] == [[name, 0]]
    assert name in Elements(html).text


def test_the_same_run_gives_the_same_bytes(sure: str) -> None:
    assert page_run.page() == sure
    assert packed("a") == packed("a")


def test_36_learners_on_8_data_sets_take_at_most_300_kb_and_the_best_are_seen_without_scripts() -> (
    None
):
    html = made_board.page(36, 8)
    assert len(html.encode()) <= 300_000
    assert html.count("The best 8; all 36 are shown with JavaScript.") == 8
    shown = re.findall(r'<table class="board.*?</table>', html, flags=re.S)
    assert [table.count("<tr data-l=") for table in shown] == [8] * 8
    left = [one["rows"] for one in unpacked(html)["sets"]]
    assert [rows.count("<tr data-l=") for rows in left] == [28] * 8


def test_rows_of_any_whole_numbers_are_one_text_and_what_is_too_large_is_cut() -> None:
    rows = [[0, -1, 40_000], [], [2**24, -(2**24), 7], [35, 92, 34]]
    assert rows_of(packed_rows(rows)) == rows
    assert rows_of(packed_rows([[-(2**40)]])) == [[1 - 2**26]]
    assert rows_of(packed_rows([[2**40]])) == [[2**26 - 1]]


def test_texts_of_a_kind_stand_together_and_can_be_put_back() -> None:
    texts: dict[str, list[str]] = {}
    value = {"a": [{"y": Packed("one")}, {"y": Packed("two"), "n": ""}], "z": {"1": Packed("")}}
    assert gathered(value, texts) == {"a": [{"y": ""}, {"y": "", "n": ""}], "z": {"1": ""}}
    assert texts == {"y": ["one", "two"], "1": [""]}


def test_curves_have_the_values_of_the_board(html: str) -> None:
    data = unpacked(html)
    names = [name for name, _ in data["learners"]]
    view = data["sets"][0]["views"][0]
    assert (view["metric"], view["kind"], view["higher"]) == ("ndcg@5", "mean", 1)
    columns = view["columns"]
    place = columns["l"].index(names.index("miser"))
    # means over seeds: 0.75 at 1000, 0.795 at 3000, 0.799 at 5000
    assert columns["x"][place] == [1000, 3000, 5000]
    assert columns["y"][place] == [7500, 7950, 7990]
    assert columns["s"][place][0] == "trees=50 with tradeoff=0.1"  # what varied alone


def test_the_slider_has_round_shares_of_the_references_cost(html: str) -> None:
    shares = unpacked(html)["shares"]
    # the least are cegb's one point, 500 of 9000, and miser's first on forest, 2.5 of 54
    assert shares[0] == 0.05
    assert shares[-1] == 1.0
    assert {0.1, 0.2, 0.5} <= set(shares)
    assert len(shares) <= 40


def test_intervals_and_tiers_are_those_of_the_standings(sure: str) -> None:
    from bench_core.leaderboard.standings import standings
    from bench_core.results.budgets import Budget

    run = page_run.run()
    data = unpacked(sure)
    view = data["sets"][0]["views"][0]
    share = data["shares"][5]
    (wanted,) = standings(run.info, run, "a", run.frame, [Budget(share * view["whole"])])  # type: ignore[arg-type]
    for row in wanted.rows:
        place = view["columns"]["l"].index([n for n, _ in data["learners"]].index(row.learner))
        own = {key: column[place] for key, column in view["columns"].items()}
        assert own["t"][5] == row.tier
        if row.tier:
            assert (own["r"][5], own["R"][5]) == row.ranks
            reach = (own["lo"][5] + own["hi"][5]) / 1e4
            assert reach == pytest.approx(row.interval.high - row.interval.low, abs=2e-4)


def test_pairs_count_where_one_is_better_and_by_how_much_in_thirds(sure: str) -> None:
    data = unpacked(sure)
    pairs = data["sets"][0]["pairs"]
    assert pairs["units"] == "queries"
    names = [data["learners"][k][0] for k in pairs["learners"]]
    assert set(names) == {"gbrt", "miser", "constant"}
    assert [len(row) for row in pairs["won"]] == [2, 1, 0]
    assert pairs["first"] == 3
    assert len(pairs["thirds"]) == 3 * len(pairs["kinds"])  # empty by rows, which are equal
    assert {len(row) for row in pairs["thirds"]} <= {0, 6}
    share = data["shares"][5]
    amount = share * data["sets"][0]["views"][0]["whole"]
    run = page_run.run()
    best, within = {}, {}
    for name in names:
        own = {"dataset": "a", "learner": name, "within": None}
        (valid,), (test,) = (run.values("", split=s, **own) for s in ("valid", "test"))  # type: ignore[arg-type]
        quality = valid.metric.mean(axis=1)
        best[name] = test.metric[quality.argmax()]
        affordable = valid.cost.mean(axis=1) <= amount
        within[name] = test.metric[np.where(affordable, quality, -np.inf).argmax()]
    assert not np.array_equal(within[names[0]], best[names[0]])
    for won, lost, of in (
        (pairs["won"][0][0], pairs["lost"][0][0], best),
        (pairs["wonAt"][0][5], pairs["lostAt"][0][5], within),
    ):
        gain = of[names[0]] - of[names[1]]
        assert (won, lost) == (
            round(100 * (gain > 1e-6).mean()),
            round(100 * (gain < -1e-6).mean()),
        )


def test_a_page_without_stored_values_says_that_it_does_not_know_how_sure(parsed: Elements) -> None:
    assert "how sure that is was not measured here" in parsed.text


def test_the_sentence_names_winner_margin_certainty_and_the_cheapest(sure: str) -> None:
    text = Elements(sure).text
    assert "miser has the best mean rank of 3 learners on 2 data sets, 1.00" in text
    assert "Nemenyi's test (95%) does not separate it from any of them." in text
    assert "miser is ahead: accuracy 0.9" in text
    assert "With 95% certainty it is better than all others; gbrt is next, 0.0" in text
    assert re.search(r"The data do not separate it from (gbrt|miser)\. It is better than", text)
    assert re.search(
        r"miser keeps 99% of gbrt's accuracy at the least cost, "
        r"9\.\d\d: 3\d% of what that pays for it \(95%: 2\d% to",  # a point at 10, skills give 26%
        text,
    )


def test_of_several_repeats_the_share_paid_is_that_of_their_mean_saving() -> None:
    (board, *_) = boards(page_run.run().info, page_run.run().frame)
    kept = [replace(r, saving=4.0) if r.learner == "miser" else r for r in board.rows]
    (sentence,) = saving_sentences(replace(board, repeats=3, rows=kept))
    assert sentence.endswith(": 25% of what that pays for it by the mean saving of 3 repeats.")


def test_who_saves_most_is_not_named_twice_for_savings_that_are_as_sure() -> None:
    (board, *_) = boards(page_run.run().info, page_run.run().frame)
    (miser,) = [row for row in board.rows if row.learner == "miser"]
    other = replace(miser, learner="other")  # sorts behind miser
    (sentence,) = saving_sentences(replace(board, rows=[*board.rows, other]))
    assert sentence.startswith("miser keeps 99%")


def test_the_legend_explains_the_columns_there_are_and_no_others(sure: str) -> None:
    text = " ".join(Elements(sure).text.split())
    assert "rank: what the data leave open (95%)" in text
    assert "saving: what gbrt pays for 99% over what the learner pays for it" in text
    assert "to optimum:" not in text
    assert "±: half" not in text  # a column of the terminal's board


def test_the_legend_says_of_how_few_draws_intervals_are() -> None:
    made = page_run.run()
    (board, *_) = boards(made.info, made.frame)
    (view, *_) = views.views(made.info, board, made.frame)
    sure = replace(view, certainty={"miser": {}})
    few, usual = (legend(replace(board, draws=n), sure)[1] for n in (399, 2000))
    assert few.startswith("rank: what the data leave open (95% of 399 draws);")
    assert usual.startswith("rank: what the data leave open (95%);")


def test_the_order_over_data_sets_is_that_of_the_terminal_and_others_are_apart() -> None:
    info, frame = page_run.run().info, page_run.run().frame
    frame = frame[(frame["learner"] != "gbrt") | (frame["dataset"] == "a")]
    made = boards(info, frame)
    names, ranked = over_datasets(made)
    rows = overview(made, ["constant", "gbrt", "miser"], ["constant"])
    shown = [(row.learner, row.mean, row.firsts) for row in rows]
    assert shown == [("miser", "1.00", "2 of 2"), ("constant", "2.00", "0 of 2"),
                     ("gbrt", "-", "on 1 of 2")]  # fmt: skip
    assert {one.learner: f"{one.mean:.2f}" for one in ranked} == {r[0]: r[1] for r in shown[:2]}
    assert rows[-1].lacks
    assert rows[-1].cells[0][0] == "✓"
    assert len(names) == 2


def test_pictures_hold_what_each_group_of_prices_buys(sure: str) -> None:
    found = unpacked(sure)["sets"][0]["pictures"]
    assert found["groups"] == ["cost 1.00 (2 sensors)", "cost 4.00 (1 sensor)"]
    steps = found["of"]["1"]  # miser buys the first sensors for (1 + k) halves and quarters
    assert found["trees"][steps["t"][0][0]] == {"p": [-1, 0], "n": [1, 3], "c": [1, 6]}
    assert steps["r"] == [[100, 25]] * 4
    assert found["names"] == ["f1", "f2", "f3"]
    assert (found["price"], found["group"]) == ([1, 1, 4], [[0, 0, 1]])
    # f1, f2 and f3 along the budgets: at last f1 is bought for every row
    assert steps["b"] == [[50, 100, 100, 100], [25, 50, 75, 100], [10, 20, 30, 40]]
    assert "r" not in found["of"]["2"]  # the constant has no stages


def test_a_share_of_rows_is_never_or_every_row_only_if_it_is() -> None:
    steps = [Step(0, np.array([0.0, 1e-5, 0.99, 0.999, 1.0]))]
    assert rows_of(purchases_value(steps, {})["b"]) == [[0], [1], [99], [99], [100]]


def test_of_many_learners_the_best_and_who_is_ahead_somewhere_are_followed_along_budgets() -> None:
    budget, none = np.array([1.0, 10.0]), np.full(2, np.nan)
    skill = {f"l{k}": np.array([0.1, 0.9 - k / 100]) for k in range(9)} | {"early": [0.5, 0.6]}
    curves = [Curve(name, budget, np.array(q), budget, none, none, ()) for name, q in skill.items()]
    view = View(Criterion("accuracy", True), "mean", 10.0, curves)
    assert followed(view, "l8", [0.1, 1.0]) == {*(f"l{k}" for k in range(6)), "l8", "early"}


def test_many_prices_are_put_into_five_groups_of_about_as_many_sensors() -> None:
    price = np.array([0.0] * 4 + list(range(1, 17)))
    groups = Groups.by(price)
    assert groups.titles[0] == "cost 0.00 (4 sensors)"
    assert groups.titles[-1] == "cost 13.00 to 16.00 (4 sensors)"
    assert set(groups.of.tolist()) == set(range(5))


def test_the_slider_stands_at_every_cap_that_was_measured() -> None:
    quality = np.array([0.5, 0.6, 0.7])
    caps = np.array([1.1, 2.3, 40.7])
    none = np.full(3, np.nan)
    curve = Curve("a", caps, quality, caps, none, none, ())
    mean = View(Criterion("accuracy", True), "mean", 7.3, [curve])
    capped = View(Criterion("accuracy", True), "cap", 7.3, [curve])
    grid = places([mean], [capped])
    at = [int(np.searchsorted([share * 7.3 for share in grid], cap)) for cap in caps]
    assert len(set(at)) == 3
    assert [curve.held(grid[place] * 7.3) for place in at] == [0, 1, 2]
    assert {*shares([mean])} <= {*grid}


def test_thinned_keeps_the_ends_and_one_budget_a_place() -> None:
    budgets = np.array([0.0, 1.0, 1.0001, 10.0, 99.999, 100.0])
    assert views.thinned(budgets, 160).tolist() == [0.0, 1.0001, 10.0, 99.999, 100.0]
    assert views.thinned(np.array([5.0]), 160).tolist() == [5.0]


def test_a_learner_looks_the_same_on_all_data_sets(html: str) -> None:
    looks: dict[str, set[str]] = {}
    for css, text in re.findall(r'<text fill="[^"]*" class="(k\w)"[^>]*>. ([^<]*)</text>', html):
        looks.setdefault(text, set()).add(css)
    assert {name: len(own) for name, own in looks.items()} == {"miser": 1, "gbrt": 1, "cegb": 1}
    assert len(set.union(*looks.values())) == 3


def test_no_two_of_64_learners_share_colour_and_mark() -> None:
    looks = [svg.Look(k, baseline=False) for k in range(64)]
    assert len({svg.Look(k, baseline=True).dash for k in range(3, 7)}) == 4  # all are grey
    assert len({(look.colour, look.mark) for look in looks}) == 64


def test_labels_keep_their_distance_and_their_order() -> None:
    places = svg.spread([50, 52, 51, 200, 399], 14, 10, 400)
    ordered = [places[i] for i in (0, 2, 1, 3, 4)]
    assert all(b - a >= 14 for a, b in pairwise(ordered))
    assert places[3] == 200


def test_ticks_are_round_and_inside() -> None:
    assert svg.ticks(0.48, 0.73) == [0.5, 0.55, 0.6, 0.65, 0.7]
    assert svg.log_ticks(30, 3000) == [50, 100, 200, 500, 1000, 2000]


def test_steps_go_across_before_they_go_down_or_up() -> None:
    info = example.info(datasets=(example.use("d"),))
    points = [({"t": 1}, 0.7, 1.0), ({"t": 2}, 0.8, 10.0), ({"t": 3}, 0.9, 100.0)]
    made = pd.DataFrame(example.rows("d", "one", {}, points))
    html = page(info, boards(info, made), made)
    (line,) = re.findall(r'stroke="#0072b2" class="k0" d="(M[^"]*H\d+l[^"]*)"', html)
    assert re.fullmatch(r"M\d+ \d+(h\d+v-\d+){2}H\d+l10 -?\d+", line)


def test_stand_ins_and_samples_are_marked(html: str, parsed: Elements) -> None:
    assert "yahoo is not here: these results are on the generator yahoo-sim" in parsed.text
    assert [s["standIn"] for s in unpacked(html)["sets"]] == [1, 0]
    assert ">sample</span>" in html


def test_how_it_was_run_tells_command_seeds_machine_and_versions(parsed: Elements) -> None:
    assert "bench run --suite yahoo --learners miser,cegb" in parsed.text
    for fact in ("0, 1, 2", "two cores", "miser 1", "budget-bench", "path", "forest ffffffffffff"):
        assert fact in parsed.text
    assert "workers" not in parsed.text


def test_the_command_has_what_decides_results_and_leaves_out_how_it_is_carried_out() -> None:
    asked = {
        "suite": "",
        "data": ["my train.svm"],
        "settings": ["miser.trees=300", "cegb.tradeoff=[0.1, 1]"],
        "seeds": [0, 1],
        "metrics": ["auc"],
        "index_base": 1,
        "audit": "sample",
        "workers": 4,
        "fresh": True,
        "strict_data": True,
        "store": "/somewhere",
    }
    assert command(asked) == (
        "bench run --data 'my train.svm' --set miser.trees=300 --set 'cegb.tradeoff=[0.1, 1]' "
        "--seeds 0,1 --metric auc --strict-data"
    )


def test_addresses_of_facts_are_links_and_nothing_else_is() -> None:
    made = linked("see https://example.org/a?b=1&c=2, not <javascript:x>")
    assert made == (
        'see <a href="https://example.org/a?b=1&amp;c=2" rel="noreferrer">'
        "https://example.org/a?b=1&amp;c=2</a>, not &lt;javascript:x&gt;"
    )


def test_dois_and_arxiv_numbers_are_links() -> None:
    assert 'href="https://doi.org/10.1145/1.2"' in linked("Somebody, doi:10.1145/1.2.")
    assert 'href="https://arxiv.org/abs/1502.07645"' in linked("(arXiv:1502.07645)")


def test_the_page_links_where_the_data_come_from_and_describes_itself() -> None:
    info = example.info(datasets=(example.use("letters"),))
    made = pd.DataFrame(example.rows("letters", "a", {}, [({"t": 1}, 0.8, 9.0)]))
    found = Elements(page(info, boards(info, made), made)).elements
    links = [a["href"] for tag, a in found if tag == "a"]
    assert "https://archive.ics.uci.edu/dataset/59" in links
    told = {a.get("property"): a["content"] for tag, a in found if tag == "meta" and "content" in a}
    assert told["og:title"]
    assert str(told["og:description"]).startswith("Without a limit, a is ahead")


def test_savings_stand_with_their_intervals_and_areas_are_there(sure: str) -> None:
    assert re.search(r"3\.\dx \(\d\.\dx to [34]\.\dx\)", Elements(sure).text)
    data = unpacked(sure)
    miser = [name for name, _ in data["learners"]].index("miser")
    place = [*data["sets"][0]["area"]].index(str(miser))
    low, high, regret, *_ = data["sets"][0]["reach"][place]
    assert min(low, high) > 0
    assert regret == 0  # the best at every cost


def test_rows_that_settle_nothing_are_not_on_the_public_page() -> None:
    rows = (("a", ("says", "holds")), ("b", ("internal", "not run")))
    section = Section("s", "S", "2 claims", columns=("claim", "verdict"), rows=rows, marked=1)
    assert [key for key, _ in public(section).rows] == ["a"]


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


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_colours_stand_out_from_the_ground(html: str, theme: str) -> None:
    block = {
        "light": r":root \{(.*?)\}",
        "dark": r'data-theme="dark"\] \{(.*?)\}',
        "print": r"@media print \{\n:root, :root\[data-theme\] \{(.*?)\}",
    }[theme]
    (css,) = re.findall(block, html, flags=re.S)[:1]
    tokens = dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", css))
    for name in ("ink", "faint", "bad", "good", *(f"c{i}" for i in range(8))):
        assert contrast(tokens[name], tokens["ground"]) >= 4.5, name
    assert contrast(tokens["ink"], tokens["lead"]) >= 4.5
    assert contrast(tokens["faint"], tokens["lead"]) >= 4.5
    assert contrast(tokens["warn-ink"], tokens["warn-ground"]) >= 4.5
    if theme != "dark":
        assert [tokens[f"c{i}"] for i in range(8)] == list(svg.COLOURS)


def test_baselines_are_below_the_others_and_drawn_grey() -> None:
    info = example.info(baselines=("cegb",))
    made = boards(info, example.frame())
    html = page(info, made, example.frame())
    classes = [
        a.get("class") for tag, a in Elements(html).elements if tag == "tr" and "data-l" in a
    ]
    assert ["baseline" in str(c) for c in classes[-5:]] == [False, False, True, False, False]
    learners = re.findall(r'<th scope="row" class="(k\w) g\d">(\w+)', html)[:3]
    assert learners[-1] == ("kb", "cegb")


def test_a_data_set_without_a_result_is_a_section_and_has_no_views() -> None:
    info = example.info(datasets=(example.use("d"),))
    made = pd.DataFrame([example.trial("d", "slow", {}, status="timeout", error="over 600 s")])
    html = page(info, boards(info, made), made)
    assert "No learner finished on this data set." in html
    assert "over 600 s" in html
    assert unpacked(html)["sets"][0]["views"] == []


def test_render_and_content_are_what_page_joins() -> None:
    info, frame = example.info(), example.frame()
    made = boards(info, frame)
    assert render(info, *content(info, made, frame, None), frame) == page(info, made, frame)


def test_control_characters_and_turned_text_are_shown_escaped() -> None:
    odd = "a\x1b[31mb\x07\u202ec"
    frame = example.frame()
    frame["learner"] = frame["learner"].replace("miser", odd)
    info = example.info(title=odd, paper=odd, warnings=(odd,))
    html = page(info, boards(info, frame), frame)
    for wild in "\x1b\x07\u202e":
        assert wild not in html
        assert wild not in json.dumps(unpacked(html)["learners"], ensure_ascii=False)
    assert r"<h1>a\x1b[31mb\x07\u202ec</h1>" in html
    assert "\u202f" in page(example.info(title="a\u202fb"), [], frame)  # a space stays
