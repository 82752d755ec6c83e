"""Boards for papers, by a run of known values and one with hostile names."""

import csv
import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from bench_reports import exports, figure_files, plot
from bench_reports.palette import COLOURS, look
from helpers import example, page_run
from helpers.valued_run import ValuedRun, learner_of

from bench_core.errors import UsageError
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.certainty import all_certified, certified
from bench_core.leaderboard.reports import paragraph
from bench_core.planning.invocation import command
from bench_core.terminal.wording import times


@pytest.fixture(scope="module")
def valued():
    """Two good learners, a bad one, a costly one and a baseline; all begin with a free constant."""
    rng, run = np.random.default_rng(0), ValuedRun(baselines=("constant",))
    free = np.random.default_rng(1).normal(0.2, 0.2, 300)
    for name, skill, price in (
        ("good", [0.7, 0.9], [1, 4]),
        ("alike", [0.7, 0.9], [1, 4]),
        ("bad", [0.4, 0.5], [1, 4]),
        ("gbrt", [0.9], [9]),
    ):
        quality, cost = learner_of(rng, skill, price, 300)
        quality, cost = (
            [np.vstack([free, q]) for q in quality],
            [np.vstack([0 * free, c]) for c in cost],
        )
        run.add(name, quality, cost)
    run.add("constant", *learner_of(rng, [0.2], [0], 300))
    return run


Write = Callable[..., None]


def written(write, run, path):
    write(run.info, run.frame, path, store=run)
    return path.read_text()


class Hostile:
    info, frame = example.info(), example.frame()

    def values(self, *which, **more):
        return []


def cells(line, separator):
    return [cell.strip() for cell in line.strip("| \\").split(separator)]


def test_the_best_is_bold_and_what_ties_with_it_is_marked(valued, tmp_path):
    (board,) = all_certified(valued.info, valued, valued.frame)
    last = {one.learner: one for one in board.at[-1].rows}
    assert {name for name, one in last.items() if one.tier == 1} == {"good", "alike", "gbrt"}
    best = max(("good", "alike", "gbrt"), key=lambda name: last[name].quality)
    lines = written(exports.latex, valued, tmp_path / "b.tex").splitlines()
    found = {row[0]: row for row in (cells(x, "&") for x in lines if x.count("&") > 3)}
    for name, one in last.items():
        cell = found[name][-3]
        assert cell.startswith("\\textbf{") == (name == best)
        assert cell.startswith("\\underline{") == (one.tier == 1 and name != best)
        assert f"{one.quality:.4f}" in cell
    up, down = re.findall(r"[+-](0\.\d+)\}", found["good"][-3])
    low, high = last["good"].interval
    assert float(up) == pytest.approx(high - last["good"].quality, abs=5e-5)
    assert float(down) == pytest.approx(last["good"].quality - low, abs=5e-5)
    text = written(exports.markdown, valued, tmp_path / "b.md")
    (line,) = [x for x in text.splitlines() if x.startswith(f"| {best} ")]
    assert cells(line, " | ")[-3].startswith(f"**{last[best].quality:.4f}**")


def test_baselines_stand_below_a_rule_and_budgets_in_the_caption(valued, tmp_path):
    lines = written(exports.latex, valued, tmp_path / "b.tex").splitlines()
    first = [x.split("&")[0].strip() for x in lines if "&" in x or "rule" in x]
    assert first.index("constant") == len(first) - 2  # before the last rule
    assert first[first.index("constant") - 1] == "\\midrule"
    (caption,) = [x for x in lines if "\\caption" in x]
    assert "accuracy on test (higher is better) within a mean cost per row of " in caption
    (heading,) = [x for x in lines if "learner &" in x]
    (budgets,) = re.findall(r"per row of ([\d., ]+) \(units\)", caption)
    assert cells(heading, "&")[1:-3] == budgets.split(", ")
    assert len(budgets.split(", ")) == 5


def test_nothing_in_names_and_errors_is_read_by_latex_or_markdown(tmp_path):
    latex = written(exports.latex, Hostile(), tmp_path / "b.tex")
    assert "\\textless{}img src=x onerror=alert(1)\\textgreater{}" in latex
    for line in latex.splitlines():
        inner = re.sub(r"\\[\\{}$&#_%]|\\[a-zA-Z]+", "", line)  # commands and escaped characters
        if "&" not in line:
            assert not re.search(r"[#_^~]", inner.replace("\\label", "").replace("^{+", "")), line
        assert inner.count("{") == inner.count("}")
    assert "a generated stand-in" in latex
    assert "Use them to check the installation, not to compare methods." in latex
    markdown = written(exports.markdown, Hostile(), tmp_path / "b.md")
    assert "\\<img src=x onerror=alert(1)\\>" in markdown
    assert "<img" not in markdown.replace("\\<img", "")


def test_a_table_for_programs_has_a_row_for_each_learner_and_budget(valued, tmp_path):
    rows = list(csv.DictReader(StringIO(written(exports.write_csv, valued, tmp_path / "b.csv"))))
    (board,) = all_certified(valued.info, valued, valued.frame)
    assert len(rows) == 5 * len(board.at)
    unlimited = {row["learner"]: row for row in rows if not row["budget"]}
    assert {name: row["role"] for name, row in unlimited.items() if row["role"]} == {
        "gbrt": "reference",
        "constant": "baseline",
    }
    own = next(one for one in board.at[-1].rows if one.learner == "bad")
    assert float(unlimited["bad"]["quality"]) == pytest.approx(own.quality)
    assert (unlimited["bad"]["tier"], unlimited["bad"]["best_rank"]) == ("2", "4")
    (shown,) = boards(valued.info, valued.frame)
    sure = certified(valued.info, valued, shown, valued.frame)
    good = next(row for row in sure.rows if row.learner == "good")
    row = {name: float(unlimited["good"][name]) for name in exports.TITLES[-12:-1]}
    kept = (good.saving, *good.saved.interval, *good.saved.wide, good.area.value)
    assert [*row.values()][:6] == pytest.approx(kept)
    assert row["area_low"] < row["area"] < row["area_high"]
    assert row["regret_low"] <= row["regret"] <= row["regret_high"]
    low, high = map(times, good.saved.interval)
    for write in (exports.markdown, exports.latex):
        assert f"{times(good.saving)} [{low}, {high}]" in written(write, valued, tmp_path / "b")
    document = json.loads(written(exports.write_json, valued, tmp_path / "b.json"))
    (board,) = document["datasets"]
    assert board["budgets"][-1] is None
    (bad,) = [one for one in board["learners"] if one["learner"] == "bad"]
    assert bad["standings"][-1]["quality"] == pytest.approx(own.quality)
    (best,) = [one for one in board["learners"] if one["learner"] == "good"]
    assert [*best["saving_interval"].values()] == pytest.approx([*good.saved.interval])
    assert best["area"]["value"] == pytest.approx(good.area.value)
    free, first, _ = (point["budget"] for point in bad["curve"])
    assert free == 0
    assert math.isclose(first, 1, rel_tol=0.1)


@pytest.mark.parametrize(
    ("write", "suffix"),
    [
        (exports.latex, ".tex"),
        (exports.markdown, ".md"),
        (exports.write_csv, ".csv"),
        (exports.write_json, ".json"),
        *((plot.write, suffix) for suffix in figure_files.SUFFIXES),
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


def test_a_figure_has_title_axes_and_the_name_of_each_learner(valued, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(figure_files.STYLE, "svg.fonttype", "none")  # letters, not their outlines
    info = replace(valued.info, title="Ranking for $5")
    plot.write(info, valued.frame, tmp_path / "c.svg", store=valued)
    text = (tmp_path / "c.svg").read_text()
    for word in ("good", "alike", "bad", "gbrt", "constant", "baselines"):
        assert f">{word}<" in text, word
    assert ">95% interval of first and reference<" in text
    assert "accuracy on test (higher is better)" in text
    assert "Ranking for" in text


def test_costs_on_a_figure_are_plain_numbers_and_a_learner_has_the_colour_of_its_name(
    tmp_path, monkeypatch
):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(figure_files.STYLE, "svg.fonttype", "none")
    run = page_run.run()  # costs from 1 to 30: a logarithmic axis
    plot.write(run.info, run.frame, tmp_path / "c.svg", store=run)
    text = (tmp_path / "c.svg").read_text()
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
    x, y = axes.lines[0].get_xydata().T
    corners = axes.collections[0].get_paths()[0].vertices
    for sign in (1, -1):
        edge = {a: b for a, b in corners if sign * (b - np.interp(a, x, y)) > 0}
        assert np.allclose([edge[a] for a in x], y + sign * 0.01)
    assert x[0] == 1


def test_a_figure_of_many_learners_has_bands_of_the_first_and_the_reference(valued, monkeypatch):
    pytest.importorskip("matplotlib")
    (board,) = boards(valued.info, valued.frame)
    methods = [row.learner for row in board.rows if not row.baseline]
    named = {methods[0], *(row.learner for row in board.rows if row.reference)}
    for most, expected in ((len(methods), {*methods}), (len(named), named)):
        monkeypatch.setattr(plot, "MOST_BANDS", most)
        places, bands = plot._bands(valued.info, valued, board, valued.frame)
        assert {*bands} == expected
        assert places[0] == 0
    assert len(named) < len(methods)


def test_without_matplotlib_a_figure_is_refused_in_one_line(valued, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"needs matplotlib; pip install 'budget-bench\[plot\]'"):
        plot.write(valued.info, valued.frame, tmp_path / "c.svg")


def test_the_paragraph_on_methods_has_versions_splits_seeds_and_configurations():
    text = paragraph(example.info(), example.frame())
    assert "Budget Bench 0.1.0 (two cores)" in text
    assert "forest (binary) has 1000/500/500 rows" in text
    assert "seeds 0, 1, 2 on fold 0, 3 repeats" in text
    assert "miser (1) 3" in text
    assert "bench run --suite yahoo --learners miser,cegb." in text


def test_the_command_leaves_out_how_a_run_is_carried_out():
    request = {"data": ["x.csv"], "workers": 2, "store": "s.db", "settings": ["a.b=1", "a.c=2"]}
    request |= {"strict_data": True, "seeds": [0, 1], "index_base": 1, "metrics": ["auc"]}
    words = "bench run --data x.csv --metric auc --set a.b=1 --set a.c=2 --seeds 0,1 --strict-data"
    assert command(request) == words
