"""What most tests begin with: tables on disk, prepared data, and refusals in one line."""

import numpy as np
import pytest

from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.user_files import FileData
from bench_core.errors import BenchError
from bench_core.splits import SPLITS


def table(path, head, rows, end=""):
    """Write a table of these lines; returns its path as text."""
    path.write_text("\n".join([head, *map(str, rows)]) + "\n" + end, encoding="utf-8")
    return str(path)


def prepared(path, *more, fold=0, **options):
    """Splits of a user's files: training, then validation and test if they have their own."""
    files = [str(one) for one in more]
    return FileData(str(path), *files, **options).prepare(DataFolder("."), "quick", fold, 0)


def prepared_set(dataset, folder, size="standard", fold=0, seed=0):
    """Splits of a data set whose files are in a folder."""
    return dataset.prepare(DataFolder(folder), size, fold, seed).complete(dataset.task)


def parts(splits):
    """Training, validation and test rows."""
    return [getattr(splits, part) for part in SPLITS]


def sizes(splits):
    """The number of rows of each part."""
    return [len(part) for part in parts(splits)]


def all_cells(splits):
    """The cells (n, d) of all rows: training, validation, test."""
    return np.concatenate([part.X for part in parts(splits)])


def every(splits, name=None):
    """The cells of a feature, or the labels, of all rows: training, validation, test."""
    if name is None:
        return np.concatenate([part.y for part in parts(splits)])
    return all_cells(splits)[:, splits.feature_names.index(name)]


def assert_line(line, words):
    """One line that has all these words, separated by bars."""
    assert "\n" not in line.rstrip("\n"), line
    missing = [word for word in words.split("|") if word not in line]
    assert not missing, f"{missing} not in: {line}"


def refused(words, call, *arguments, error=BenchError, **options):
    """Check that a call is refused in one line that has all these words, separated by bars."""
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert_line(str(caught.value), words)
    return str(caught.value)
