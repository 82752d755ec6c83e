"""Notes on data that say little."""

import re

import numpy as np
import pytest

import bench_core
from bench_core.costs.model import SensorPrices
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.cache import prepare
from bench_core.datasets.cautions import cautions, copied_rows, joined
from bench_core.datasets.user_files import FileData
from bench_core.leaderboard.assembly import boards
from bench_core.results.store import Store
from bench_core.splits import Splits

COPIED = "rows are copies of training rows, label included"


def part(rows, classes=2, queries=0, seed=0):
    X = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
    own = Queries.from_sizes(np.full(queries, rows // queries)) if queries else None
    return Examples(X, np.arange(rows) % classes * 1.0, own)


def splits(train, valid, test, task, **more):
    return Splits(train, valid, test, SensorPrices.additive(np.ones(3)), task, **more).complete()


def test_few_validation_rows_or_queries_are_noted():
    for rows, note in ((499, True), (500, False)):
        found = cautions(splits(part(900), part(rows), part(900), Task.BINARY))
        assert [line[:30] for line in found] == ["fewer than 500 validation rows"] * note
    ranking = (part(900, 3, 90), part(1000, 3, 100), part(900, 3, 90))
    [line] = cautions(splits(*ranking, Task.RANKING))
    assert line.startswith("fewer than 500 validation queries")


def test_classes_of_a_handful_of_rows_are_noted_by_name():
    train, valid, test = part(900), part(600), part(600)
    train.y[:2], valid.y[:9], test.y[0] = 2, 3, 4
    names = ("a", "b", "c", "d", "e")
    data = splits(train, valid, test, Task.MULTICLASS, classes=5, class_names=names)
    assert cautions(data) == ["classes of fewer than 10 rows: c has 2, d has 9, e has 1"]
    valid.y[9] = 3
    assert cautions(data) == ["classes of fewer than 10 rows: c has 2, e has 1"]


def test_copies_of_training_rows_are_counted_with_their_labels():
    train, valid, test = part(1000), part(1000, seed=1), part(1000, seed=2)
    data = splits(train, valid, test, Task.BINARY)
    assert copied_rows(data) == []
    test.X[:200], test.y[:200] = train.X[400:600], train.y[400:600]
    [line] = copied_rows(data)
    assert line == f"at least 20% of test {COPIED}"
    test.y[:200] = 1 - test.y[:200]
    assert copied_rows(data) == []
    # missing cells and both zeros are alike
    train.X[:50, 1], valid.X[:50] = np.nan, train.X[:50]
    valid.X[:50, 1] = np.nan
    train.X[:50, 0], valid.X[:50, 0], valid.y[:50] = 0.0, -0.0, train.y[:50]
    assert copied_rows(data)[0].startswith("at least 5% of validation rows")


def test_validation_rows_that_are_the_test_rows_are_noted(tmp_path):
    train, valid, test = part(1000), part(400, seed=1), part(400, seed=2)
    assert copied_rows(splits(train, valid, test, Task.BINARY)) == []
    [line] = copied_rows(splits(train, valid, valid, Task.BINARY))
    assert line == (
        "at least 90% of test rows are copies of validation rows, label included: points are "
        "chosen on rows that they are judged by"
    )
    test.X[:120], test.y[:120] = valid.X[200:320], valid.y[200:320]
    [line] = copied_rows(splits(train, valid, test, Task.BINARY))
    assert line.startswith("at least 20% of test rows are copies of validation rows")


def test_one_cell_makes_another_row():
    grid = np.array(np.meshgrid(*[np.arange(12)] * 3)).reshape(3, -1).T.astype(np.float32)
    rows, other = Examples(grid, np.zeros(len(grid))), part(9)
    for step in ([1e-6, 0, 0], [0, 0.5, 0], [0.25, -0.25, 0]):
        moved = Examples(grid + np.float32(step) + np.float32([100, 0, 0]), rows.y)
        assert copied_rows(splits(rows, other, moved, Task.REGRESSION)) == []
    assert copied_rows(splits(rows, other, rows, Task.REGRESSION)) != []


@pytest.mark.parametrize("features", [3, 9, 12])  # all, 2/3 and 1/10 of the rows have copies
def test_copies_of_discrete_rows_are_noted_where_chance_gives_fewer(features):
    rng = np.random.default_rng(0)
    chance = rng.integers(0, 2, (3, 1000, features + 1)).astype(float)
    rows = [Examples(own[:, 1:].astype(np.float32), own[:, 0]) for own in chance]
    assert copied_rows(splits(*rows, Task.BINARY)) == []
    if features > 3:
        leaked = np.concatenate([chance[0, :400], chance[2, 400:]])
        test = Examples(leaked[:, 1:].astype(np.float32), leaked[:, 0])
        [line] = copied_rows(splits(*rows[:2], test, Task.BINARY))
        assert line.endswith(f"of test {COPIED}")


def test_files_are_compared(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{b:.3f},{k % 2}" for k, (a, b) in enumerate(rng.normal(size=(300, 2)))]
    (tmp_path / "v.csv").write_text("\n".join(["a,b,y", *lines, *lines]) + "\n")
    data = prepare(FileData(str(tmp_path / "v.csv")), cache_dir=tmp_path).splits
    notes = [note.text for note in data.all_notes]
    cautions = {note.text for note in data.all_notes if note.kind == "caution"}
    # a row's other copy is among the 60% of training with chance .6
    found = [note for note in notes if "are copies of training rows" in note]
    assert {note.split()[2] for note in found} == {"50%"}
    assert len(found) == 2
    assert {*found} == cautions
    # only rows that were divided here can be kept together
    assert all(
        note.endswith(f"{COPIED}; a query column keeps copies in one split") for note in found
    )


def test_notes_on_copies_in_several_splits_are_one_with_the_range_of_shares():
    of_valid = [f"at least {n}% of validation {COPIED}" for n in (10, 5, 20)]
    of_test = f"at least 50% of test {COPIED}"
    few = "fewer than 500 validation rows: savings are uncertain"
    assert [*joined([of_valid[0], few, of_test, *of_valid, few])] == [
        f"at least 5% to 20% of validation {COPIED}",
        few,
        of_test,
    ]
    other = f"data.csv: {of_valid[0]}; a query column keeps copies in one split"
    assert [*joined([other, of_valid[0]])] == [other, of_valid[0]]


def test_a_board_of_several_folds_has_one_note_on_copies(home):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    X[:67] = X[120:187]
    y = np.where(X[:, 0] > 0, "a", "b")
    given = {"learners": {"gbrt": {"trees": 2}}, "executor": "inline", "audit": "off"}
    result = bench_core.run(X=X, y=y, cv=5, **given)
    store = Store(result.store)
    info = store.info("last")
    lines = {str(note) for use in info.datasets for note in use.notes}
    assert len({line for line in lines if f"validation {COPIED}" in line}) > 1
    (board,) = boards(info, store.frame("last"), store)
    for notes in (board.notes, board.cautions, info.notes):
        (line,) = [note for note in notes if f"validation {COPIED}" in note]
        assert re.search(r"at least \d+% to \d+% of validation", line)
