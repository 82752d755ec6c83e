"""``bench log`` and ``bench run -v``: how attempts ended, with tracebacks and output."""

from pathlib import Path

import pandas as pd
import pytest
from helpers.commands import DATA, QUICK
from helpers.stores import ABOUT

from bench_core.cli.store import csv_of
from bench_core.execution.contract import CUT, LONGEST_TEXT
from bench_core.results.writer import open_writer

CHATTY = '''
import sys
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from bench_core import hookimpl
from mine import Toy

@dataclass(frozen=True)
class Chatty(Toy):
    """Writes a lot, then fails in numpy."""
    name: ClassVar[str] = "chatty"
    def fit(self, train, valid, prices, context):
        print("first line", "x" * 30000)
        print("last line on stdout")
        print("last line on stderr", file=sys.stderr)
        return np.linalg.inv(np.zeros((2, 2)))

@hookimpl
def bench_learners():
    return [Chatty]
'''
EXECUTORS = pytest.mark.parametrize("executor", ["inline", "local"])


@pytest.fixture
def chatty(material):
    (material / "chatty.py").write_text(CHATTY)
    return material


def blocks(text):
    """The lines of each attempt."""
    found = []
    for line in text.splitlines():
        found += [[]] if not line.startswith(" ") else []
        found[-1].append(line)
    return found


@EXECUTORS
def test_the_log_has_traceback_and_output_of_a_failed_fit(bench, chatty, executor):
    words = (*DATA, "-p", "mine", "-p", "chatty", "-l", "chatty", "--executor", executor)
    assert bench("run", *words).status == 1
    fit, score = blocks(bench("log").out)
    assert fit[0].startswith("failed fit chatty on data.csv (")
    assert fit[1].startswith("  LinAlgError: Singular matrix (_linalg.py:")
    cut = next(i for i, line in enumerate(fit) if line.strip() == CUT)
    own = [line.strip() for line in fit[2:cut]]
    assert own[0].startswith(f'File "{chatty / "chatty.py"}", line ')
    assert own[1] == "return np.linalg.inv(np.zeros((2, 2)))"
    assert own[-1] == "numpy.linalg.LinAlgError: Singular matrix"
    assert not any("bench_core" in line or "numpy/linalg" in line for line in own)
    below = "\n".join(fit[cut:])
    assert "bench_core/execution/trial.py" in below
    assert "numpy/linalg" in below
    output = fit[fit.index("    output:") + 1 :]
    assert [line.strip() for line in output[-2:]] in (
        ["last line on stdout", "last line on stderr"],
        ["last line on stderr", "last line on stdout"],
    )
    assert sum(map(len, output)) <= LONGEST_TEXT + 4 * len(output)
    assert score[0].startswith("failed score chatty on data.csv (")
    assert len(score) == 2  # its fit has the traceback


def test_the_log_counts_attempts_and_failed_leaves_out_what_ended_well(bench, material):
    for _ in range(2):
        assert bench("run", *QUICK, "--learners", "toy,broken").status == 1
    heads = [block[0] for block in blocks(bench("log").out)]
    assert sum(head.startswith("ok ") for head in heads) == 2
    failed = [block[0] for block in blocks(bench("log", "--failed").out)]
    assert [head.split(" (")[0] for head in failed] == [
        "failed fit broken on data.csv",
        "failed score broken on data.csv",
    ] * 2
    assert [", attempt 2," in head for head in failed] == [False, False, True, True]


def test_a_run_without_a_finished_trial_tells_its_state(bench, material):
    with open_writer(material / "results/bench.db") as writer:
        writer.begin("r", ABOUT, ["t", "u"])
        assert "is running: 0 of 2 trials done; wait for the first" in bench("report").err
    assert "is interrupted: 0 of 2 trials done; bench run continues it" in bench("best").err


def test_a_log_without_failures_is_one_line(bench, material):
    bench("run", *QUICK, "--learners", "toy")
    assert bench("log", "--failed").out == "nothing failed\n"
    bench("log", "-o", "log.txt").ok()
    assert len(Path("log.txt").read_text().splitlines()) == 2


def test_verbose_shows_the_traceback_as_it_happens(bench, material):
    said = bench("run", *QUICK, "--learners", "broken", "-v").err
    assert CUT in said
    assert said.index("mine.py") < said.index(CUT) < said.index("bench_core/execution")
    assert CUT not in bench("run", *QUICK, "--learners", "broken").err
    assert "why trials failed: bench log --failed" in said


def test_a_learner_that_prints_leaves_stdout_to_the_result(bench, chatty):
    ended = bench("run", *QUICK, "-p", "chatty", "--learners", "chatty")
    assert "last line on stdout" not in ended.out
    assert "last line on stdout" in ended.err


def test_labels_that_are_numbers_stay_numbers_in_a_table_of_rows():
    frame = pd.DataFrame({"label": pd.Categorical([-1, 1]), "text": pd.Categorical(["=a", "b"])})
    assert csv_of(frame).decode() == "label,text\n-1,'=a\n1,b\n"
