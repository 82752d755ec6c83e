"""Options of ``bench run`` for a user's own file, through the whole command."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commands import Run, write_csv

from bench_core.results.store import Store

RUN = ("run", "--data", "data.csv", "--executor", "inline", "-q", "--task", "binary")


def test_folds_unit_and_reference_reach_the_results(tmp_path: Path, bench: Run) -> None:
    write_csv(tmp_path / "data.csv")
    words = ("-l", "constant,greedy-order", "--cv", "3", "--unit", "ms", "--group", "a,b:2")
    ended = bench(*RUN, *words, "--reference", "greedy-order", "--drop", "c")
    assert ended.status == 0, ended.err
    store = Store()
    info, frame = store.info(), store.frame()
    assert info.reference == "greedy-order"
    assert sorted(set(frame["fold"])) == [0, 1, 2]
    assert set(frame["unit"]) == {"ms"}
    assert [use["rows"]["test"] for use in info.datasets] != [0, 0, 0]
    assert sum(use["rows"]["test"] for use in info.datasets) == 120
    assert {use["features"] for use in info.datasets} == {2}
    assert {use["price_of_everything"] for use in info.datasets} == {2.0}
    best = bench("best", "--budget", "5").out
    command = next(line for line in best.splitlines() if line.startswith("bench run"))
    for option in ("--cv 3", "--unit ms", "--group a,b:2", "--drop c"):
        assert option in command


def test_shares_divide_the_file(tmp_path: Path, bench: Run) -> None:
    write_csv(tmp_path / "data.csv", rows=1000)
    assert bench(*RUN, "-l", "constant", "--share", "0.1,0.3").status == 0
    (use,) = Store().info().datasets
    assert use["rows"]["valid"] == pytest.approx(100, abs=30)
    assert use["rows"]["test"] == pytest.approx(300, abs=45)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--cv", "5", "--share", "0.2"), "--cv divides one file"),
        (("--share", "0.6,0.5"), "--share: give the parts of validation and test as 0.2,0.2"),
        (("--share", "much"), "'much' is not a comma-separated list of fractions"),
        (("--cv", "2"), "--cv"),
        (("--reference", "gbtr"), "did you mean gbrt"),
        (("--group", "x:3"), "--group x:3: unknown column 'x'"),
    ],
)
def test_what_contradicts_itself_is_refused(
    words: tuple[str, ...], says: str, tmp_path: Path, bench: Run
) -> None:
    write_csv(tmp_path / "data.csv")
    ended = bench(*RUN, "-l", "constant", *words)
    assert ended.status == 2
    assert says in ended.err


def test_options_of_files_mean_nothing_to_registered_data(bench: Run) -> None:
    for words in (("--cv", "5"), ("--drop", "x"), ("--unit", "ms"), ("--group", "a:1")):
        ended = bench("run", "--data", "breast-cancer", *words)
        assert ended.status == 2
        assert f"{words[0]} means nothing with a registered data set" in ended.err
