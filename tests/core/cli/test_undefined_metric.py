"""A metric that is not defined on validation or test: every command gives the reason and remedy,
and none claims a saving, a constant that keeps the quality, or a failure."""

import json
import random
import re

import pytest

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

FALSE = ("constant", "keeps", "log --failed", "No learner finished", "stored no values", "as much")
SMALL = ("--set", "gbrt.trees=3", "--executor", "inline")


def csv(path, label):
    rng = random.Random(7)
    rows = [[rng.random() for _ in range(3)] for _ in range(90)]
    lines = [",".join(f"{v:.3f}" for v in (*row, label(row))) for row in rows]
    path.write_text("\n".join(["a,b,c,y", *lines]) + "\n")


def svm(path, label):
    rng = random.Random(7)
    rows = [[rng.random() for _ in range(2)] for _ in range(90)]
    lines = [f"{label(r):g} qid:{i // 6} 1:{r[0]:.3f} 2:{r[1]:.3f}" for i, r in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")


CASES = {
    "auc": (csv, "it holds one class", "accuracy", ("--label", "y", "--task", "binary")),
    "r2": (csv, "all labels are equal", "mse", ("--label", "y", "--task", "regression")),
    "ndcg@3(empty=skip)": (svm, "no document is relevant", "ndcg@5", ()),
}


def run_with(bench, folder, metric, equal, learners="gbrt"):
    """Run a metric on files whose labels are all equal on the part ``equal``."""
    write, why, usual, how = CASES[metric]
    for part in ("train", "valid", "test"):
        write(folder / part, (lambda row: 0) if part == equal else lambda row: int(row[0] > 0.5))
        (folder / part).rename(folder / f"{part}.{write.__name__}")
    files = [f"{part}.{write.__name__}" for part in ("train", "valid", "test")]
    data = ("--data", files[0], "--valid", files[1], "--test", files[2], *how)
    done = bench("run", *data, "--metric", metric, "--learners", learners, *SMALL).ok()
    name = "validation" if equal == "valid" else "test"
    reason = f"{metric} is not defined on {name}: {why}; use more rows or another metric"
    return done, f"{reason}: --metric {usual}"


@pytest.mark.parametrize("metric", CASES)
def test_without_a_validation_quality_no_command_has_an_answer(bench, elsewhere, metric):
    done, reason = run_with(bench, elsewhere, metric, "valid")
    assert f"No conclusion: {reason}." in done.words
    assert "next: bench report -o board.html\n" in done.err  # no command that has no answer
    said = [done.words]
    for words in ("best",), ("best", "--budget", "1"), ("best", "--keep", "0.9"), ("features",):
        ended = bench(*words)
        assert ended.status in (0, 1)
        assert (ended.out + ended.err).count(reason) == 1, words
        said.append(ended.out + ended.err)
    refused = bench("model", "export", "-o", "model")
    assert (refused.status, refused.err.count(reason)) == (2, 1)
    for board in ("board.html", "board.json", "board.md"):
        bench("report", "-o", board).ok()
    page = re.sub("</?span>", "", (elsewhere / "board.html").read_text())  # around options
    assert f"No conclusion: {reason}." in page
    (board,) = json.loads((elsewhere / "board.json").read_text())["datasets"]
    assert board["conclusion"] == [f"No conclusion: {reason}."]
    said += [refused.err, (elsewhere / "board.md").read_text()]
    assert not [(words, text) for text in said for words in FALSE if words in text]
    assert "No learner finished" not in page


def test_without_a_test_quality_the_model_chosen_on_validation_is_shown(bench, elsewhere):
    done, reason = run_with(bench, elsewhere, "auc", "test")
    assert f"No conclusion: {reason}." in done.words
    best = bench("best")
    assert (best.status, best.out.count(reason)) == (0, 1)
    assert " on validation, - on test, at a cost of " in best.out
    bench("report", "-o", "board.html").ok()  # no curve rises
    page = re.sub("</?span>", "", (elsewhere / "board.html").read_text())
    assert f"No conclusion: {reason}." in page
    bench("model", "export", "-o", "model").ok()
    assert not [words for words in FALSE if words in done.words + best.words]


def test_learners_are_not_compared(bench, elsewhere):
    _, reason = run_with(bench, elsewhere, "auc", "valid", "gbrt,cegb")
    compared = bench("compare", "gbrt", "cegb")
    assert reason in compared.out + compared.err
    assert "shown is the best" not in compared.out + compared.err
