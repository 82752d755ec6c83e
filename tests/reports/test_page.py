"""The page as text; tests/reports/test_page_in_browser.py opens it."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from bench_reports.page import (
    headline,
    linked,
    overview,
    overviews,
    page,
    policy_hash,
    public,
    unbroken,
)
from bench_reports.page_data import PLACES, affordable, bought, places, views
from helpers import example, page_run

from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import Pick, Row, Saved
from bench_core.leaderboard.conclusion import over_datasets
from bench_core.leaderboard.selection import Choice
from bench_core.plugins import load_registry
from bench_core.protocols import Section
from bench_core.results.budgets import Budget
from bench_core.splits import Note
from bench_core.statistics.comparison import Interval


@pytest.fixture(scope="module")
def html():
    return page(example.info(), boards(example.info(), example.frame()), example.frame())


@pytest.fixture(scope="module")
def sure():
    """A page whose run stored values, so that it knows how sure it is."""
    return page_run.known_page()


def data_of(html):
    """The data that the page's script reads."""
    (text,) = re.findall(r'id="data">(.*?)</script>', html)
    return json.loads(text)


class Elements(HTMLParser):
    """Collects elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.elements = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text += data


@pytest.fixture(scope="module")
def parsed(html):
    return Elements(html)


def test_nothing_is_loaded_from_elsewhere(parsed):
    loads = [e for e in parsed.elements if {"src", "srcset", "data", "href"} & set(e[1])]
    loads = [e for e in loads if e[0] != "a"]  # a link loads nothing by itself
    assert [a["rel"] for _, a in loads] == ["icon"]
    assert str(loads[0][1]["href"]).startswith("data:image/svg+xml,")
    (policy,) = [a for tag, a in parsed.elements if a.get("http-equiv")]
    assert str(policy["content"]).startswith("default-src 'none';")
    assert "unsafe" not in str(policy["content"])


def test_the_policy_allows_the_one_script_and_the_one_style_there_are(html):
    (policy,) = re.findall(r'content="(default-src[^"]*)"', html)
    (style,) = re.findall(r"<style>(.*?)</style>", html, flags=re.S)
    (script,) = re.findall(r"<script>(.*?)</script>", html, flags=re.S)
    policy = policy.replace("&#39;", "'")
    assert f"style-src '{policy_hash(style)}'" in policy
    assert f"script-src '{policy_hash(script)}'; " in policy
    assert not re.search(r"<[^>]+ (style|on[a-z]+)=", re.sub(r"(?s)<script>.*?</script>", "", html))


def test_names_and_errors_nobody_vouches_for_are_text(html, parsed):
    assert example.HOSTILE not in html
    assert example.HOSTILE in parsed.text
    assert "alert('boo')" in parsed.text
    assert html.count("<script") == 2  # data and code


def test_the_same_run_gives_the_same_bytes(sure):
    assert page_run.page() == sure


@pytest.mark.slow
def test_36_learners_take_a_seventh_of_1_mb_for_each_data_set():
    html = page_run.page(page_run.large_run(36, 3))
    assert len(html.encode()) <= 1_000_000 * 3 / 7
    shown = re.findall(r'<table class="board.*?</table>', html, flags=re.S)
    counts = [table.count("<tr data-l=") for table in shown]
    assert counts == [36, 0] * 3  # the table at a budget needs a script


def test_curves_have_the_values_of_the_board(html):
    data = data_of(html)
    names = [name for name, *_ in data["learners"]]
    view = data["sets"][0]["views"][0]
    assert (view["metric"], view["kind"], view["higher"]) == ("ndcg@5", "mean", 1)
    (curve,) = (c for c in view["curves"] if c["l"] == names.index("miser"))
    # means over seeds: 0.75 at 1000, 0.795 at 3000, 0.799 at 5000
    assert curve["x"] == [1000, 3000, 5000]
    assert curve["y"] == [0.75, 0.795, 0.799]
    assert curve["s"][0] == "trees=50 with tradeoff=0.1"  # what varied alone


def test_the_slider_stands_where_a_curve_rises_and_at_the_answer(html):
    yahoo, forest = data_of(html)["sets"]
    view = yahoo["views"][0]
    rising = {x for curve in view["curves"] for x in curve["x"]}
    assert view["at"] == sorted(rising)[:-1]  # the last place has no limit
    assert view["at"][yahoo["opens"]] == 3000  # miser's first point with .792
    assert (forest["views"][0]["at"], forest["opens"]) == ([2.5, 9], 1)


def test_many_budgets_are_thinned_out_evenly_with_the_first_and_the_last():
    assert places([0.0, 2.0, 1.0, 2.0]) == [1, 2]
    thinned = places(range(1, 1001))
    assert (len(thinned), thinned[0], thinned[-1]) == (PLACES, 1, 1000)
    assert {*np.diff(thinned)} <= {34, 35}
    always = places(range(1, 1001), [2.5, 7.0])
    assert {2.5, 7.0} < {*always}
    assert len(always) == PLACES


def test_the_page_opens_at_the_data_set_of_most_test_rows_where_its_conclusion_says(html):
    assert data_of(html)["open"] == 0  # of equals the first
    rows = {"train": 1000, "valid": 500, "test": 501}
    uses = [example.use("yahoo-sim"), example.use("forest", metrics=("accuracy",), rows=rows)]
    info, frame = example.info(datasets=tuple(uses)), example.frame()
    data = data_of(page(info, boards(info, frame), frame))
    assert data["open"] == 1
    cost = 9.0  # miser's points at 2.5 and 9 have .7 and .895, of which one is above .891
    forest = data["sets"][1]
    assert forest["views"][0]["at"][forest["opens"]] == pytest.approx(cost, rel=3e-5)
    names = [name for name, *_ in data["learners"]]
    # a ring at the model: its budget and its quality on test
    assert forest["keeps"]["at"][str(names.index("miser"))] == [
        pytest.approx(cost, rel=3e-5),
        0.895,
    ]
    assert (forest["keeps"]["y"], forest["keeps"]["saved"]) == (0.891, "6.0x cheaper")


def test_intervals_and_tiers_are_those_of_the_standings(sure):
    run = page_run.run()
    data = data_of(sure)
    view = data["sets"][0]["views"][0]
    budget = Budget(view["at"][3])
    (board,) = boards(run.info, run.frame, run, datasets=("a",), budgets={"a": [budget]})
    (wanted,) = (at for at in board.standings if at.budget == budget)
    for row in wanted.rows:
        place = [name for name, *_ in data["learners"]].index(row.learner)
        (own,) = (curve["sure"][3] for curve in view["curves"] if curve["l"] == place)
        if row.tier:
            assert own[2:] == [row.tier]
            assert own[:2] == pytest.approx(row.interval, abs=1e-4)
        else:
            assert own == 0


def test_the_conclusions_name_the_cheapest_that_keeps_the_quality_and_the_first_over_sets(sure):
    text = Elements(sure).text
    # miser's third point is sure to have .99 of the quality of gbrt's last
    own = {"dataset": "a"}
    miser, gbrt = (
        next(iter(page_run.run().values("", split="test", learner=name, **own))).cost.mean(axis=1)
        for name in ("miser", "gbrt")
    )
    paid = f"miser costs {miser[2]:.2f} units per row"
    whole = f"gbrt at its best costs {gbrt[3]:.2f}"
    # the board without areas has the data of another one, and does not count
    over = "miser is first on 2 of 2 data sets, by mean quality over all budgets"
    assert text.index(over) < text.index(paid) < text.index(whole)


def test_cautions_and_stand_ins_stand_above_the_claim_and_other_notes_below():
    notes = (Note("caution", "fewer than 500 rows"), Note("cut", "split by a hash"))
    uses = [example.use("yahoo-sim", stand_in=True, stand_in_for="yahoo", notes=notes)]
    info, frame = example.info(title="", datasets=tuple(uses)), example.frame()
    frame = frame[frame["dataset"] == "yahoo-sim"]
    html = page(info, boards(info, frame), frame)
    text = Elements(html).text
    order = ("generated data", "Fewer than 500 rows.", " instead of ", "miser costs ", "split by")
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert text.lower().count("fewer than 500 rows") == 1
    assert "<title>yahoo-sim</title>" in html  # a run without a title has the data's
    assert "<h1>yahoo-sim</h1>" in html


def answered(cost, before, low, **more):
    """A board whose learner replaces a cost of the reference."""
    own = Pick(0.9, cost, (("{}", "{}"),), valid_quality=0.9, valid_cost=cost)
    row = Row(learner="a", audit="", reference=False, repeats=1, best=own, reached=1, curve=(),
              cheap=own, saving=before / cost, saved=Saved(Interval(low, 2 * low)))  # fmt: skip
    dear = replace(own, cost=before, valid_cost=before)
    rows = [row, replace(row, learner="b", reference=True, cheap=dear, best=dear, saving=1.0)]
    made = boards(example.info(), example.frame())[0]
    return replace(made, rows=tuple(rows), reference="b", unit="EUR", **more)


def test_the_large_figure_is_the_cost_of_the_answer_and_tells_chance():
    assert headline(answered(2.5, 10.0, 1.5)) == ("2.50 EUR", "10.00", False)
    assert headline(answered(2.5, 10.0, 0.997)) == ("2.50 EUR", "10.00", True)
    assert headline(answered(2.5, 10.0, np.nan)) == ("2.50 EUR", "10.00", False)  # not measured
    assert headline(answered(10.0, 2.5, 0.2)) is None  # the reference is the answer
    counted = answered(2.5, 10.0, 1.5, use=example.use("d", counted=True))
    assert headline(counted) == ("2.50 features", "10.00", False)
    # a total cost next to the lower one of buying everything and nothing
    total = {"higher_is_better": False, "metric": "total_cost"}
    assert headline(answered(0.5, 1.0, 1.5, extremes=(3.0, 1.25), **total)) == (
        *("0.90 EUR", "1.25", False),
    )
    assert headline(answered(0.5, 1.0, 1.5, extremes=(3.0, 0.9), **total)) is None


def test_the_order_over_data_sets_is_that_of_the_terminal_and_others_are_last():
    info, frame = page_run.run().info, page_run.run().frame
    frame = frame[(frame["learner"] != "gbrt") | (frame["dataset"] == "a")]
    made = boards(info, frame)
    ranked = over_datasets(made)[1]
    table = overview(made)
    assert table.datasets == ["a", "b"]  # one of each data
    shown = [(row.learner, row.mean, row.lacks) for row in table.rows]
    assert shown == [("miser", "1.00", False), ("constant", "2.00", False), ("gbrt", "-", True)]
    assert {one.learner: f"{one.mean:.2f}" for one in ranked} == {r[0]: r[1] for r in shown[:2]}
    assert table.rows[-1].cells[1] == ("-", False)


def test_data_sets_of_several_tasks_have_a_table_for_each_task_with_several():
    a, b = (
        board for board in boards(page_run.run().info, page_run.run().frame) if not board.same_as
    )
    assert [*overviews([a, b])] == ["All data sets"]
    assert [*overviews([a])] == []
    (c, d) = (
        replace(x, dataset=n, use=replace(x.use, task="binary")) for x, n in ((a, "c"), (b, "d"))
    )
    tables = overviews([a, c, d])
    assert {title: table.datasets for title, table in tables.items()} == {
        "All data sets": ["a", "c", "d"],
        "Binary data sets": ["c", "d"],
    }


def test_over_data_sets_each_learner_has_the_cost_and_the_loss_of_its_model():
    run = page_run.run()
    made = boards(run.info, run.frame, run)
    table = overview(made)
    of = {row.learner: row for row in table.rows}
    # 500 test rows, of which miser's third point loses 18 on a; on b it is not cheaper than gbrt
    assert of["miser"].cells[0] == ("9.90 (18)", True)
    assert [lead for row in table.rows for _, lead in row.cells[1:]].count(True) == 1
    assert of["gbrt"].cells[1][1]
    assert of["constant"].cells[0][0].endswith(")?")
    assert "?: not sure to keep 99%." in table.caption


def test_the_leader_of_a_place_is_the_one_that_bench_best_names(sure):
    run, data, leaders = page_run.run(), data_of(sure), set()
    choice, (view,) = Choice(run.info, run, run.frame, "b"), data["sets"][1]["views"]
    for place in (0, 1, -1):
        limit = Budget([*view["at"], np.inf][place])
        leaders.add(first := choice.at(limit).found[0].learner)
        assert data["learners"][view["leaders"][place]][0] == first
    assert len(leaders) > 1


def test_purchases_name_sensors_with_their_prices_and_shares_of_rows(sure):
    found = data_of(sure)["sets"][0]
    assert found["sensors"] == [["f1", 1], ["f2", 1], ["f3", 4]]
    steps = found["bought"][0]
    # the points of a learner buy for (1 + k) times 50, 25 and 10% of rows
    assert steps[1] == [[0, 100, 2, 20, 1, 50], 0, 1, 2, 0, 0]
    assert steps[-1] == [[2, 40, 0, 100, 1, 100], 0, 2, 1, 0, 0]


def test_a_share_of_rows_is_never_or_every_row_only_if_it_is():
    shares = np.array([0.0, 1e-5, 0.99, 0.999, 1.0, 0.0])
    price = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    step = bought(shares, price)
    assert step == [[4, 100, 3, 99, 2, 99, 1, 1, 5, 0, 0, 0], 0, 1, 3, 2, 3]


def test_beyond_the_first_sensors_one_bar_is_the_mean_of_the_others():
    first, others, *numbers = bought(np.array([1.0] * 10 + [0.5, 0.0]), np.arange(12.0, 0, -1))
    assert first == [number for k in range(10) for number in (k, 100)]
    assert (others, numbers) == (25, [10, 1, 1, 1])


def test_a_cap_that_only_some_repeats_have_is_no_step_of_a_curve():
    info, made = page_run.capped()
    (view,) = (v for v in views(info, boards(info, made)[0], made) if v.kind == "cap")
    (curve,) = view.curves
    assert (view.places, view.leaders) == ([5.0, 20.0], ["", "gbrt"])
    assert (curve.budget.tolist(), curve.quality.tolist()) == ([20.0], [pytest.approx(0.87)])


def test_a_budget_of_six_digits_pays_for_its_model():
    for cost in (52.2, 9.0, 23.318240495137047, 54.0, 1234567.0):
        assert cost <= affordable(cost) <= cost * (1 + 1e-5)


def test_stand_ins_and_samples_are_marked(html, parsed):
    assert "The files of yahoo were not found; generated data (yahoo-sim)" in parsed.text
    line = "set1.train.txt of yahoo was not found; generated data (yahoo-sim) is used instead"
    info, frame = example.info(warnings=(line, "a second one")), example.frame()
    text = Elements(page(info, boards(info, frame), frame)).text
    assert (text.count("generated data"), text.count("a second one")) == (1, 1)
    assert [s["standIn"] for s in data_of(html)["sets"]] == [1, 0]
    assert ">sample</span>" in html


def test_how_it_was_run_tells_command_seeds_machine_and_versions(parsed):
    assert "bench run --suite yahoo --learners miser,cegb" in parsed.text
    for fact in (
        "0, 1, 2",
        "two cores",
        "miser 1",
        "budget-bench",
        "bought and eval",
        "forest ffffffffffff",
    ):
        assert fact in parsed.text
    assert "workers" not in parsed.text


def test_addresses_are_links_and_nothing_else_is():
    assert 'href="https://doi.org/10.1145/1.2"' in linked("Somebody, doi:10.1145/1.2.")
    assert 'href="https://arxiv.org/abs/1502.07645"' in linked("(arXiv:1502.07645)")
    made = linked("see https://example.org/a?b=1&c=2, not <javascript:x>")
    assert made == (
        'see <a href="https://example.org/a?b=1&amp;c=2" rel="noreferrer">'
        "https://example.org/a?b=1&amp;c=2</a>, not &lt;javascript:x&gt;"
    )


def test_an_option_is_never_broken_and_text_stays_text():
    made = unbroken("<b>: judge by --metric auc (--error-costs) - or")
    assert made == (
        "&lt;b&gt;: judge by <span>--metric</span> auc (<span>--error-costs</span>) - or"
    )


def test_the_page_links_where_the_data_come_from_and_describes_itself():
    info = example.info(datasets=(example.use("letters"),))
    made = pd.DataFrame(example.rows("letters", "a", {}, [({"t": 1}, 0.8, 9.0)]))
    found = Elements(page(info, boards(info, made), made, registry=load_registry())).elements
    links = [a["href"] for tag, a in found if tag == "a"]
    assert "https://archive.ics.uci.edu/dataset/59" in links
    told = {a.get("property"): a["content"] for tag, a in found if tag == "meta" and "content" in a}
    assert told["og:title"]
    assert told["og:description"] == "1 learner on letters"


def test_rows_that_settle_nothing_are_not_on_the_public_page():
    rows = (("a", ("says", "holds")), ("b", ("internal", "not run")))
    section = Section("s", "S", "2 claims", columns=("claim", "verdict"), rows=rows, marked=1)
    assert [key for key, _ in public(section).rows] == ["a"]


def test_baselines_are_below_the_others():
    info = example.info(baselines=("cegb",))
    made = boards(info, example.frame())
    html = page(info, made, example.frame())
    classes = [
        a.get("class") for tag, a in Elements(html).elements if tag == "tr" and "data-l" in a
    ]
    assert ["baseline" in str(c) for c in classes[-5:]] == [False, False, True, False, False]
    (rows,) = re.findall(r'<table class="board.*?</table>', html, flags=re.S)[:1]
    assert re.findall(r'<th scope="row">(\w+)', rows)[-1] == "cegb"


def test_control_characters_and_turned_text_are_shown_escaped():
    odd = "a\x1b[31mb\x07\u202ec"
    frame = example.frame()
    frame["learner"] = frame["learner"].replace("miser", odd)
    info = example.info(title=odd, paper=odd, warnings=(odd,))
    html = page(info, boards(info, frame), frame)
    for wild in "\x1b\x07\u202e":
        assert wild not in html
        assert wild not in json.dumps(data_of(html)["learners"], ensure_ascii=False)
    assert r"<h1>a\x1b[31mb\x07\u202ec</h1>" in html
    assert "\u202f" in page(example.info(title="a\u202fb"), [], frame)  # a space stays
