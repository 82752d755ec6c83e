"""Boards for papers, by a run of known values and one with hostile names."""

import csv
import json
import math
import re
import sys
from dataclasses import replace
from functools import partial
from io import StringIO
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from bench_reports import papers, plot, records, terminal
from bench_reports.page_data import affordable
from bench_reports.palette import COLOURS, look
from bench_reports.panels import Panels
from helpers import example, page_run
from helpers.kit import refused
from helpers.valued_run import ValuedRun, learner_of

from bench_core.errors import no_formula
from bench_core.leaderboard import pairs
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import NOTHING, Likely
from bench_core.leaderboard.pairs import pairs_within
from bench_core.leaderboard.reports import paragraph
from bench_core.planning.request import command
from bench_core.plugins import load_registry
from bench_core.results.budgets import Budget

DRAWS = 1000


@pytest.fixture(autouse=True)
def _fewer_draws(monkeypatch):
    monkeypatch.setattr(pairs, "_RESAMPLES", DRAWS)


@pytest.fixture(scope="module")
def valued():
    """Two good learners, a bad one, a costly one and a baseline; all begin with a free constant.
    Methods err on the same rows, so that the good ones are sure to be as good as the costly one."""
    rng, run = np.random.default_rng(0), ValuedRun(baselines=("constant",))
    shared = rng.normal(0, 0.2, (2, 300))
    free = np.random.default_rng(1).normal(0.2, 0.2, 300)
    for name, skill, price in (
        ("good", [0.7, 0.9], [1, 4]),
        ("alike", [0.7, 0.9], [1, 4]),
        ("bad", [0.4, 0.5], [1, 4]),
        ("gbrt", [0.9], [9]),
    ):
        quality, cost = learner_of(rng, skill, price, 300)
        quality = [0.9 * np.array(skill)[:, None] + 0.1 * q for q in quality]
        quality = [np.vstack([free, q + s]) for q, s in zip(quality, shared, strict=True)]
        run.add(name, quality, [np.vstack([0 * free, c]) for c in cost])
    run.add("constant", *learner_of(rng, [0.2], [0], 300))
    return run


def raced(datasets, learners, units=60, **how):
    """Learners of these skills and prices on each data set."""
    run = ValuedRun(**how)
    for k, dataset in enumerate(datasets):
        rng = np.random.default_rng(k)
        for name, (skill, price) in learners.items():
            run.add(name, *learner_of(rng, skill, price, units), dataset=dataset)
    return run


def at_budgets(info, frame, path, *, write=papers.latex, **more):
    """A report, with the usual budgets named as by --budget."""
    shown = boards(info, frame, more.get("store"))
    names = {board.dataset: tuple(map(str, board.budgets)) for board in shown}
    uses = tuple(replace(use, budgets=names.get(use.name, ())) for use in info.datasets)
    write(replace(info, datasets=uses), frame, path, **more)


markdown_at_budgets = partial(at_budgets, write=papers.markdown)


def written(write, run, path, **more):
    write(run.info, run.frame, path, store=run, **more)
    return path.read_text()


def csv_rows(run, folder):
    return csv.DictReader(StringIO(written(records.write_csv, run, folder / "b.csv")))


class Hostile:
    info, frame = example.info(), example.frame()

    def values(self, *which, **more):
        return []


def cells(line, separator):
    return [cell.strip() for cell in line.strip("| \\").split(separator)]


def test_the_best_is_bold_and_what_ties_with_it_is_marked(valued, tmp_path):
    (board,) = boards(valued.info, valued.frame, valued)
    last = {one.learner: one for one in board.standings[-1].rows}
    assert {name for name, one in last.items() if one.tier == 1} == {"good", "alike", "gbrt"}
    best = max(("good", "alike", "gbrt"), key=lambda name: last[name].quality)
    found = latex_rows(written(at_budgets, valued, tmp_path / "b.tex"))
    budget = f"$\\le$ {board.budgets[-1]}"
    for name, one in last.items():
        cell = found[budget][name]
        assert cell.startswith("\\textbf{") == (name == best)
        assert cell.startswith("\\underline{") == (one.tier == 1 and name != best)
        assert f"{one.quality:.4f}" in cell
    text = written(markdown_at_budgets, valued, tmp_path / "b.md")
    _, line = [x for x in text.splitlines() if x.startswith(f"| {best} ")]
    assert cells(line, " | ")[-1] == f"**{last[best].quality:.4f}**"


def test_the_columns_of_a_paper_are_cost_saving_and_quality_of_the_model_to_take(valued, tmp_path):
    (board,) = boards(valued.info, valued.frame, valued)
    rows = {row.learner: row for row in board.rows}
    good, least = rows["good"], max(("good", "alike"), key=lambda name: rows[name].saving)
    found = latex_rows(written(at_budgets, valued, tmp_path / "b.tex"))
    low, high = good.saved.interval
    assert found["cost"]["good"] == f"{good.cheap.cost:.2f}"
    assert found["accuracy"]["good"] == f"{good.cheap.quality:.4f}"
    x = "$\\times$"
    saving = f"{good.saving:.1f}{x}"
    mark = "textbf" if least == "good" else "underline"
    assert found["cheaper"]["good"] == f"\\{mark}{{{saving}}}"
    assert found["\\shortstack[r]{cheaper\\\\95\\%}"]["good"] == f"{low:.1f}{x} to {high:.1f}{x}"
    half = (good.saved.quality.high - good.saved.quality.low) / 2
    assert float(found["$\\pm$"]["good"]) == pytest.approx(half, abs=5e-5)
    assert found["cheaper"]["bad"] == "-"
    assert "wrong" not in found
    markdown = written(papers.markdown, valued, tmp_path / "b.md")
    assert "| learner | cost | cheaper | cheaper 95% | wrong | accuracy | ± |" in markdown


def latex_rows(text):
    """The cells of LaTeX tables: learner to cell, by title."""
    found = {}
    for line in text.splitlines():
        if line.startswith("    learner &"):
            titles = cells(line, "&")[1:]
        elif line.count("&") > 1 and not line.startswith("     &"):
            name, *row = cells(line, "&")
            for title, cell in zip(titles, row, strict=True):
                found.setdefault(title, {})[name] = cell
    return found


def widths_in_points(line, font):
    """The widths of the cells of a row of LaTeX."""
    widths = []
    for cell in cells(line, "&"):
        stacked = re.sub(r"\\shortstack\[r\]|\\textbf|\\underline|[{}$]|\\(?=%)", "", cell)
        words = (
            stacked.replace("\\le", "<").replace("\\pm", "+").replace("\\times", "+").split("\\\\")
        )
        widths.append(max(measured(font, word) for word in words))
    return widths


def measured(font, word):
    font.set_text(word, 0)
    return font.get_width_height()[0] / 64


def test_the_tables_of_a_paper_fit_one_of_two_columns(valued, tmp_path):
    fonts = pytest.importorskip("matplotlib.ft2font")
    font = fonts.FT2Font(pytest.importorskip("matplotlib").get_data_path() + "/fonts/ttf/cmr10.ttf")
    font.set_size(8, 72)  # Computer Modern at \\footnotesize, in points
    text = written(at_budgets, valued, tmp_path / "b.tex")
    text = text.replace("    good &", "    forward-selection &")  # a name as long as ours are
    assert text.count("\\footnotesize\\setlength{\\tabcolsep}{3pt}") == 2
    for table in text.split("\\begin{tabular}{@{}l")[1:]:
        lines = [x for x in table.partition("\\end{tabular}")[0].splitlines() if "&" in x]
        widths = zip(
            *(widths_in_points(x, font) for x in lines if "multicolumn" not in x), strict=True
        )
        columns = [max(column) for column in widths]
        assert sum(columns) + 6 * (len(columns) - 1) < 241  # points: a column of acmart


def by_holm(run, info, budget):
    """The p of each learner next to gbrt, and adjusted: of 4 pairs the smallest counts 4x."""
    given = info, run, run.frame, "d"
    alone = {
        name: pairs_within(*given, (name, "gbrt"), budget, interest=0)[1][0].difference.p
        for name in ("good", "alike", "bad", "constant")
    }
    adjusted, least = {}, 0.0
    for k, name in enumerate(sorted(alone, key=alone.get)):
        least = adjusted[name] = max(least, min(1, (4 - k) * alone[name]))
    return alone, adjusted


def test_columns_are_chosen_by_their_titles_and_p_is_adjusted_by_holm(valued, tmp_path):
    (board,) = boards(valued.info, valued.frame, valued)
    names = ["quality", "p", "cheaper", f"<= {board.budgets[2]}"]
    alone, adjusted = by_holm(valued, valued.info, Budget(math.inf))
    least = 2 / (DRAWS + 1)  # no p is seen to be below it
    expected = {name: f"{'<' * (alone[name] < 1.5 * least)}{p:.4f}" for name, p in adjusted.items()}
    assert len({*expected.values()}) > 1
    assert any(text.startswith("<") for text in expected.values())
    for write, mark in ((at_budgets, "&"), (papers.markdown, "|"), (terminal.write, " ")):
        path = tmp_path / "b.txt"
        more = {"sections": ()} if write is terminal.write else {}
        more |= {"columns": names, "against": "gbrt"}
        text = written(write, valued, path, **more).replace("\\textless{}", "<").replace("\\<", "<")
        for name, p in {**expected, "gbrt": "-"}.items():
            row = re.compile(rf"^(\| |    |){name}\b.*{re.escape(mark)} *{p} ", re.MULTILINE)
            assert len(row.findall(text)) == 1, (write, name)
    for against in ("", "gbrt"):  # p is one more column: the tables at budgets stay
        text = written(at_budgets, valued, tmp_path / "b", against=against)
        assert text.count("within a cost per row of") == 1, against
    call = at_budgets, valued.info, valued.frame, tmp_path / "x"
    refused("'cheapr'|did you mean cheaper", *call, store=valued, columns=["cheapr"])
    refused("column p needs a learner", *call, store=valued, columns=["p"])
    refused("run 3|'nobody'", *call, store=valued, against="nobody")


def test_p_at_few_budgets_stands_beside_their_qualities(valued, tmp_path):
    budgets = tuple(board_budgets(valued)[1:3])
    uses = (replace(use, budgets=tuple(map(str, budgets))) for use in valued.info.datasets)
    info = replace(valued.info, datasets=tuple(uses))
    expected = {f"{budget}": by_holm(valued, info, budget)[1] for budget in budgets}
    records.write_csv(info, valued.frame, tmp_path / "b.csv", store=valued, against="gbrt")
    rows = list(csv.DictReader(StringIO((tmp_path / "b.csv").read_text())))
    shown = {(row["budget"], row["learner"]): row["p"] for row in rows if row["budget"]}
    for budget, own in expected.items():
        assert shown[budget, "gbrt"] == ""
        for name, p in own.items():
            assert float(shown[budget, name]) == pytest.approx(p)
    at_budgets(info, valued.frame, tmp_path / "b.tex", store=valued, against="gbrt")
    _, table = (tmp_path / "b.tex").read_text().split("\\label{tab:d-budgets}")
    heading = next(line for line in table.splitlines() if "learner &" in line)
    first, second = (f"$\\le$ {budget}" for budget in expected)
    assert cells(heading, "&")[1:] == [
        *(first, f"\\shortstack[r]{{p\\\\{first}}}"),
        *(second, f"\\shortstack[r]{{p\\\\{second}}}"),
    ]
    captions = [x for x in (tmp_path / "b.tex").read_text().splitlines() if "caption" in x]
    words = (
        "two-sided, of the difference in {} to gbrt {} cost, adjusted by Holm over 4 comparisons"
    )
    assert f"p (best): {words.format('best accuracy', 'at any')}." in captions[0]
    assert f"p {first}, p {second}: {words.format('accuracy', 'within that')}." in captions[1]
    named = {"store": valued, "against": "gbrt", "columns": [f"p <= {budgets[0]}"]}
    at_budgets(info, valued.frame, tmp_path / "one.tex", **named)
    (heading,) = [x for x in (tmp_path / "one.tex").read_text().splitlines() if "learner &" in x]
    assert cells(heading, "&")[1:] == [f"\\shortstack[r]{{p\\\\{first}}}"]  # no other column
    at_budgets(info, valued.frame, tmp_path / "none.tex", against="gbrt")  # without a store
    none = "p (best): unknown, as no repeat has values of gbrt and another learner."
    assert none in (tmp_path / "none.tex").read_text()
    call = at_budgets, info, valued.frame, tmp_path / "x"
    refused("7777|--budget 7777", *call, store=valued, columns=["<= 7777"])


def test_ties_are_marked_and_explained_except_in_a_table_with_p_as_these_are_of_another_test(
    valued, tmp_path
):
    words = "Bold: the best; underlined: not significantly worse (all pairs of learners tested"
    for write, mark in ((at_budgets, "underline"), (markdown_at_budgets, "~")):
        count = {}
        for against in ("", "gbrt"):
            text = written(write, valued, tmp_path / "b", against=against)
            count[against] = len(re.findall(rf"[&|] \\?{mark}\b|[&|] {mark} ", text))
            assert text.count(words) == (write is at_budgets)
        assert 0 < count["gbrt"] < count[""]  # ties at budgets, without p, stay


def test_mean_ranks_over_data_sets_end_markdown_and_files_for_programs(tmp_path):
    made = page_run.run()
    markdown = written(papers.markdown, made, tmp_path / "b.md")
    assert "## Mean rank over 2 data sets" in markdown
    assert "| miser | 1.00\\* | 1-3 | 1 | 1 |" in markdown
    first, *_ = json.loads(written(records.write_json, made, tmp_path / "b.json"))["ranks"]
    assert (first["learner"], first["mean"]) == ("miser", 1)
    assert first["by_dataset"] == {"a": 1, "b": 1}


def table_of(text, label):
    """The rows of a LaTeX table by learner, and its caption."""
    before, _, after = text.partition(f"\\label{{tab:{label}}}")
    lines = after.partition("\\end{tabular}")[0].splitlines()
    rows = {cells(line, "&")[0]: cells(line, "&") for line in lines if "&" in line}
    return rows, before.rstrip().splitlines()[-1].strip()


def test_a_paper_has_tables_of_learners_by_data_sets_of_costs_with_ranks_and_of_qualities_with_p(
    tmp_path,
):
    made = page_run.run()
    shown = [board for board in boards(made.info, made.frame, made) if board.rows]
    text = written(papers.latex, made, tmp_path / "b", against="gbrt")
    assert text.count("\\begin{table}") == text.count("\\caption") == 2
    (costs, first), (qualities, second) = (table_of(text, of) for of in ("costs", "qualities"))
    assert all(len(caption.split()) <= 40 for caption in (first, second))
    assert "p: two-sided, of the difference to gbrt" in second
    assert qualities["learner"][1:3] == ["a", "p"]
    for k, board in enumerate(shown):
        tests = Panels(made.info, made.frame, made, shown, (), "gbrt").p_values(board, None)
        for row in board.rows:
            if not row.likely:
                cost = costs[row.learner][1 + k]
                assert cost == (f"{row.cheap.cost:.2f}" if row.cheap else "-")
            p = qualities[row.learner][2 + 2 * k]
            test = tests.get(row.learner)
            assert p.replace("\\textless{}", "") == (f"{test.adjusted:.4f}" if test else "-")
    assert (first.endswith("; mean rank.}"), costs["miser"][-1]) == (True, "1.00*")
    budgets = written(at_budgets, made, tmp_path / "b")
    assert budgets.count("within a cost per row of") == len(shown)


def test_a_budget_of_another_data_set_is_a_column_of_dashes(tmp_path):
    made = page_run.run()
    names = {"a": ["2"], "b": ["4"], "b(accounting=model)": []}
    datasets = tuple(replace(use, budgets=names[use.name]) for use in made.info.datasets)
    path, info = tmp_path / "b.csv", replace(made.info, datasets=datasets)
    papers.markdown(info, made.frame, path, store=made, columns=["<= 2"])
    first, second, _ = (
        re.findall(r"^\| miser \| (.*) \|$", part, flags=re.MULTILINE)
        for part in path.read_text().split("## ")[1:4]
    )
    assert "-" not in first[0]
    assert second == ["-"]


def test_a_pair_shows_the_quality_of_the_board():
    run = ValuedRun()
    right = (np.arange(4000) < 2837).astype(float)[None]
    for name in ("a", "gbrt"):
        run.add(name, (right, right), (np.ones((1, 4000)),) * 2)
    _, (pair,), _ = pairs_within(
        run.info, run, run.frame, "d", ("a", "gbrt"), Budget(math.inf), interest=0
    )
    assert pair.quality == (0.70925, 0.70925)  # in 32 bits .7092499733


def board_budgets(run):
    (board,) = boards(run.info, run.frame, run)
    return board.budgets


def test_baselines_stand_below_a_rule_and_captions_are_short(valued, tmp_path):
    lines = written(at_budgets, valued, tmp_path / "b.tex").splitlines()
    first = [
        x.split("&")[0].strip() for x in lines if "caption" not in x and ("&" in x or "rule" in x)
    ]
    for at in [k for k, name in enumerate(first) if name == "constant"]:
        assert (first[at - 1], first[at + 1]) == ("\\midrule", "\\bottomrule")
    captions = [x for x in lines if "\\caption" in x]
    assert all("accuracy on test (higher is better); costs in units." in x for x in captions)
    assert all(len(x.split()) <= 40 for x in captions)


def test_rows_have_one_order_in_every_format(valued, tmp_path):
    (board,) = boards(valued.info, valued.frame, valued)
    expected = [row.learner for row in board.rows]
    markdown = written(papers.markdown, valued, tmp_path / "b.md").split("\n| learner ")[1]
    for shown in (
        [row.learner for row in Panels(valued.info, valued.frame, None, [board]).of(board)[0].rows],
        [*latex_rows(written(at_budgets, valued, tmp_path / "b.tex"))["cheaper"]],
        [line.split()[1] for line in markdown.splitlines()[2:7]],
        [row["learner"] for row in csv_rows(valued, tmp_path) if not row["budget"]],
    ):
        assert shown == expected


def test_nothing_in_names_and_errors_is_read_by_latex_or_markdown(tmp_path):
    latex = written(at_budgets, Hostile(), tmp_path / "b.tex")
    assert "\\textless{}img src=x onerror=alert(1)\\textgreater{}" in latex
    for line in latex.splitlines():
        inner = re.sub(r"\\[\\{}$&#_%]|\\[a-zA-Z]+", "", line)  # commands and escaped characters
        if "&" not in line:
            assert not re.search(r"[#_^~]", inner.replace("\\label", "").replace("^{+", "")), line
        assert inner.count("{") == inner.count("}")
    assert "a generated stand-in" in latex
    assert "Use them to check the installation, not to compare methods." in latex
    markdown = written(papers.markdown, Hostile(), tmp_path / "b.md")
    assert "\\<img src=x onerror=alert(1)\\>" in markdown
    assert "<img" not in markdown.replace("\\<img", "")


def test_a_table_for_programs_has_a_row_for_each_learner_and_budget(valued, tmp_path):
    rows = list(csv_rows(valued, tmp_path))
    (board,) = boards(valued.info, valued.frame, valued)
    assert len(rows) == 5 * len(board.at)
    unlimited = {row["learner"]: row for row in rows if not row["budget"]}
    assert {name: row["role"] for name, row in unlimited.items() if row["role"]} == {
        "gbrt": "reference",
        "constant": "baseline",
    }
    own = next(one for one in board.at[-1].rows if one.learner == "bad")
    assert float(unlimited["bad"]["quality"]) == pytest.approx(own.quality)
    assert (unlimited["bad"]["tier"], unlimited["bad"]["best rank"]) == ("2", "4")
    good = next(row for row in board.rows if row.learner == "good")
    titles = ["cheaper", "cheaper low", "cheaper high", "cheaper 99% low", "cheaper 99% high"]
    titles += ["model cost", "model quality", "sure", "area"]
    row = {
        name: float(unlimited["good"][name] or "nan")
        for name in unlimited["good"]
        if name in {*titles, "area low", "area high", "regret", "regret low", "regret high"}
    }
    kept = (good.saving, *good.saved.interval, *good.saved.wide)
    kept += (good.cheap.cost, good.cheap.quality, 1, good.area.value)
    assert [row[title] for title in titles] == pytest.approx(kept)
    assert row["area low"] < row["area"] < row["area high"]
    assert row["regret low"] <= row["regret"] <= row["regret high"]
    assert all(row["model cost"] == "" for row in rows if row["budget"])
    document = json.loads(written(records.write_json, valued, tmp_path / "b.json"))
    (board,) = document["datasets"]
    assert board["budgets"][-1] is None
    (bad,) = [one for one in board["learners"] if one["learner"] == "bad"]
    assert bad["standings"][-1]["quality"] == pytest.approx(own.quality)
    (best,) = [one for one in board["learners"] if one["learner"] == "good"]
    ends = best["cheaper low"], best["cheaper high"]
    assert ends == pytest.approx((*good.saved.interval,))
    assert (best["cost"], best["chosen"]) == (pytest.approx(good.cheap.cost), ["trees=3"])
    assert bad["cheaper"] is None
    assert best["area"] == pytest.approx(good.area.value)
    free, first, _ = (point["budget"] for point in bad["curve"])
    assert free == 0
    assert math.isclose(first, 1, rel_tol=0.1)


def test_a_model_is_unknown_where_nothing_was_stored_and_none_reaches_the_quality(tmp_path):
    records.write_csv(example.info(), example.frame(), tmp_path / "b.csv")
    rows = csv.DictReader(StringIO((tmp_path / "b.csv").read_text()))
    unlimited = [row for row in rows if row["dataset"] == "yahoo-sim" and not row["budget"]]
    titles = ("learner", "model cost", "model quality", "sure")
    shown = {tuple(row[title] for title in titles) for row in unlimited}
    # .792 is needed: miser has .795 at 3000, gbrt .793 at 6000, cegb at most .78
    assert shown == {
        ("miser", "3000", "0.795", "1"),
        ("gbrt", "6000", "0.793", "1"),
        ("cegb", "500", "0.78", ""),
    }


@pytest.mark.parametrize(
    ("write", "suffix"),
    [
        (at_budgets, ".tex"),
        (papers.markdown, ".md"),
        (records.write_csv, ".csv"),
        (records.write_json, ".json"),
        *((plot.write, suffix) for suffix in plot.SUFFIXES),
    ],
)
def test_the_same_run_gives_the_same_bytes(write, suffix, valued, tmp_path):
    if write is plot.write:
        pytest.importorskip("matplotlib")
    made = [tmp_path / f"{k}{suffix}" for k in range(2)]
    for path in made:
        write(valued.info, valued.frame, path, store=valued)
    assert made[0].read_bytes() == made[1].read_bytes()
    assert len(made[0].read_bytes()) > 500


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """The figure of a run as SVG, with letters and not their outlines."""
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(plot.STYLE, "svg.fonttype", "none")

    def draw(run, info=None):
        plot.write(info or run.info, run.frame, tmp_path / "c.svg", store=run)
        return (tmp_path / "c.svg").read_text()

    return draw


def test_a_figure_has_title_axes_and_the_name_of_each_learner(valued, drawn):
    text = drawn(valued, replace(valued.info, title="Ranking for $5"))
    for word in ("good", "alike", "bad", "gbrt", "constant", "baselines"):
        assert f">{word}<" in text, word
    assert ">95% interval of good and gbrt<" in text
    assert "accuracy on test (higher is better)" in text
    assert "Ranking for" in text


def test_panels_of_several_data_sets_stand_side_by_side(drawn):
    run = ValuedRun()
    for dataset, price in (("wide", 90), ("b", 4), ("c", 4)):
        for name in ("good", "gbrt"):
            rng = np.random.default_rng(0)
            run.add(name, *learner_of(rng, [0.5, 0.9], [1, price], 60), dataset=dataset)
    text = drawn(run)
    (width, height) = map(float, re.findall(r'<svg[^>]* viewBox="0 0 ([\d.]+) ([\d.]+)"', text)[0])
    assert (width, height) == pytest.approx((475.2, 2 * 2.8 * 72))
    assert text.count(">(logarithmic)<") == 1
    assert text.count(">(linear)<") == 2
    assert text.count(">good<") == 3  # at the lines, not in a legend


def test_a_figure_of_an_unnamed_run_has_the_name_of_its_data_as_only_title(valued, drawn):
    text = drawn(valued, replace(valued.info, title=""))
    assert re.findall(r"\b9px[^>]*>([^<]*)</text>", text) == ["d"]  # other texts are smaller


def test_costs_on_a_figure_are_plain_numbers_and_a_learner_has_the_colour_of_its_name(drawn):
    text = drawn(page_run.run())  # costs from 1 to 30: a logarithmic axis
    for word in ("1", "2", "5", "10", "20"):
        assert f">{word}<" in text
    assert "×" not in text
    names = re.findall(r'style="[^"]*fill: (#[0-9a-f]{6})[^"]*"[^>]*>(gbrt|miser|constant)<', text)
    shown = {name: colour for colour, name in names}
    assert shown == {
        "gbrt": COLOURS[look("gbrt").colour][0],
        "miser": COLOURS[look("miser").colour][0],
        "constant": plot.GREY,
    }


def test_bands_follow_their_curves_over_decades_and_ticks_do_not_overlap():
    figures = pytest.importorskip("matplotlib.figure")
    run = page_run.run()
    board = next(b for b in boards(run.info, run.frame) if any(row.reference for row in b.rows))
    (row,) = (row for row in board.rows if row.reference)
    budgets = zip((0, -1, 0), (0.0, 1.0, 1e6), strict=True)
    ends = tuple(replace(row.curve[k], budget=budget) for k, budget in budgets)
    board = replace(board, rows=(replace(row, curve=ends),))
    at = [point.pick.quality for point in ends]
    bands = {row.learner: np.array([(q - 0.01, q + 0.01) for q in at])}
    axes = figures.Figure().subplots()
    plot._panel(axes, board, np.array([0, 1, 1e6]), bands)
    assert {*np.log10(axes.get_xticks()) % 1} == {0}  # 1, 10, 100
    line = axes.lines[0]
    assert line.get_drawstyle() == "steps-post"
    assert line.get_xydata().tolist() == [[1, at[1]], [1e6, at[2]]]
    steps = [(0, at[0]), (1, at[0]), (1, at[1]), (1e6, at[1]), (1e6, at[2])]
    expected = {(x, round(q + sign * 0.01, 9)) for x, q in steps for sign in (1, -1)}
    corners = axes.collections[0].get_paths()[0].vertices.tolist()
    assert {(x, round(q, 9)) for x, q in corners} == expected


def test_without_matplotlib_a_figure_is_refused_in_one_line(valued, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = "matplotlib|pip install 'budget-bench[plot]'"
    refused(words, plot.write, valued.info, valued.frame, tmp_path / "c.svg")


def test_the_paragraph_on_methods_has_versions_splits_seeds_and_configurations():
    text = paragraph(example.info(), example.frame())
    assert "Budget Bench 0.1.0 (two cores, numpy 2.4.6, scipy 1.17.1)" in text
    assert "forest (binary) has 1000/500/500 rows" in text
    assert "trained with seeds 0, 1, 2 (3 repeats)." in text
    assert "miser (1, source c0de) 3" in text
    assert "bench run --suite yahoo --learners miser,cegb." in text


def test_the_paragraph_on_methods_names_parameters_and_the_source_of_other_packages():
    registry = load_registry()
    registry.origin["learner", "cegb"] = replace(registry.origin["learner", "gbrt"], origin="mine")
    base = {"learner": "gbrt", "trees": 300, "depth": 2}
    tried = {"cegb": [{"tradeoff": value, "trees": 300} for value in (0.3, 0.01)]}
    tried["early-exit"] = [{"base": base | {"learning_rate": 0.1 * k}} for k in range(1, 11)]
    tried["budget-prune"] = [{"base": {"learner": "budget-rf", "trees": 40}}]  # the defaults
    tried["gbrt"] = [{"trees": 50}]
    rows = [(name, json.dumps(params)) for name, of in tried.items() for params in of]
    frame = pd.concat([example.frame().iloc[:1]] * len(rows), ignore_index=True)
    frame[["learner", "params"]] = rows
    text = paragraph(example.info(), frame, registry=registry)
    assert "budget-prune (1) 1; " in text
    assert "cegb (1, source c0de) 2: tradeoff in {0.01, 0.3}; " in text
    assert "early-exit (1) 10: base.depth=2, base.learning_rate in {0.1, ..., 1}; " in text
    assert "gbrt (1) 1: trees=50." in text


def test_the_paragraph_on_methods_names_the_test_of_p_and_the_source_of_a_learner_without_version():
    frame = example.frame()
    frame.loc[frame["learner"] == "miser", "learner_version"] = ""
    text = paragraph(example.info(), frame, "gbrt")
    assert "miser (source c0de) 3" in text
    assert "A p is for no difference to gbrt, two-sided" in text
    assert "Holm's method" in text


def test_commands_in_latex_and_markdown_can_be_copied(valued, tmp_path):
    made_by = "bench report --columns '<= 4,a_b'"
    straight = (
        "bench report -{}-columns \\textquotesingle{}\\textless{}= 4,a\\_b\\textquotesingle{}"
    )
    shown = {at_budgets: f"\\texttt{{{straight}}}.", papers.markdown: f"`{made_by}`."}
    for write, line in shown.items():
        text = written(write, valued, tmp_path / "b", made_by=made_by)
        assert text.rstrip().endswith(f"its report by: {line}")


def test_the_command_leaves_out_how_a_run_is_carried_out():
    request = {"data": ["x.csv"], "workers": 2, "store": "s.db", "settings": ["a.b=1", "a.c=2"]}
    request |= {"strict_data": True, "seeds": [0, 1], "index_base": 1, "metrics": ["auc"]}
    words = "bench run --data x.csv --metric auc --set a.b=1 --set a.c=2 --seeds 0,1 --strict-data"
    assert command(request) == words


@pytest.mark.parametrize(
    ("text", "cell"),
    [("-0.0167", "-0.0167"), ("+1e-3", "+1e-3"), ("-1+2", "'-1+2"), ("=A1", "'=A1"), ("@x", "'@x")],
)
def test_a_number_is_no_formula(text, cell):
    assert no_formula(text) == cell


@pytest.fixture(scope="module")
def cut():
    """A reference whose cheaper point is sure to keep the quality of its best one, which is
    significantly better than the best of the learner ``good``."""
    rng, run = np.random.default_rng(0), ValuedRun()
    shared = rng.normal(0, 0.2, (2, 300))
    for name, skill, price in (("good", [0.7, 0.894], [1, 3]), ("gbrt", [0.896, 0.9], [5, 9])):
        quality, cost = learner_of(rng, skill, price, 300)
        # errors on the same rows: half a percent is far from chance, and within 1%
        quality = [
            np.array(skill)[:, None] + 0.01 * (q - np.array(skill)[:, None]) + s
            for q, s in zip(quality, shared, strict=True)
        ]
        run.add(name, quality, cost)
    return run


@pytest.mark.parametrize("columns", [(), ("best accuracy", "p"), ("best accuracy", "p (best)")])
def test_p_stands_in_the_row_of_the_best_quality_for_which_it_was_computed(cut, tmp_path, columns):
    best = Budget(math.inf)
    pair = pairs_within(cut.info, cut, cut.frame, "d", ("good", "gbrt"), best, interest=0)[1][0]
    p = f"<{pair.difference.p:.4f}"
    assert pair.difference.p == 2 / (DRAWS + 1)  # no p is seen to be below it
    for write, mark in ((papers.latex, "&"), (papers.markdown, " | "), (terminal.write, "  ")):
        more = {"sections": ()} if write is terminal.write else {}
        path, more = tmp_path / "b.txt", more | {"columns": columns, "against": "good"}
        text = written(write, cut, path, **more).replace("\\textless{}", "<").replace("\\<", "<")
        text = text.replace("\\shortstack[r]{p\\\\(best)}", "p (best)")
        rows = {cells(line, mark)[0]: cells(line, mark) for line in text.splitlines()}
        assert rows["learner"][-1] == "p (best)", write
        ends = {name: rows[name][-1] for name in ("good", "gbrt, cut", "gbrt, best")}
        assert ends == {"good": "-", "gbrt, cut": "-", "gbrt, best": p}
        assert "difference in best accuracy to good at any cost" in " ".join(text.split())


def test_a_paper_has_the_best_quality_of_each_learner_on_each_data_set(tmp_path):
    """On ``a`` miser is best; on ``b`` gbrt and miser have one skill and tie."""
    made = page_run.run()
    test = made.frame[made.frame["split"] == "test"]
    best = test.groupby(["learner", "dataset"])["accuracy"].last()  # at the largest cost
    on_b = "gbrt" if best["gbrt", "b"] > best["miser", "b"] else "miser"
    latex = written(papers.latex, made, tmp_path / "b.tex")
    rows, caption = table_of(latex, "qualities")  # ranks are by area
    assert caption == "\\caption{Best accuracy (higher is better) on test, at any cost.}"
    of_markdown = written(papers.markdown, made, tmp_path / "b.md").split("## Best quality")[1]
    lines = of_markdown.partition("\n## ")[0].splitlines()
    others = {cells(line, " | ")[0]: cells(line, " | ") for line in lines if "|" in line}
    for learner in ("miser", "gbrt"):
        a, b = (f"{best[learner, of]:.4f}" for of in ("a", "b"))
        expected = [f"\\textbf{{{a}}}" if learner == "miser" else a]
        expected += [f"\\textbf{{{b}}}" if learner == on_b else f"\\underline{{{b}}}"]
        assert rows[learner][1:3] == expected
        expected = [f"**{a}**" if learner == "miser" else a]
        expected += [f"**{b}**" if learner == on_b else f"~ {b}"]
        assert others[learner][1:3] == expected
    assert "underlined: not significantly worse" in latex


def test_without_areas_ranks_are_of_the_best_quality_and_stand_in_its_table(tmp_path):
    """Without a reference there is no area, and no quality at which costs could be compared."""
    skills = {"good": ([0.5, 0.9], [1, 4]), "fair": ([0.5, 0.7], [1, 4])}
    run = raced("abc", skills, reference="")
    text = written(papers.latex, run, tmp_path / "b.tex")
    (costs, first), (qualities, second) = (table_of(text, of) for of in ("costs", "qualities"))
    assert second.endswith("at any cost; mean rank.}")
    # two learners on three data sets are not separated by Nemenyi's test
    assert (qualities["good"][-1], qualities["fair"][-1]) == ("1.00*", "2.00*")
    assert first.startswith("\\caption{Cost per row of the best model")
    paid = run.frame[run.frame["split"] == "test"].groupby(["learner", "dataset"])["cost"].last()
    assert costs["good"][1:] == [f"{paid['good', dataset]:.2f}" for dataset in "abc"]


@pytest.mark.parametrize(
    ("probability", "shown"), [(0.9499, "9.00 (94%)"), (0.96, "9.00 (sure in 2 of 3)")]
)
def test_a_papers_probability_is_rounded_down_and_below_the_level_as_elsewhere(probability, shown):
    run = ValuedRun()
    run.answer("gbrt", (10, 9.0))
    (board,) = boards(run.info, run.frame, run)
    likely = Likely(board.rows[0].cheap, probability, math.inf)
    row = replace(board.rows[0], cheap=NOTHING, likely=likely, reached=2, repeats=3)
    assert papers._sure_cost(row) == shown


def test_a_paper_has_the_cost_of_the_likeliest_model_with_its_probability(tmp_path):
    """And so has the table for programs."""
    run = raced("ab", {"near": ([0.9], [4]), "poor": ([0.2], [4]), "gbrt": ([0.9], [9])}, 300)
    own, _, best = (one for one in run.kept[:6] if one.split == "valid")
    gain = own.metric[0] - 0.99 * best.metric[0]
    chance = NormalDist().cdf(gain.mean() / (gain.std() / len(gain) ** 0.5))
    assert 0.05 < chance < 0.95
    test = run.kept[1]
    rows = csv_rows(run, tmp_path)
    near = next(row for row in rows if row["learner"] == "near" and not row["budget"])
    assert float(near["sure"]) == pytest.approx(chance, abs=0.01)
    assert float(near["model cost"]) == pytest.approx(test.cost.mean())
    assert float(near["model quality"]) == pytest.approx(test.metric.mean())
    assert near["cheaper"] == ""
    text = written(papers.latex, run, tmp_path / "b.tex")
    rows, _ = table_of(text, "costs")
    cost, shown = re.fullmatch(r"(.*) \((\d+)\\%\)", rows["near"][1]).groups()
    assert float(cost) == pytest.approx(test.cost.mean(), abs=0.005)
    assert float(shown) / 100 == pytest.approx(chance, abs=0.015)
    assert rows["poor"][1] == "-"
    assert "In brackets: the probability that the likeliest model has that quality" in text


def test_without_named_budgets_files_for_programs_have_five_and_tables_none(valued, tmp_path):
    rows = csv_rows(valued, tmp_path)
    named = {row["budget"] for row in rows if row["budget"]}
    document = json.loads(written(records.write_json, valued, tmp_path / "b.json"))
    budgets = [one for one in document["datasets"][0]["budgets"] if one]
    assert len(named) == len(budgets) == 5
    for write in (papers.latex, papers.markdown):
        assert "within a cost per row of" not in written(write, valued, tmp_path / "b")


def test_a_figure_of_many_learners_has_bands_of_the_first_and_the_reference_on_every_panel(
    monkeypatch,
):
    """``first`` leads on two of three data sets, ``second`` on the last."""
    run = ValuedRun(baselines=("constant",))
    for k, dataset in enumerate("abc"):
        skills = {"first": 0.9, "second": 0.7, "third": 0.6, "gbrt": 0.9, "constant": 0.5}
        skills |= {"first": 0.7, "second": 0.9} if dataset == "a" else {}
        for name, skill in skills.items():
            rng = np.random.default_rng(k)
            price = 9 if name == "gbrt" else 4
            run.add(name, *learner_of(rng, [0.5, skill], [1, price], 60), dataset=dataset)
    made = boards(run.info, run.frame, run)
    assert {board.rows[0].learner for board in made} == {"first", "second"}
    for most, expected in ((4, {"first", "second", "third", "gbrt"}), (2, {"first", "gbrt"})):
        monkeypatch.setattr(plot, "MOST_BANDS", most)
        assert plot._banded(made) == expected
        for board in made:
            places, bands = plot._bands(run.info, run, board, run.frame, expected)
            assert {*bands} == expected
            assert places[0] == 0
    assert plot._banded(made, "third") == {"first", "gbrt", "third"}
    assert plot._banded(made, "constant") == {"first", "gbrt"}  # a baseline has none


def test_a_band_changes_where_its_curve_does():
    """A path of more steps than a slider has places."""
    run, steps = ValuedRun(), np.arange(1, 81)
    for name in ("gbrt", "cegb"):
        means = (1 - np.exp(-steps / 20)).tolist()
        run.add(name, *learner_of(np.random.default_rng(0), means, steps.tolist(), 60))
    (board,) = boards(run.info, run.frame, run)
    places, bands = plot._bands(run.info, run, board, run.frame, {"gbrt"})
    (row,) = (row for row in board.rows if row.learner == "gbrt")
    rises = [affordable(point.budget) for point in row.curve]
    assert {*rises} <= {*places}
    assert len(row.curve) > 30
    held = np.array([point.pick.quality for point in row.curve])
    low, high = bands["gbrt"][np.searchsorted(places, rises)].T
    assert ((low <= held) & (held <= high)).all()


def test_the_range_of_a_figure_is_that_of_its_curves():
    """Bands of any width are cut off."""
    figures = pytest.importorskip("matplotlib.figure")
    run = page_run.run()
    board = boards(run.info, run.frame)[0]
    qualities = [point.pick.quality for row in board.rows for point in row.curve]
    bands = {"miser": np.array([[0.0, 2.0]] * 2)}
    axes = figures.Figure().subplots()
    plot._panel(axes, board, np.array([0.0, 30.0]), bands)
    (low, high), room = axes.get_ylim(), 0.1 * (max(qualities) - min(qualities))
    assert min(qualities) - room < low < min(qualities)
    assert max(qualities) < high < max(qualities) + room
