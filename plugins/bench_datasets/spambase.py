"""UCI Spambase: 4601 e-mails, 57 frequencies and run lengths; is it spam? Every feature costs 1.

Split as in the literature on active feature acquisition (I. Covert et al., ICML 2023; their code):
numpy's default generator, seeded by 0, shuffles the rows of the publisher's file. The first 20%
test, the next 20% validate. Another seed draws another split. A copy of the file as CSV with a
header line, as in that code, is read too.
"""

from typing import ClassVar

import numpy as np

from bench_core import Prices, Source, Splits, Task, provide_datasets
from bench_core.datasets.publishers import Download, from_uci
from bench_core.datasets.readers.tables import read_matrix
from bench_core.datasets.splitting import take

WORDS = (
    "make", "address", "all", "3d", "our", "over", "remove", "internet", "order", "mail",
    "receive", "will", "people", "report", "addresses", "free", "business", "email", "you",
    "credit", "your", "font", "000", "money", "hp", "hpl", "george", "650", "lab", "labs",
    "telnet", "857", "data", "415", "85", "technology", "1999", "parts", "pm", "direct", "cs",
    "meeting", "original", "project", "re", "edu", "table", "conference",
)  # fmt: skip
NAMES = (
    *(f"word_freq_{word}" for word in WORDS),
    *(f"char_freq_{character}" for character in ";([!$#"),
    *(f"capital_run_length_{kind}" for kind in ("average", "longest", "total")),
)
FILE, COPY = "spambase.data", "spambase.csv"
ROWS = 4601
SHARE = 0.2  # of the rows for testing, and again for validation


class Spambase:
    """Spam against other e-mails."""

    name: ClassVar[str] = "spambase"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "UCI Spambase, 57 features of e-mails"
    files: ClassVar[tuple[str, ...]] = (FILE, COPY)
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)
    downloads: ClassVar[tuple[Download, ...]] = from_uci(94, "spambase.zip", FILE)
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/94"

    def complete(self, source: Source) -> bool:
        """True for the publisher's file or the copy."""
        return source.has(*self.files)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Shuffle by ``seed``; every size uses all rows."""
        path = source.find(*self.files)
        copy = path.name.startswith(COPY)
        table = read_matrix(path, len(NAMES) + 1, rows=ROWS, skip=int(copy))
        X, y = table.matrix(table.names[:-1]), table.codes(table.names[-1], (0, 1))
        order = np.arange(len(X))
        np.random.default_rng(seed).shuffle(order)
        part = int(SHARE * len(X))
        test, valid, train = np.split(order, [part, 2 * part])
        prices = Prices.additive(np.ones(len(NAMES)))
        return Splits(*take(X, y, (train, valid, test)), prices, feature_names=NAMES)


bench_datasets = provide_datasets(Spambase)
