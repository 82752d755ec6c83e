"""The tables of docs/performance.md say what the JSON says, and nothing else changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paired import ratio, value
from write_performance import DOCUMENT, entries, written

DOCUMENT_BEFORE = """# Performance
| a table | of prose |
<!-- speed: bars -->
| work | peer | bar | ratio (quartiles) | ours | peer's | measured | command |
| --- | --- | --- | --- | --- | --- | --- | --- |
| sorting | numpy | 0.5 | 0.9 | 9 s | 10 s | 2020-01-01 | `T/old.py` |
| digging | spade | 0.1 | 0.05 |  |  | 2020-01-01 | `T/dig.py` |
<!-- end -->
Prose <!-- between -->.
<!-- speed: others of sorting -->
<!-- end -->
<!-- speed: others of shaking -->
<!-- end -->
<!-- speed: facts of sorting -->
<!-- end -->
Last words.
"""


def info(side: str, **changes: Any) -> dict[str, Any]:
    shared = {
        "work": "sorting",
        "side": side,
        "scale": 1.0,
        "versions": {"numpy": "2.0"},
        "load": 0.25,
        "command": "pytest -m speed 'tests/speed/test_sort.py::test_it[a]'",
        "ratios": {},
    }
    return shared | changes


@pytest.fixture
def run() -> dict[str, Any]:
    """Ours takes 1, 2, 3 s where the peer takes 4 s."""
    ours = info(
        "ours",
        ratios={
            "numpy": {
                "median": 0.5,
                "q1": 0.375,
                "q3": 0.625,
                "unit": "s",
                "ours": 2.0,
                "theirs": 4.0,
                "bar": 0.4,
                "met": False,
            }
        },
        facts={"MiB": 12345.6, "loss": 0.71914},
        values={"memory": {"value": 1.5, "unit": "GiB", "bar": 2, "met": True}},
    )
    free = {**ours["ratios"]["numpy"], "bar": None, "met": None}
    other = info("ours, labels kept", ratios={"numpy": free})
    return {
        "datetime": "2026-01-02T03:04:05+00:00",
        "commit_info": {"id": "0123456789", "dirty": True},
        "machine_info": {"machine": "x86_64", "cpu": {"brand_raw": "Some CPU", "count": 2}},
        "benchmarks": [
            {"group": "sorting: sorting", "extra_info": side}
            for side in (ours, other, info("numpy"))
        ],
    }


def document(tmp_path: Path, *runs: dict[str, Any], text: str = DOCUMENT_BEFORE) -> str:
    paths = [tmp_path / f"{k}.json" for k in range(len(runs))]
    for path, run in zip(paths, runs, strict=True):
        path.write_text(json.dumps(run))
    return written(text, entries(paths))


SOURCE = (
    "2026-01-02, 0123456+, numpy 2.0, Some CPU, 2 cores, load 0.2 | `T/test_sort.py::test_it[a]` |"
)


def test_a_measured_row_replaces_the_one_that_stood_there(tmp_path, run):
    text = document(tmp_path, run)
    row = "| sorting | numpy | 0.4, **missed** | 0.5 (0.375 to 0.625) | 2 s | 4 s | "
    assert row + SOURCE in text
    assert "| sorting | numpy | 0.5 | 0.9 |" not in text
    assert f"| sorting: memory |  | 2 GiB |  | 1.5 GiB |  | {SOURCE}" in text


def test_comparisons_without_a_bar_and_facts_have_tables_of_their_own(tmp_path, run):
    text = document(tmp_path, run)
    others = text.split("<!-- speed: others of sorting -->")[1].split("<!-- end -->")[0]
    row = "sorting: ours, labels kept | numpy |  | 0.5 (0.375 to 0.625) | 2 s | 4 s | "
    assert row + SOURCE in others
    assert others.count("0.5 (0.375 to 0.625)") == 1  # not the one with a bar
    assert "<!-- speed: others of shaking -->\n<!-- end -->" in text
    assert f"| work | MiB | loss | measured | command |\n{'| --- ' * 5}|\n" in text
    assert f"| sorting | 12346 | 0.7191 | {SOURCE}" in text


def test_what_was_not_measured_and_all_prose_stay_as_they_are(tmp_path, run):
    text = document(tmp_path, run)
    assert "| digging | spade | 0.1 | 0.05 |  |  | 2020-01-01 | `T/dig.py` |\n" in text
    assert text.startswith("# Performance\n| a table | of prose |\n<!-- speed: bars -->\n")
    assert "<!-- end -->\nProse <!-- between -->.\n<!-- speed: others of sorting -->" in text
    assert text.endswith("<!-- end -->\nLast words.\n")
    assert document(tmp_path, run, text=text) == text


def test_figures_of_smaller_data_change_nothing(tmp_path, run):
    for entry in run["benchmarks"]:
        entry["extra_info"]["scale"] = 0.05
    assert document(tmp_path, run) == DOCUMENT_BEFORE


def test_the_later_run_counts_whatever_the_order_of_the_files(tmp_path, run):
    later = json.loads(json.dumps(run).replace("2026-01-02", "2026-03-04"))
    later["benchmarks"][0]["extra_info"]["ratios"]["numpy"]["median"] = 0.3
    for runs in ([run, later], [later, run]):
        text = document(tmp_path, *runs)
        assert "0.3 (0.375 to 0.625)" in text
        assert "2026-01-02" not in text


def test_the_document_keeps_every_row_where_nothing_was_measured():
    assert written(DOCUMENT.read_text(), []) == DOCUMENT.read_text()


def test_a_ratio_is_the_median_of_the_rounds_and_not_of_the_sides():
    found = ratio([1.0, 2.0, 9.0], [10.0, 4.0, 30.0], bar=0.25)
    assert found["median"] == 0.3  # the rounds: 0.1, 0.5, 0.3; of the medians: 0.2
    assert (found["q1"], found["q3"]) == pytest.approx((0.2, 0.4))
    assert (found["ours"], found["theirs"], found["met"]) == (2.0, 10.0, False)
    assert value(3, "GiB", 2)["met"] is False


PAIR = """
import pytest
from paired import compare

turns = []

@pytest.mark.benchmark(group="pairs")
def test_pair(benchmark):
    sides = {"ours": lambda: turns.append("A"), "peer": lambda: turns.append("B")}
    compare(benchmark, sides, work="nothing", peers=["peer"], rounds=3, warm=False,
            bars={("ours", "peer"): -1})
    assert turns == list("ABABAB")
"""


def test_both_sides_stand_in_the_json_and_a_missed_bar_in_the_table(tmp_path):
    (tmp_path / "test_pair.py").write_text(PAIR)
    here = Path(__file__).parent
    (tmp_path / "conftest.py").write_text((here / "conftest.py").read_text())
    command = [sys.executable, "-m", "pytest", "-q", "--benchmark-json", "out.json"]
    alone = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_XDIST")}
    env = alone | {"PYTHONPATH": str(here)}  # as one who measures runs it: on one worker
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MISSED" in done.stdout.split("ratios of paired rounds")[1]
    ours, peer = json.loads((tmp_path / "out.json").read_text())["benchmarks"]
    assert ours["group"] == peer["group"] == "pairs: nothing"
    assert (ours["extra_info"]["side"], peer["extra_info"]["side"]) == ("ours", "peer")
    a, b = (len(entry["stats"]["data"]) for entry in (ours, peer))
    assert (a, b) == (3, 3)
    assert ours["extra_info"]["ratios"]["peer"]["ours"] == ours["stats"]["median"]
