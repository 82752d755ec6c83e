"""One saving and one interval have the same words at every door: terminal, papers, files, page,
commands and Python. The words are written out here from the figures of the JSON report."""

import json
import math
import re
from dataclasses import fields
from functools import cache
from html import unescape

import numpy as np
import pytest
from bench_reports import papers, records, terminal
from bench_reports.best import at_quality, within_budget
from bench_reports.page import page
from bench_reports.panels import Panels
from helpers.valued_run import ValuedRun, learner_of

from bench_core.api.result import Best
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.conclusion import conclusion
from bench_core.leaderboard.selection import Choice, Selection
from bench_core.results.budgets import Budget, Target
from bench_core.statistics.comparison import Interval
from bench_core.terminal.tables import Table, plain_lines
from bench_core.terminal.wording import (
    cost,
    difference,
    half,
    in_brackets,
    interval,
    quality,
    saving,
)


@cache
def run():
    """A learner that keeps the quality at a fourth of the cost, and one that only may keep it."""
    rng = np.random.default_rng(5)
    made = ValuedRun()
    made.add("gbrt", *learner_of(rng, [0.6, 0.9, 0.94], [4, 20, 40], 600))
    made.add("cegb", *learner_of(rng, [0.6, 0.98], [2, 9], 600))
    made.add("miser", *learner_of(rng, [0.5, 0.944], [1, 6], 600))
    return made


def written(write, tmp_path, **more):
    write(run().info, run().frame, tmp_path / "report", store=run(), **more)
    return (tmp_path / "report").read_text(encoding="utf-8")


def by_hand(document, learner="cegb"):
    """The figures of a learner in the JSON report."""
    (board,) = document["datasets"]
    (row,) = [row for row in board["learners"] if row["learner"] == learner]
    return row


@pytest.fixture
def figures(tmp_path):
    document = json.loads(written(records.write_json, tmp_path))
    return by_hand(document), by_hand(document, "miser")


def at_limit(command, limit):
    """What ``bench best`` writes of a limit."""
    choice = Choice(run().info, run(), run().frame, "d")
    blocks = []
    for block in command(choice, [choice.at(limit)], (), "runs", ""):
        blocks.append(block)
        if isinstance(block, Table):
            break  # what follows needs a store
    return "\n".join(line for block in blocks for line in lines_of(block))


def lines_of(block):
    return plain_lines(block) if isinstance(block, Table) else [block]


def plain(latex):
    """LaTeX as it is read."""
    return re.sub(r"\\(textbf|underline)\{([^{}]*)\}", r"\2", latex.replace("$\\times$", "x"))


def of_page():
    """The page's cells and, apart, the data of its script."""
    text = page(run().info, boards(run().info, run().frame, run()), run().frame, (), run())
    script = re.search(r'id="data">(.*?)</script>', text, re.S)[1]
    return re.findall(r"<td[^>]*>([^<]*)", unescape(text)), json.loads(script)


def test_a_saving_has_the_same_words_in_every_format(figures, tmp_path):
    sure, likely = figures
    assert 1.95 < sure["cheaper"] < 95
    assert 0.5 < likely["sure"] < 0.95
    ratio, low, high = (f"{sure[name]:.1f}x" for name in ("cheaper", "cheaper low", "cheaper high"))
    ends, chance = f"{low} to {high}", f"{int(100 * likely['sure'])}% sure"
    (board,) = boards(run().info, run().frame, run())
    assert f"{ratio} as much (95%: {ends})." in " ".join(conclusion(board))
    screen = terminal.text_boards(Panels(run().info, run().frame, run(), [board]))
    best = at_limit(at_quality, Target(0.99))
    markdown = written(papers.markdown, tmp_path).replace("**", "").replace("\\~ ", "")
    latex = plain(written(papers.latex, tmp_path))
    for text in (screen, best, markdown, latex):
        line = next(line for line in text.splitlines() if re.search(r"\bcegb +[&|\d]", line))
        assert ratio in line
        assert ends in line
        line = next(line for line in text.splitlines() if re.search(r"\bmiser +[&|\d]", line))
        assert chance.replace("%", "\\%" if text is latex else "%") in line
    cells, data = of_page()
    assert {ratio, ends, chance} <= {*cells}
    assert data["sets"][0]["keeps"]["saved"] == f"{ratio} cheaper"


def test_an_interval_has_the_same_words_in_every_format(tmp_path):
    document = json.loads(written(records.write_json, tmp_path))
    at_best = by_hand(document)["standings"][-1]
    ends = f"{at_best['low']:.4f} to {at_best['high']:.4f}"
    value, low, high = (at_best[name] for name in ("quality", "low", "high"))
    assert value + (high - low) / 2 > 1 >= high  # so both sides are shown
    sides = (f"{side:.4f}".removeprefix("0") for side in (value - low, high - value))
    width = "-{}/+{}".format(*sides)
    _, data = of_page()
    cegb = [name for name, *_ in data["learners"]].index("cegb")
    curve = next(curve for curve in data["sets"][0]["views"][0]["curves"] if curve["l"] == cegb)
    assert "{:.4f} to {:.4f}".format(*curve["sure"][-1]) == ends  # what its script writes
    best = at_limit(within_budget, Budget(math.inf))
    assert width in next(line for line in best.splitlines() if line.startswith("cegb "))
    (board,) = boards(run().info, run().frame, run())
    panels = Panels(run().info, run().frame, run(), [board], ["best ±"])
    assert width in terminal.text_boards(panels)
    for write in (papers.markdown, papers.latex):
        assert width in written(write, tmp_path, columns=["best ±"])
    (answer,) = [s for s in Choice(run().info, run(), run().frame, "d").at(Budget(math.inf)).found
                 if s.learner == "cegb"]  # fmt: skip
    more = {field.name: getattr(answer, field.name) for field in fields(Selection)}
    extra = {"features": None, "measured": True, "falls": False, "level": (), "reason": ""}
    assert f" on test (95%: {ends}) at " in repr(Best(**more, **extra, exported=lambda: None))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (saving(3.44), "3.4x"),
        (saving(math.inf), "free"),
        (saving(math.nan), "-"),
        (saving(math.nan, 0.934), "93% sure"),
        (saving(1.9, 0.5), "50% sure"),
        (saving(2.0, 0.947), "94% sure"),  # never the level, which would be sure
        (saving(2.0, 0.9499), "94% sure"),
        (saving(2.0, 0.29), "29% sure"),
        (saving(2.0, 0.95, "2 of 3"), "sure in 2 of 3"),
        (saving(2.0, 0.998, "2 of 3"), "sure in 2 of 3"),
        (interval(Interval(0.98, 12.34), saving), "0.98x to 12.3x"),
        (interval(Interval(0.9972, 1.0004), saving), "<1x to 1.0x"),
        (interval(Interval(1.84, math.inf), saving), "at least 1.8x"),
        (interval(Interval(math.inf, math.inf), saving), "free"),
        (interval(Interval(math.nan, math.nan), saving), "-"),
        (interval(Interval(-0.0312, 0.00124), difference), "-0.0312 to +0.0012"),
        (interval(Interval(-0.00012, 0.0009), difference), "-0.0001 to +0.0009"),
        (interval(Interval(-0.0, 2.07e-5), difference), "+0.0000 to <+0.0001"),
        (interval(Interval(-2.7e-5, 5e-5), difference), ">-0.0001 to +0.0001"),
        (difference(-0.5), "-0.5000"),
        (difference(12.345), "+12.35"),
        (difference(math.nan), "-"),
        (difference(-2.7e-5, 0.0004), "-2.7e-05"),  # of errors that are written so, too
        (in_brackets(Interval(0.5, 1234.5), quality), " (95%: 0.5000 to 1234)"),
        (in_brackets(Interval(math.nan, math.nan), quality), ""),
        (half(Interval(0.7, 0.7072)), ".0036"),
        (half(Interval(0.7, 0.7072), 3), ".004"),
        (half(Interval(0.7, 0.7002), 3), "<.001"),
        (half(Interval(0.7, 0.70006)), "<.0001"),
        (half(Interval(0.0004, 0.00046), value=0.00043), "3e-05"),
        (half(Interval(1, 35.5)), "17.2"),
        (half(Interval(0.8659, 1.0), value=0.9587), "-.0928/+.0413"),
        (half(Interval(0.0, 0.03), 3, value=0.01), "-.010/+.020"),
        (half(Interval(0.87, 1.0), value=1.0), "-.1300"),
        (half(Interval(0.9, 0.98), value=0.95), ".0400"),
        (half(Interval(0.8, 1.2), value=0.95), ".2000"),
        (half(Interval(math.nan, math.nan)), "-"),
        (quality(0.79904, 3), "0.799"),
        (quality(0.79904), "0.7990"),
        (quality(-1.5), "-1.5000"),
        (quality(123.456), "123.5"),
        (quality(math.nan), "-"),
        (quality(-0.0), "0.0000"),  # the least regret in an error
        (quality(2.07e-5), "2.1e-05"),  # two of such errors were both 0.0000, in different tiers
        (quality(0.001), "0.0010"),
        (cost(16948.2), "16948"),
        (cost(99.994), "99.99"),
        (cost(0.0), "0.00"),
        (cost(0.00123), "0.0012"),
        (cost(math.nan), "-"),
        (saving(250.4), "250x"),
    ],
)  # fmt: skip
def test_texts_of_numbers_and_intervals(text, shown):
    assert text == shown
