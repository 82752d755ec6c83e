"""``bench claims`` on a suite of a user's own."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench_core.plugins import load_registry

SUITE = """
title = "Mine"
datasets = ["adapt-synthetic-2", "letters"]
metrics = ["accuracy"]
reference = "gbrt"
[learners.gbrt]
trees = 3
[learners.constant]
[profiles.standard.learners.gbrt]
trees = 2
"""


def claim(name, holds, **more):
    given = {"dataset": "adapt-synthetic-2", "measure": "quality", **more}
    lines = [f'{key} = "{value}"' for key, value in given.items()]
    return "\n".join(
        [
            f'[[claims]]\nid = "{name}"\nsource = "S"\nsays = "claim {name}"\npublished = "1"',
            f'holds = "{holds}"\nlearners = ["gbrt"]',
            *lines,
            "",
        ]
    )


@pytest.fixture
def suite(elsewhere):
    path = elsewhere / "mine.toml"
    claims = claim("good", ">= 0.5"), claim("none", "", measure="none", why="no figure")
    path.write_text(SUITE + "".join(claims) + claim("away", ">= 0", dataset="letters"))
    return path


def run(bench, *words):
    ended = bench(
        "run", "--suite", "mine.toml", "--data-dir", ".", "--executor", "inline", "-q", *words
    )
    assert ended.status == 0
    return ended


def row(ended, name):
    (line,) = [line for line in ended.out.splitlines() if f"claim {name}" in line]
    return line


def test_before_any_run_a_claim_is_not_run_or_its_data_are_absent(bench, suite):
    ended = bench("claims", "mine.toml", "--data-dir", ".")
    assert ended.status == 0
    assert "not run" in row(ended, "good")
    assert "bench run --suite" in row(ended, "good")
    assert "data absent" in row(ended, "away")
    assert "not measured" in row(ended, "none")
    assert "not run: 1" in ended.out.splitlines()[0]


def test_without_a_run_it_says_in_few_lines_what_can_be_run(on_terminal):
    lines = on_terminal("claims")
    assert len(lines) <= 20
    assert lines[0].startswith("data absent: ")
    assert ["cstc-synthetic", "3", "of", "6"] in [line.split() for line in lines]
    assert "bench run --suite SUITE" in " ".join(lines)


def test_all_suites_together_show_measured_claims_alone(bench, suite, monkeypatch):
    run(bench)
    registry = load_registry()
    monkeypatch.setattr(registry, "suite_files", {"mine": suite})
    monkeypatch.setattr("bench_core.cli.options.registry", lambda *given: registry)
    ended = bench("claims", "--data-dir", ".")
    title, _, good, _, rest, *_ = ended.out.splitlines()
    assert title == "holds: 1, data absent: 1, not measured: 1"
    assert good == row(ended, "good")
    assert rest.split() == ["mine", "0", "of", "3", "letters"]
    assert bench("claims", "--data-dir", ".", "-o", "all.csv").status == 0
    assert len(Path("all.csv").read_text().splitlines()) == 4


def test_claims_are_settled_by_the_run_of_the_largest_profile(bench, suite):
    bought = claim("bought", "", measure="stages").replace('"gbrt"]', '"gbrt", "gbrt"]')
    suite.write_text(suite.read_text() + bought.replace('holds = ""', "near = 1\nwithin = 0"))
    run(bench, "--profile", "standard")
    run(bench)
    ended = bench("claims", "mine.toml", "--data-dir", ".")
    assert ended.status == 0
    assert "holds" in row(ended, "good")
    assert "profile standard" in row(ended, "good")
    names = [line for line in ended.out.splitlines() if "claim " in line]
    assert [*map(names.index, (row(ended, one) for one in ("good", "away")))] == [1, 3]
    assert "holds" in row(ended, "bought")  # what the store keeps beside the export
    assert "claims: holds: 2" in bench("report").out


def test_a_run_with_settings_of_its_own_settles_only_what_no_other_does(bench, suite):
    run(bench, "--profile", "standard", "--set", "gbrt.trees=1")
    assert "--set gbrt.trees=1" in row(bench("claims", "mine.toml", "--data-dir", "."), "good")
    run(bench, "--seeds", "0,1")
    run(bench)
    run(bench, "--seeds", "0-2")
    (line,) = [row(bench("claims", "mine.toml", "--data-dir", "."), "good")]
    assert "--set" not in line
    assert "--set gbrt.trees=1" in row(bench("claims", "1"), "good")  # that run alone
    assert "2 repeats" in row(bench("claims", "2"), "good")
    assert "1 repeat; profile quick" in line


def test_a_claim_that_does_not_hold_ends_with_status_one(bench, suite):
    suite.write_text(suite.read_text().replace(">= 0.5", "> 1"))
    run(bench)
    ended = bench("claims", "mine.toml", "--data-dir", ".")
    assert ended.status == 1
    assert "does not hold" in row(ended, "good")


def test_skipped_data_are_said_by_the_run_and_the_report_sums_up(bench, suite):
    words = ("run", "--suite", "mine.toml", "--data-dir", ".", "--executor", "inline")
    ended = bench(*words, "--no-progress")
    assert "skipped data sets, as their files are not in ." in ended.err
    assert "letters (letter-recognition.data)" in ended.err
    line = "claims: holds: 1, data absent: 1, not measured: 1; 'bench claims mine' lists them"
    assert line in bench("report").out
    assert bench("report", "-o", "board.html").status == 0
    assert "Claims of the papers" in Path("board.html").read_text()


def test_what_a_run_left_out_and_what_is_absent_have_different_words(bench, suite):
    """The run knows of its own data alone, ``bench claims`` of all and of the files."""
    ended = bench(
        "run", "--suite", "mine.toml", "--data-dir", ".", "--executor", "inline", "--no-progress",
        "--data", "adapt-synthetic-2",
    )  # fmt: skip
    assert "claims: holds: 1, not in this run: 1, not measured: 1" in ended.out
    ended = bench("claims", "mine.toml", "--data-dir", ".")
    assert "holds: 1, data absent: 1, not measured: 1" in ended.out
    assert "not run" not in ended.out


def test_a_run_of_no_suite_shows_a_claim_on_its_data(bench, suite):
    """``gbrt`` of two trees and of one, on data of a user's own."""
    two = """learners = [{ learner = "gbrt", trees = 2 }, { learner = "gbrt", trees = 1 }]"""
    shown = claim("shown", ">= 0.5", measure="quality-kept", dataset="letters")
    suite.write_text(
        suite.read_text() + shown.replace('learners = ["gbrt"]', f"anywhere = true\n{two}")
    )
    Path("own.csv").write_text("x,y\n" + "".join(f"{k % 7},{k % 7 > 3}\n" for k in range(90)))
    words = ("--data", "own.csv", "--learners", "gbrt", "--set", "gbrt.trees=[1,2]")
    assert bench("run", *words, "--executor", "inline", "-q").status == 0
    found = row(bench("claims", "mine.toml", "--data-dir", "."), "shown")
    assert "on another data set" in found
    assert "there: not converged" in found
    assert "data absent" in row(bench("claims", "mine.toml", "--data-dir", "."), "away")


def test_an_unfinished_run_settles_no_claim_of_its_suite_and_is_marked_where_it_is_named(
    bench, suite
):
    run(bench)
    with closing(sqlite3.connect("results/bench.db")) as store:
        store.execute("UPDATE run SET state = 'interrupted'")
        store.commit()
    assert "not run" in row(bench("claims", "mine.toml", "--data-dir", "."), "good")
    named = row(bench("claims", "1"), "good")
    assert "holds" in named
    assert "interrupted run" in named


def test_what_takes_long_is_said(bench, suite, monkeypatch):
    line = "comparing claims with the runs in results/bench.db"
    words = "claims", "mine.toml", "--data-dir", "."
    assert line not in bench(*words).err  # in time
    monkeypatch.setattr("bench_claims.command.LONG", 0.0)
    assert line in bench(*words).err
    assert line not in bench(*words, "-q").err


@pytest.mark.parametrize(
    ("word", "names"),
    [("cstc", "cstc-synthetic"), ("Miser", "miser-scene15 or miser-yahoo")],
)
def test_a_part_of_a_suites_name_suggests_it(bench, word, names):
    ended = bench("claims", word)
    assert ended.status == 2
    (found,) = re.findall(r"did you mean (.*)\?", ended.err)
    assert sorted(found.split(" or ")) == names.split(" or ")
