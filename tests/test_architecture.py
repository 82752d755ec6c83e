"""The page that newcomers read first names files that are there and hold what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
ANSWERS = {
    "Where is a cost computed?": ("def feature_cost", "class Meter"),
    "Where is an option of a run declared, with its help, check and Python argument?": (
        "class RunRequest",
    ),
    "Where does a request become results?": ("def carried_out",),
    "Where is a plan made?": ("def make_plan",),
    "What decides whether an old result can be reused?": ("def fit_key", "def score_key"),
    "Where is a model asked for predictions?": ("def predict_split", ".predict_path("),
    "Where is a model audited?": ("def replay",),
    "Where is the model that I take home?": ("class Predictor", "class Program"),
    "Where is an operating point chosen?": ("def best_points", "def under_budget"),
    "Where is a row written to the store?": ("def trial", "def put"),
    "Where is a metric defined?": ("class Ndcg", "class Accuracy", "class MeanSquaredError"),
    "Where is a data file read?": ("def read_svmlight", "def read_table"),
    "Which function is which equation of a paper?": ("eq. 8",),
}


def answers() -> dict[str, list[str]]:
    """Question -> files, from the table of the page."""
    section = PAGE.split("## Everyday questions")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]*\?) \| (.*) \|$", section, flags=re.M)
    return {question: re.findall(r"`([\w./]+)`", cell) for question, cell in rows}


def test_every_question_is_answered() -> None:
    assert list(answers()) == list(ANSWERS)


@pytest.mark.parametrize("question", ANSWERS)
def test_the_files_of_an_answer_hold_it(question: str) -> None:
    text = "\n".join((ROOT / file).read_text(encoding="utf-8") for file in answers()[question])
    for mark in ANSWERS[question]:
        assert mark in text, f"{mark!r} is not in {answers()[question]}"


def test_every_path_of_the_page_exists() -> None:
    paths = re.findall(r"`((?:bench_core|plugins|reports|suites|tests)/[\w./]*)`", PAGE)
    assert len(paths) > 20
    made = {"bench_core/_suites"}  # by the wheel
    assert [p for p in paths if p not in made and not (ROOT / p).exists()] == []


def test_the_page_names_every_part_of_the_core() -> None:
    tables = PAGE.split("## Project layout")[1].split("\n## ")[0]
    parts = {p.stem for p in (ROOT / "bench_core").iterdir() if p.suffix == ".py" or p.is_dir()}
    unnamed = {p for p in parts if not p.startswith("__") and not re.search(rf"\b{p}\b", tables)}
    assert unnamed - {"_suites"} == set()
