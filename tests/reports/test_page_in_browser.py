import base64
import json
import math
import re
import struct
from itertools import pairwise

import pandas as pd
import pytest
from bench_reports.page import page
from helpers import browser, example, page_run

from bench_core.leaderboard.assembly import boards
from bench_core.statistics.comparison import Interval
from bench_core.terminal import wording

pytestmark = pytest.mark.skipif(
    browser.executable() is None, reason="no Chromium on the PATH to open the page with"
)

READY = "document.documentElement.dataset.ready === 'yes'"
SLIDER = "document.getElementById('f-budget')"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "board.html"
    path.write_text(page_run.known_page(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def open_tab(file):
    with browser.opened(file, file.parent / "profile") as opened:
        opened.wait(READY)
        folder = str(file.parent)
        opened.call("Page.setDownloadBehavior", behavior="allow", downloadPath=folder)
        yield opened


@pytest.fixture
def opened(open_tab):
    """The page as it opens, whatever another test did to it."""
    open_tab.call("Emulation.clearDeviceMetricsOverride")
    open_tab.js("document.getElementById('f-reset').click()")
    return open_tab


@pytest.fixture
def tab(opened):
    """The page without a limit."""
    slide(opened, int(opened.js(f"{SLIDER}.max")))
    return opened


def click(tab, selector, times=1):
    """A click with the mouse in the middle of an element, where it is once a frame has shown it."""
    tab.js(
        f"window.aim = document.querySelector({json.dumps(selector)}); window.hit = null;"
        " aim.scrollIntoView({block: 'center'});"
        " addEventListener('click', e => { hit = e.target; }, {once: true, capture: true});"
        " new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    box = tab.js(
        "(() => { const b = aim.getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    for count in range(1, times + 1):
        for kind in ("mousePressed", "mouseReleased"):
            tab.call(
                "Input.dispatchMouseEvent",
                type=kind, x=box[0], y=box[1], button="left", clickCount=count,
            )  # fmt: skip
    assert tab.js("aim.contains(hit)"), selector


def press(tab, key):
    codes = {"ArrowLeft": 37, "ArrowRight": 39, "ArrowDown": 40}
    for kind in ("keyDown", "keyUp"):
        tab.call(
            "Input.dispatchKeyEvent", type=kind, key=key, code=key,
            windowsVirtualKeyCode=codes[key],
        )  # fmt: skip


def choose(tab, selector, value):
    found = f"document.querySelector({json.dumps(selector)})"
    tab.js(f"{found}.value = {json.dumps(value)}")
    tab.js(f"{found}.dispatchEvent(new Event('change', {{bubbles: true}}))")


def slide(tab, place):
    tab.js(f"{SLIDER}.value = {place}; {SLIDER}.dispatchEvent(new Event('input'))")


TABLE = "section.set:not(.off) :is(.at-answer, .within):not([hidden]) table"
"""The table that is shown: that of the board, or that at a budget."""


def column(tab, name, table=TABLE):
    """The cells below a heading."""
    found = f"document.querySelector({json.dumps(table)})"
    heads = tab.js(f"[...{found}.tHead.rows[0].cells].map(c => c.textContent.trim())")
    cells = f"[...{found}.tBodies[0].rows].map(r => r.cells[{heads.index(name)}].innerText.trim())"
    return list(tab.js(cells))


def learners(tab):
    """The names in the table, without their marks."""
    return [name.split()[-1] for name in column(tab, "learner")]


def heading(name):
    """A selector of a heading's button, in the table of the board or at a budget."""
    place = ["learner", "cost", "wrong", "accuracy"].index(name) + 1
    return f"{TABLE} thead th:nth-child({place}) button"


def story(tab):
    return str(tab.js("document.querySelector('section.set:not(.off) .story').textContent"))


def test_the_page_asks_for_nothing_but_itself(tab, file):
    outside = [url for url in tab.requests() if not url.startswith(("data:", "blob:"))]
    assert outside == [file.as_uri()]


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_it_opens_where_the_conclusion_says_with_its_saving_in_the_chart(opened, width):
    browser.resize(opened, width)
    opened.wait(
        f"Math.abs(document.querySelector('.chart svg').width.baseVal.value - {width}) < 200"
    )
    assert opened.js("document.documentElement.scrollWidth") <= width
    # on validation miser is sure to keep .99 of gbrt's best at its third point
    assert opened.js("document.getElementById('f-amount').textContent") == "9.90 units (test)"
    assert story(opened) == ""  # the conclusion says it
    assert learners(opened) == ["miser", "gbrt", "constant"]  # as on a terminal
    figure = opened.js("document.querySelector('section.set:not(.off) .headline').textContent")
    assert figure == "9.90 units instead of 29.59: may be chance"  # .97x to 3.1x
    size = "parseFloat(getComputedStyle(document.querySelector('.headline b')).fontSize)"
    assert opened.js(size) >= 32
    sentence = opened.js("document.querySelector('main > .conclusion').textContent")
    assert "learners apart. miser is first on 2 of 2 data sets, by mean quality" in sentence
    own = "document.querySelector('section.set:not(.off)')"
    assert "gbrt at its best costs 29.59" in opened.js(
        f"{own}.querySelector('.conclusion').innerText"
    )
    assert "Sorted by tier of saving" in opened.js(f"{own}.querySelector('caption').textContent")
    words = opened.js(f"{own}.querySelector('.rings').textContent")
    assert words == "miser: " * (width > 390) + "3.0x cheaper? may be chance"
    assert opened.js(f"{own}.querySelector('.rings text').getAttribute('font-weight')") == "400"
    right = f"{own}.querySelector('.rings text').getBoundingClientRect().right"
    assert opened.js(f"{right} <= {own}.querySelector('.lines').getBoundingClientRect().right")
    assert "99% of gbrt" in opened.js(f"{own}.querySelector('.ends').textContent")
    ring = "[...document.querySelectorAll('section.set:not(.off) .rings circle')]"
    places = f"{ring}.map(c => [Number(c.getAttribute('cx')), Number(c.getAttribute('cy'))])"
    (gbrt, _), (miser, height) = sorted(opened.js(places), reverse=True)
    cursor = opened.js("document.querySelector('.cursor').getAttribute('d')")
    assert cursor.startswith(f"M{miser} ")
    line = opened.js("document.querySelector('.rings path').getAttribute('d')")
    assert height < float(line.split()[1].partition("H")[0])  # its test quality is better
    assert opened.js("location.hash") == ""
    assert miser < gbrt


def test_another_data_set_opens_at_its_own_budget(opened):
    place = "Number(document.getElementById('f-budget').value)"
    first = opened.js(place)
    slide(opened, 3)
    opened.wait("location.hash.includes('budget=')")
    choose(opened, "#f-set", "1")
    assert opened.js(place) > first  # only gbrt itself keeps the quality
    assert story(opened) == ""
    assert "budget=" not in opened.js("location.hash")


def test_the_slider_renews_sentence_and_table_and_comes_back(opened):
    slide(opened, 4)
    # points of miser: .6 for a cost of 1, .8 for 3, .99 for 10
    miser = next(iter(page_run.run().values("", split="test", learner="miser", dataset="a")))
    paid, rows = miser.cost[1].mean(), page_run.run().info.datasets[0].rows["test"]
    wrong = round((1 - miser.metric[1].mean()) * rows)
    lost = f"wrong for {wrong} of {rows}"
    assert learners(opened) == ["miser", "gbrt", "constant"]
    assert (column(opened, "cost")[0], column(opened, "wrong")[0]) == (f"{paid:.2f}", str(wrong))
    limit = opened.js("document.getElementById('f-amount').textContent")
    assert re.fullmatch(r"at most [23]\.\d\d units", limit)
    # the budget is on validation
    assert story(opened) == f"A{limit[1:]}: miser, {paid:.2f} on test, {lost}."
    opens = opened.js("JSON.parse($('data').textContent).sets[0].opens")
    slide(opened, opens)
    assert story(opened) == ""
    assert column(opened, "cheaper")[0] == "3.0x"
    assert opened.js("location.hash") == ""


def test_the_board_is_the_table_of_the_page_without_a_script(opened, file):
    written = re.findall(r'<table class="board.*?</table>', file.read_text(encoding="utf-8"), re.S)
    rows = re.findall(r"<tr data-l=.*?</tr>", written[0], re.S)
    cells = [re.findall(r"<t[dh][^>]*>([^<]*)", row) for row in rows]
    names = ("learner", "cost", "cheaper", "cheaper 95%", "wrong", "accuracy", "±")
    shown = [column(opened, name) for name in names]
    shown[0] = learners(opened)
    assert [list(row) for row in zip(*shown, strict=True)] == cells


# at 1 nothing is bought, at 2 the constant is not ahead, at 3 b is better on test than a, the best
# on validation; c is a baseline
MADE = """(() => {
  const curve = (l, y, tiers) => ({ l, x: [1, 2, 3], y, c: [0, 2.1, 2.5], constant: 1,
    sure: tiers.map((tier) => [0, 1, tier]) });
  const view = { at: [1, 2, 3], higher: 1, kind: "mean", metric: "auc", leaders: [0, 0, 0, -1],
    curves: [curve(0, [0.5, 0.8, 0.8], [1, 1, 2]), curve(1, [0.5, 0.7, 0.9], [1, 1, 1]),
      curve(2, [0.5, 0.6, 0.6], [1, 1, 2])] };
  const set = { views: [view], opens: 3, unit: "", tested: 0 };
  const data = { learners: [["a", 0], ["b", 0], ["c", 1]] };
  return [0, 1, 2, 3].map((place) => story(data, set, view, place));
})()"""


def test_a_constant_is_credited_to_no_learner_and_better_ones_on_test_are_named(tab):
    nothing, level, worse, told = tab.js(MADE)
    assert nothing == "At most 1.00: nothing is bought; always the same answer, auc 0.5000."
    assert (
        level
        == "At most 2.00: a, 2.10 on test, auc 0.8000; b and c (a baseline) are about as good."
    )
    worse_than = "c (a baseline) is about as good; b is better on test."
    assert worse == f"At most 3.00: a, 2.50, auc 0.8000; {worse_than}"
    assert told == ""


def test_the_slider_moves_by_keyboard_and_says_what_it_means(tab):
    tab.js(f"{SLIDER}.focus()")
    press(tab, "ArrowLeft")
    text = tab.js(f"{SLIDER}.getAttribute('aria-valuetext')")
    assert text.startswith("at most ")
    assert tab.js("document.getElementById('f-amount').textContent") == text
    press(tab, "ArrowRight")
    assert tab.js(f"{SLIDER}.getAttribute('aria-valuetext')") == "no limit"


def test_another_data_set_is_chosen_from_a_list(tab):
    choose(tab, "#f-set", "1")
    assert tab.js("document.querySelector('section.set:not(.off) h2').innerText").startswith("b")
    assert "data=b" in tab.js("location.hash")
    click(tab, "[data-go='0']")
    assert tab.js("document.querySelector('section.set:not(.off) h2').innerText").startswith("a")


def test_another_accounting_renews_all_that_is_shown(tab):
    shown = "!document.getElementById('f-accounting').closest('label').hidden"
    assert not tab.js(shown)  # data set a has one
    choose(tab, "#f-set", "1")
    assert tab.js(shown)
    slide(tab, 4)
    assert ": miser, " in story(tab)
    assert "gbrt is about as good" in story(tab)
    choose(tab, "#f-accounting", "2")
    assert "data=b%28accounting%3Dmodel%29" in tab.js("location.hash")
    slide(tab, 4)
    assert ": gbrt, " in story(tab)
    assert "about as good" not in story(tab)
    assert learners(tab) == ["gbrt", "miser", "constant"]
    choose(tab, "#f-set", "0")
    assert tab.js("document.querySelector('section.set:not(.off) h2').innerText").startswith("a")


def test_the_address_keeps_the_state_and_gives_it_back(tab):
    choose(tab, "#f-set", "1")
    slide(tab, 2)
    click(tab, "#f-scale")
    click(tab, "section.set:not(.off) [data-curve='2']")
    tab.wait("location.hash.includes('budget=')")
    kept, told = tab.js("location.hash"), story(tab)
    tab.js("document.getElementById('f-reset').click()")
    assert tab.js("location.hash") == ""
    assert story(tab) != told
    tab.js(f"location.hash = {json.dumps(kept)}")
    tab.wait("document.getElementById('f-scale').getAttribute('aria-pressed') === 'true'")
    assert story(tab) == told
    assert (
        tab.js("document.querySelectorAll('section.set:not(.off) .chart .ends text').length") == 3
    )
    assert tab.js("location.hash") == kept


def test_a_heading_sorts_best_first_then_back_then_as_given_with_baselines_below(tab):
    given, costs = learners(tab), heading("cost")
    sort = f"document.querySelector('{costs}').closest('th').getAttribute('aria-sort')"
    click(tab, costs)
    assert learners(tab)[2] == "constant"  # costs least, and is a baseline
    low = [float(v) for v in column(tab, "cost")[:2]]
    assert low == sorted(low)
    assert tab.js(sort) == "ascending"
    click(tab, costs)
    assert learners(tab)[2] == "constant"
    assert [float(v) for v in column(tab, "cost")[:2]] == low[::-1]
    slide(tab, 5)  # another table of the same columns
    assert tab.js(sort) == "descending"
    slide(tab, int(tab.js(f"{SLIDER}.max")))
    click(tab, costs)
    assert learners(tab) == given
    assert tab.js(sort) is None
    click(tab, heading("accuracy"))
    best = [float(v) for v in column(tab, "accuracy")[:2]]
    assert best == sorted(best, reverse=True)
    click(tab, heading("accuracy"))
    click(tab, heading("accuracy"))


def test_a_click_on_a_legend_entry_hides_a_curve_and_a_double_click_isolates_it(tab):
    entry = "section.set:not(.off) [data-curve='0']"
    labels = "document.querySelectorAll('section.set:not(.off) .chart .ends text').length"
    click(tab, entry)
    assert tab.js(labels) == 3  # one is of the dotted line
    assert tab.js(f"document.querySelector(\"{entry}\").getAttribute('aria-pressed')") == "false"
    tab.js("document.getElementById('f-reset').click()")
    tab.js("new Promise(done => setTimeout(done, 450))")
    click(tab, entry, times=2)
    assert tab.js(labels) == 2
    tab.js("new Promise(done => setTimeout(done, 450))")
    click(tab, entry, times=2)
    assert tab.js(labels) == 4


def test_a_point_shows_what_varied_in_a_panel_by_pointer_and_by_arrow_keys(tab):
    panel = "document.querySelector('section.set:not(.off) .panel').innerText"
    click(tab, "section.set:not(.off) .chart")
    tab.js("document.querySelector('section.set:not(.off) .chart').focus()")
    tab.js("document.getElementById('f-scale').click(); document.getElementById('f-scale').click()")
    tab.js("document.querySelector('section.set:not(.off) .chart').focus()")
    press(tab, "ArrowDown")
    first = tab.js(panel)
    assert "setting: trees=" in first
    press(tab, "ArrowRight")
    assert tab.js(panel) != first


def test_what_is_bought_follows_learner_and_budget(tab):
    place = "document.querySelector('section.set:not(.off) .bought')"
    picture = f"{place}.querySelector('svg').getAttribute('aria-label')"
    bars = "f3, 4.00: 40% of rows, f1, 1.00: 100% of rows, f2, 1.00: 100% of rows"
    assert tab.js(picture) == bars  # of miser, without a limit
    slide(tab, 3)
    # within 3.08 gbrt has its second point; points buy for (1 + k) times 50, 25 and 10% of rows
    choose(tab, "section.set:not(.off) .bought select", "1")
    assert tab.js(picture).startswith("f1, 1.00: 100% of rows, f3, 4.00: 20% of rows, f2")
    text = tab.js(f"{place}.innerText")
    assert "Of 3, bought for every row: 1; for some rows: 2; never: 0." in text
    equal = "{ sensors: [['f1', 2], ['f2', 2]], unit: 'EUR' }"
    made = tab.js(f"boughtHtml({equal}, [[0, 40], 3, 0, 1, 1, 2], 300)")
    assert 'aria-label="f1: 40% of rows, 1 other: 3% of rows"' in made  # their price says nothing
    assert made.endswith("<p>Of 2, bought for every row: 0; for some rows: 1; never: 1.</p>")


def saved(tab, file, kind, name):
    (file.parent / name).unlink(missing_ok=True)
    tab.js("document.documentElement.dataset.saved = ''")
    click(tab, f"[data-save={kind}]")
    tab.wait(f"document.documentElement.dataset.saved === {json.dumps(name)}")
    for _ in range(200):
        if (file.parent / name).exists() and (file.parent / name).stat().st_size:
            return (file.parent / name).read_bytes()
        tab.js("new Promise(done => setTimeout(done, 50))")
    raise AssertionError(f"no file {name}")


def test_files_are_named_after_data_set_and_metric_and_hold_title_and_legend(tab, file):
    stem = "20260102-1-a-accuracy-mean"
    svg = saved(tab, file, "svg", f"{stem}.svg").decode()
    for part in ("a: accuracy against cost", "gbrt", "miser", "constant", "mean cost per row"):
        assert part in svg
    assert "var(" not in svg
    png = saved(tab, file, "png", f"{stem}.png")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", png[16:24])
    assert width == 1800
    assert height > 600
    csv = saved(tab, file, "csv", f"{stem}.csv").decode()
    head, *rows = csv.splitlines()
    assert head == "learner,cost,wrong,accuracy,95% interval"  # as shown
    assert rows[0].split(",")[0] == "miser"
    assert rows[-1].split(",")[0] == "constant"
    assert len(rows) == 3


def test_a_cell_that_a_spreadsheet_would_compute_is_text_in_the_file(tab):
    made = "(() => { const t = document.createElement('table'); t.insertRow().insertCell()"
    for text, cell in (("=1+1", "'=1+1"), ("-0.5", "-0.5"), ('a,"b', '"a,""b"'), ("-", "-")):
        assert tab.js(f"{made}.textContent = {json.dumps(text)}; return csv(t); }})()") == (
            f"{cell}\r\n"
        )


CUT = """(() => {
  const curve = (l, x, y) => ({ l, x, y });
  const learners = [["a", 0, 0, 0, 0], ["b", 0, 1, 0, 1]];
  const data = { learners, colours: ["#000", "#111"], dashes: [""], marks: "ab" };
  const curves = [curve(0, [1, 5], [0.1, 0.9]), curve(1, [1, 2, 5, 9], [0.9, 0.91, 0.92, 0.95])];
  const view = { at: [1, 5, 9], higher: 1, kind: "mean", metric: "auc", leaders: [], curves };
  const at = { 1: [9, 0.95] };
  const keeps = { name: "99% of b", y: 0.94, at, from: 1, to: [1, 9], saved: "" };
  const box = document.createElement("div");
  const made = chart(data, { name: "d", views: [view], keeps }, view, { width: 800 });
  box.innerHTML = made.svg;
  document.querySelector("main").prepend(box);
  box.scrollIntoView();
  const { left, top } = box.querySelector("svg").getBoundingClientRect();
  const hit = (budget, y) => [-1, 0, 1].some((off) => document.elementFromPoint(
    left + made.ax.across(budget), top + y + off)?.closest(".lines") ?? false);
  const low = hit(3, made.ax.bottom);
  const ends = [...box.querySelectorAll(".ends text")].map((t) => [t.textContent.trim(),
    t.getBoundingClientRect().x - left > made.ax.end, t.getBoundingClientRect().y]);
  const found = [low, hit(3, made.ax.down(0.91)), ends];
  box.remove();
  return found;
})()"""


def test_curves_are_cut_below_the_axis_and_no_label_stands_on_one(tab):
    below, drawn, ends = tab.js(CUT)
    assert drawn  # b at .91
    assert not below  # a at .1 up to 5
    assert [name for name, *_ in ends] == ["a a", "b b", "99% of b"]
    assert all(right_of_all for _, right_of_all, _ in ends)
    heights = sorted(y for *_, y in ends)
    assert min(b - a for a, b in pairwise(heights)) > 10


@pytest.mark.parametrize(
    ("low", "high"), [(8.8, 60), (21, 64), (0.3, 32), (0.01, 100), (45, 60), (12.6, 13.1), (1, 9)]
)
def test_an_axis_has_four_to_ten_ticks(low, high, tab):
    ticks = tab.js(f"logTicks({low}, {high})")
    assert 4 <= len(ticks) <= 10
    assert all(low <= tick <= high for tick in ticks)


def test_a_view_stands_at_its_last_place_within_the_budget_chosen(tab):
    places = "[10, 20, 35, 100, Infinity].map((budget) => placeAt(view, budget))"
    mean = "{ kind: 'mean', at: [20, 35] }"
    assert tab.js(f"(() => {{ const view = {mean}; return {places}; }})()") == [-1, 0, 1, 1, 2]
    # a measured cap is the last place of caps
    caps = mean.replace("mean", "cap")
    assert tab.js(f"(() => {{ const view = {caps}; return {places}; }})()") == [-1, 0, 1, 1, 1]


def test_a_band_under_caps_is_a_step_from_each_measured_cap_to_the_next(tab):
    view = "{ kind: 'cap', at: [10, 15, 20] }"
    ax = "{ across: (x) => x, down: (y) => y, end: 120, margin: { top: 0 }, bottom: 99 }"
    curve = "{ l: 0, sure: [[1, 2], 0, [5, 6]] }"
    drawn = tab.js(f"band({ax}, {view}, {curve}, {{}})")
    assert ' points="10,2 20,2 20,6 120,6 120,5 20,5 20,1 10,1"' in drawn


def test_the_printed_page_is_light_and_has_legend_labels_and_all_data_sets(tab):
    tab.js("document.documentElement.dataset.theme = 'dark'")
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.js("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    legend = "[...document.querySelectorAll('section.set:not(.off) .legend button')]"
    assert tab.js(f"{legend}.map(b => b.innerText.split(' ').pop())") == learners(tab)
    assert tab.js(f"{legend}.every(b => b.getBoundingClientRect().height > 0)")
    shown = "[...document.querySelectorAll('section.set')].every(s => s.offsetHeight > 0)"
    assert tab.js(shown)
    assert tab.js("getComputedStyle(document.querySelector('.controls')).display") == "none"
    filled = "[...document.querySelectorAll('section.set .answer')].map(a => a.innerText.length)"
    tab.wait(f"{filled}.every((n) => n > 50)")  # of every data set, also those never visited
    assert len(tab.js(filled)) == 3
    pdf = base64.b64decode(tab.call("Page.printToPDF")["data"])
    assert pdf[:5] == b"%PDF-"
    tab.call("Emulation.setEmulatedMedia", media="")
    tab.js("delete document.documentElement.dataset.theme")


def test_a_data_set_without_results_shows_its_failures_and_is_no_choice(tmp_path):
    failed = pd.DataFrame([example.trial("d", "slow", {}, status="timeout", error="over 600 s")])
    both = pd.concat([example.frame(), failed], ignore_index=True)
    for frame, choices in ((failed, 0), (both, 2)):
        (tmp_path / "board.html").write_text(
            page(example.info(), boards(example.info(), frame), frame), encoding="utf-8"
        )
        with browser.opened(tmp_path / "board.html", tmp_path / "profile") as tab:
            tab.wait(READY)
            assert tab.js("document.getElementById('f-set').options.length") == choices
            assert "over 600 s" in tab.js("document.body.innerText")
            assert tab.complaints() == []


@pytest.mark.parametrize("told", [True, False])
def test_a_run_with_caps_opens_at_its_largest_cap(told, tmp_path):
    info, frame = page_run.capped(**({"caps": (5.0, 20.0)} if told else {}))
    html = page(info, boards(info, frame), frame)
    (tmp_path / "board.html").write_text(html, encoding="utf-8")
    with browser.opened(tmp_path / "board.html", tmp_path / "profile") as tab:
        tab.wait(READY)
        assert tab.js("document.getElementById('f-kind').value") == "cap"
        # once, by the conclusion or below it
        assert tab.js("document.body.innerText").count("With no row above 20") == 1
        own = "With no row above 20.00 units: gbrt, 20.00, wrong for 65.0 of 500."  # a mean
        assert story(tab) == ("" if told else own)
        assert column(tab, "accuracy") == ["0.8700"]
        assert tab.js("location.hash") == ""
        choose(tab, "#f-kind", "mean")
        assert story(tab) == ""
        assert tab.js("location.hash") == "#kind=mean"
        assert tab.complaints() == []


NUMBERS = (
    *(0, 1e-7, 2.07e-5, 0.00099, 0.00123, 0.00423, 0.01, 0.0249, 0.5, 0.79904, 1, 9.9999),
    *(10.04, 23.374, 99.994, 100, 123.456, 1234.4, 12345.6, 1.5e20, -0.5, -0.00012, -1234.5678),
)


@pytest.mark.parametrize("words", ["cost", "quality"])
def test_the_script_writes_numbers_as_tables_do(words, tab):
    text = getattr(wording, words)
    numbers = [*NUMBERS, *(float(text(value)) for value in NUMBERS)]  # and as the page has them
    assert tab.js(f"{json.dumps(numbers)}.map({words})") == [text(value) for value in numbers]
    assert tab.js(f"{words}(null)") == text(math.nan)


def test_the_script_writes_intervals_as_tables_do(tab):
    pairs = [*pairwise(NUMBERS)]
    shown = tab.js(f"{json.dumps(pairs)}.map((pair) => interval(...pair))")
    assert shown == [wording.interval(Interval(*pair), wording.quality) for pair in pairs]
    assert tab.js("interval(null, null)") == "-"


def test_no_script_complains(tab):
    assert tab.complaints() == []


def test_without_scripts_tables_are_there_and_nothing_that_needs_one(file, tmp_path):
    with browser.opened(file, tmp_path / "profile", script=False) as tab:
        text = tab.js("document.body.innerText")
        rows = tab.js(
            "[...document.querySelectorAll('table.board')].map(t =>"
            " [...t.tBodies[0].rows].filter(r => r.offsetHeight > 0).length)"
        )
        assert column(tab, "mean rank", ".overview") == ["1.00", "2.00", "3.00"]
    assert rows == [3, 0, 3, 0, 3, 0]  # those at a budget need a script
    assert "miser costs 9." in text
    for word in ("Download", "hover over it", "What it buys"):
        assert word not in text
