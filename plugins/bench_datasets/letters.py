"""UCI Letter Recognition: 20000 images of capital letters, 16 integers each.

The papers' task (ADAPT's released code): is the letter in N..Z; rows in file order, 12000 for
training, 4000 for validation, 4000 for testing; every feature costs 1.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from bench_core import InputError, Prices, Source, Splits, Task, provide_datasets
from bench_core.arrays import FloatArray
from bench_core.datasets.publishers import Download, from_uci
from bench_core.datasets.readers.tables import read_matrix
from bench_core.datasets.splitting import take

NAMES = (
    "x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar", "y2bar", "xybar",
    "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx",
)  # fmt: skip
ROWS = (12000, 4000, 4000)
FILE = "letter-recognition.data"


class Letters:
    """Letters A..M (label 0) against N..Z (label 1), as in the papers."""

    name: ClassVar[str] = "letters"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "UCI Letter Recognition, N..Z against A..M"
    files: ClassVar[tuple[str, ...]] = (FILE,)
    depends_on: ClassVar[tuple[str, ...]] = ()
    downloads: ClassVar[tuple[Download, ...]] = from_uci(59, "letter+recognition.zip", FILE)
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/59"
    home: ClassVar[str] = "letters"
    sums: ClassVar[Mapping[str, str]] = {
        FILE: "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"
    }

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the three consecutive splits; every size uses all rows."""
        table = read_matrix(source.find(*self.files), 17, rows=sum(ROWS), text=(0,))
        letter = table.frame["1"].astype("str")
        other = ~letter.str.fullmatch("[A-Z]").to_numpy(bool)
        if other.any():
            row = int(other.argmax())
            raise InputError(
                f"{table.place(row)}: {letter[row]!r} is not a capital letter; get the file again"
            )
        X = table.matrix(table.names[1:])
        number = np.array([ord(c) - ord("A") for c in letter], dtype=np.float64)
        return Splits(
            *take(X, self.labels(number), np.split(np.arange(len(X)), np.cumsum(ROWS)[:-1])),
            Prices.additive(np.ones(len(NAMES))),
            feature_names=NAMES,
        )

    def labels(self, number: FloatArray) -> FloatArray:
        """Labels (n,) from the letters' numbers, A is 0."""
        return (number >= ord("N") - ord("A")).astype(np.float64)


class Letters26(Letters):
    """The 26 letters as classes."""

    name: ClassVar[str] = "letters-26"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "UCI Letter Recognition, 26 classes"

    def labels(self, number: FloatArray) -> FloatArray:
        """Each letter is a class."""
        return number


bench_datasets = provide_datasets(Letters, Letters26)
