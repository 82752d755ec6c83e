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


def column(tab, place, table="section.set:not(.off) table.board"):
    rows = f"[...document.querySelector({json.dumps(table)}).tBodies[0].rows]"
    return list(tab.js(f"{rows}.map(r => r.cells[{place}].innerText.trim())"))


def learners(tab):
    """The names in the table, without their marks."""
    return [name.split()[-1] for name in column(tab, 1)]


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
    assert story(opened).startswith("Within a budget of 9.95")
    assert learners(opened) == ["miser", "gbrt", "constant"]  # as on a terminal
    sentence = opened.js("document.querySelector('main > .conclusion').textContent")
    assert sentence.startswith("miser is first on 2 of 2 data sets, by mean quality")
    own = "document.querySelector('section.set:not(.off)')"
    assert "gbrt at its best costs 29.59" in opened.js(
        f"{own}.querySelector('.conclusion').innerText"
    )
    assert "Sorted by tier of saving" in opened.js(f"{own}.querySelector('.sorted').textContent")
    words = opened.js(f"{own}.querySelector('.rings').textContent")
    assert words == ("99%" if width == 390 else "99% of gbrtmiser: ") + "3.0x cheaper"
    ring = "[...document.querySelectorAll('section.set:not(.off) .rings circle')]"
    places = f"{ring}.map(c => [Number(c.getAttribute('cx')), Number(c.getAttribute('cy'))])"
    (gbrt, _), (miser, height) = sorted(opened.js(places), reverse=True)
    cursor = opened.js("document.querySelector('.cursor').getAttribute('d')")
    assert cursor.startswith(f"M{miser} ")
    line = opened.js("document.querySelector('.rings path').getAttribute('d')")
    assert height < float(line.split()[1].partition("H")[0])  # its test quality is better
    assert opened.js("location.hash") == ""
    assert miser < gbrt


def test_another_data_set_opens_at_its_own_budget_unless_one_was_chosen(opened):
    place = "Number(document.getElementById('f-budget').value)"
    first = opened.js(place)
    choose(opened, "#f-set", "1")
    second = opened.js(place)
    assert second > first  # only gbrt itself keeps the quality
    slide(opened, 3)
    views = "JSON.parse($('data').textContent).sets.map((set) => set.views[0])"
    share = opened.js(f"shareAt({views}[1], 3)")
    choose(opened, "#f-set", "0")
    at, whole = opened.js(f"{views}.map((view) => [view.at, view.whole])[0]")
    assert opened.js(place) == sum(budget <= share * whole for budget in at) - 1
    assert f"share={share}" in opened.js("location.hash")


def test_the_slider_re_ranks_table_sentences_and_overview(tab):
    before, headline = story(tab), "document.querySelector('.headline').textContent"
    whole = tab.js(headline)
    assert whole.startswith("Over all budgets, miser is first on 2 of 2 data sets; its mean rank ")
    slide(tab, 4)
    assert learners(tab) == ["miser", "gbrt", "constant"]  # 0.80 against 0.65 for a cost of 3
    assert column(tab, 0)[0] == "1"
    assert "miser is ahead" in story(tab)
    assert " beats all others in accuracy (significant at 95%); gbrt is next" in story(tab)
    assert story(tab) != before
    assert "Within a budget of" in story(tab)
    ranks = column(tab, 3, "#overview")
    names = column(tab, 0, "#overview")
    assert ranks[names.index("miser")] == "1"
    assert "of the reference's cost, miser is best or tied on 2 of 2" in tab.js(headline)
    assert "gbrt and constant (a baseline) tie in mean rank." in tab.js(headline)
    slide(tab, int(tab.js(f"{SLIDER}.max")))
    assert (story(tab), tab.js(headline)) == (before, whole)


def test_without_a_limit_the_script_writes_what_the_page_has_without_it(tab, file):
    written = re.findall(r'<table class="board.*?</table>', file.read_text(encoding="utf-8"), re.S)
    rows = re.findall(r"<tr data-l=.*?</tr>", written[0], re.S)
    cells = [re.findall(r"<t[dh][^>]*>([^<]*)", row) for row in rows]
    shown = [column(tab, place) for place in range(len(cells[0]))]
    shown[1] = learners(tab)
    assert [list(row) for row in zip(*shown, strict=True)] == cells


# two data sets, of which d lacks the second; the constant is a baseline; areas of the first tie
MADE = """(() => {
  const curve = (l, y) => ({ l, x: [1], y: [y] });
  const one = (ys, areas) => {
    const view = { at: [1], higher: 1, whole: 1, kind: "mean", metric: "accuracy",
      curves: ys.map((y, l) => curve(l, y)).filter((c) => c.y[0] !== null) };
    return { views: [view], areas };
  };
  const data = { level: "95%", apart: [0.1, 9, 9],
    learners: [["a", 0], ["b", 0], ["constant", 1], ["d", 0]],
    sets: [one([0.9, 0.8, 0.5, 1.0], { 0: 0.7, 1: 0.7, 2: 0.5 }),
           one([PAIR, 0.5, null], { 0: 0.6, 1: 0.8, 2: 0.5 })] };
  const found = overall(data, [0, 1], (s) => s.views[0], SHARE);
  return [found.rows.map((r) => [data.learners[r.l][0], r.lacks ? null : r.mean]),
    overallStory(data, found, SHARE), story(data, data.sets[1], data.sets[1].views[0], 0)];
})()"""


def test_only_learners_with_a_result_everywhere_have_a_mean_rank_and_equals_share_theirs(tab):
    made = MADE.replace("PAIR", "0.7, 0.6")
    rows, text, _ = tab.js(made.replace("SHARE", "1"))
    assert rows == [["a", 1], ["b", 2], ["constant", 3], ["d", None]]
    # d is first on the first data set, and lacks a result on the second
    assert text == (
        "Within 100% of the reference's cost, a is best or tied on 1 of 2 data sets; its mean rank "
        "among 3 learners is 1.00. b and constant (a baseline) tie in mean rank."
    )
    rows, text, _ = tab.js(made.replace("SHARE", "Infinity"))
    assert rows == [["b", 1.25], ["a", 1.75], ["constant", 3], ["d", None]]
    assert text.startswith("Over all budgets, b is first on 2 of 2 data sets; its mean rank among")


def test_where_nothing_beats_a_baseline_no_learner_is_called_ahead(tab):
    _, text, one = tab.js(MADE.replace("PAIR", "0.5, 0.5").replace("SHARE", "1"))
    assert "nothing beats the baseline constant: accuracy 0.5000" in one
    assert "ahead" not in one
    assert text.endswith("On 1 of 2 nothing beats a baseline.")


def test_the_slider_moves_by_keyboard_and_says_what_it_means(tab):
    tab.js(f"{SLIDER}.focus()")
    press(tab, "ArrowLeft")
    text = tab.js(f"{SLIDER}.getAttribute('aria-valuetext')")
    assert text.endswith("% of gbrt's cost")
    assert tab.js("document.getElementById('f-amount').textContent") == text
    press(tab, "ArrowRight")
    assert tab.js(f"{SLIDER}.getAttribute('aria-valuetext')") == "no limit"


def test_another_data_set_is_chosen_from_a_list(tab):
    choose(tab, "#f-set", "1")
    assert tab.js("document.querySelector('section.set:not(.off) h2').innerText").startswith("b")
    assert "data=b" in tab.js("location.hash")
    click(tab, "[data-go='0']")
    assert tab.js("document.querySelector('section.set:not(.off) h2').innerText").startswith("a")


def test_another_accounting_re_ranks_all_that_is_shown(tab):
    shown = "!document.getElementById('f-accounting').closest('label').hidden"
    heads = "[...document.querySelectorAll('#overview thead th')].filter(c => !c.hidden)"
    assert not tab.js(shown)  # data set a has one
    choose(tab, "#f-set", "1")
    assert tab.js(shown)
    slide(tab, 4)
    names = column(tab, 0, "#overview")
    ranks = f"{heads.replace('thead th', 'tbody td')}.map(c => c.innerText)"
    before = tab.js(ranks)
    assert "miser is ahead" in story(tab) or "miser ties" in story(tab)
    choose(tab, "#f-accounting", "2")
    assert "data=b%28accounting%3Dmodel%29" in tab.js("location.hash")
    assert "gbrt is ahead" in story(tab)
    assert "beats all others" in story(tab)
    assert learners(tab) == ["gbrt", "miser", "constant"]
    assert tab.js(f"{heads}.map(c => c.innerText)")[3:] == ["a", "b"]
    assert (column(tab, 0, "#overview"), tab.js(ranks)) != (names, before)
    choose(tab, "#f-set", "0")
    assert tab.js("document.querySelector('section.set:not(.off) h2').innerText").startswith("a")


def test_the_address_keeps_the_state_and_gives_it_back(tab):
    choose(tab, "#f-set", "1")
    slide(tab, 2)
    click(tab, "#f-scale")
    click(tab, "section.set:not(.off) [data-curve='2']")
    tab.wait("location.hash.includes('share=')")
    kept, told = tab.js("location.hash"), story(tab)
    tab.js("document.getElementById('f-reset').click()")
    assert tab.js("location.hash") == ""
    assert story(tab) != told
    tab.js(f"location.hash = {json.dumps(kept)}")
    tab.wait("document.getElementById('f-scale').getAttribute('aria-pressed') === 'true'")
    assert story(tab) == told
    assert (
        tab.js("document.querySelectorAll('section.set:not(.off) .chart .ends text').length") == 2
    )
    assert tab.js("location.hash") == kept


def test_a_heading_sorts_best_first_then_back_then_as_given_with_baselines_below(tab):
    given = learners(tab)
    costs = "section.set:not(.off) [data-is=cost]"
    click(tab, f"{costs} button")
    assert learners(tab)[2] == "constant"  # costs least, and is a baseline
    low = [float(v) for v in column(tab, 4)[:2]]
    assert low == sorted(low)
    assert tab.js(f"document.querySelector('{costs}').getAttribute('aria-sort')") == "ascending"
    click(tab, f"{costs} button")
    assert learners(tab)[2] == "constant"
    assert [float(v) for v in column(tab, 4)[:2]] == low[::-1]
    click(tab, f"{costs} button")
    assert learners(tab) == given
    assert tab.js(f"document.querySelector('{costs}').getAttribute('aria-sort')") is None
    click(tab, "section.set:not(.off) [data-is=quality] button")
    best = [float(v) for v in column(tab, 2)[:2]]
    assert best == sorted(best, reverse=True)


def test_a_click_on_a_legend_entry_hides_a_curve_and_a_double_click_isolates_it(tab):
    entry = "section.set:not(.off) [data-curve='0']"
    labels = "document.querySelectorAll('section.set:not(.off) .chart .ends text').length"
    click(tab, entry)
    assert tab.js(labels) == 2
    assert tab.js(f"document.querySelector(\"{entry}\").getAttribute('aria-pressed')") == "false"
    tab.js("document.getElementById('f-reset').click()")
    tab.js("new Promise(done => setTimeout(done, 450))")
    click(tab, entry, times=2)
    assert tab.js(labels) == 1
    tab.js("new Promise(done => setTimeout(done, 450))")
    click(tab, entry, times=2)
    assert tab.js(labels) == 3


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
    assert "Bought for every row: 1 sensor; for some rows: 2 sensors; never: 0 sensors." in tab.js(
        f"{place}.innerText"
    )


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
    assert head.startswith("quality_rank,learner,accuracy,low,high,cost")
    assert len(rows) == 3
    assert head.endswith("cost,budget_kind,setting,marks")  # the filled ones
    assert rows[-1].split(",")[1] == "constant"
    assert all(len(cell.partition(".")[2]) <= 4 for row in rows for cell in row.split(",")[2:6])


def test_a_view_stands_at_its_last_place_within_the_share_chosen(tab):
    places = "[0.1, 0.2, 0.35, 1, Infinity].map((share) => placeAt(view, share))"
    mean = "{ whole: 100, kind: 'mean', at: [20, 35] }"
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
        assert column(tab, 1, "#overview") == ["1.00", "2.00", "3.00"]
    assert rows == [3, 3, 3]
    assert "miser costs 9." in text
    for word in ("Download", "hover over it", "What it buys"):
        assert word not in text
