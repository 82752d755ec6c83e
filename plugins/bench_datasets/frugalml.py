"""Predictions of machine-learning services: the recordings used to evaluate FrugalML.

L. Chen, M. Zaharia, J. Zou, "FrugalML: how to use ML prediction APIs more accurately and cheaply"
(NeurIPS 2020). Its authors sent the same images or texts to three commercial services and one free
model. They kept each predicted label and its confidence, and have labels by people. A service is
one sensor of two columns, at its list price in dollars per 10000 calls.

A fold is one of the publisher's five splits: its training half is the first half of

    numpy.random.seed(s); numpy.random.permutation(n)      s = 1, 5, 10, 50, 100

and the other half is the test set. The last rows of the training half validate; the publisher has
no validation rows. Test halves of different folds overlap.
"""

from typing import ClassVar

import numpy as np

from bench_core import Prices, Source, Splits, Task, provide_datasets
from bench_core.datasets.publishers import Download
from bench_core.datasets.readers.tables import read_matrix, read_table
from bench_core.datasets.splitting import take

SEEDS = (1, 5, 10, 50, 100)
TRAIN = 0.8
"""Share of the training half; the rest validates."""

_REPOSITORY = "https://github.com/lchen001/FrugalML"
_RAW = (
    "https://raw.githubusercontent.com/lchen001/FrugalML/d645502ac3581b43f47491ed88ac9bda86f84e59"
)


def _published(
    folder: str, services: tuple[int, ...]
) -> tuple[str, tuple[str, ...], tuple[Download, ...]]:
    """The folder, the files and their downloads. The files are the prices, people's labels, and the
    label and confidence of each service."""
    own = [f"Model{s}_{what}" for s in services for what in ("PredictedLabel", "Confidence")]
    names = ("meta.csv", *(f"{name}.txt" for name in (f"Model{services[0]}_TrueLabel", *own)))
    files = tuple(f"{folder}/{name}" for name in names)
    downloads = (Download(f"{_RAW}/dataset/{folder}/{name}", name) for name in names)
    return folder, files, tuple(downloads)


class RafDb:
    """Emotions of faces, 7 classes."""

    name: ClassVar[str] = "frugalml-rafdb"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "four services' answers on the faces of RAF-DB, dollars per 10000 calls"
    folds: ClassVar[int] = len(SEEDS)
    depends_on: ClassVar[tuple[str, ...]] = ("fold",)
    homepage: ClassVar[str] = _REPOSITORY
    home, files, downloads = _published("mlserviceperformance_RAFDB", (0, 1, 2, 100))

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The publisher's split of this fold; every size uses all rows."""
        meta, truth, *answers = (source.find(name) for name in self.files)
        table = read_table(meta)
        cost, classes = (table.numbers(table.names[c]) for c in (2, 3))
        services = table.column(table.names[1]).texts()
        K = int(classes[0])
        y = read_matrix(truth, 1).codes("1", range(K))
        cells, names = [], []
        for k, service in enumerate(services):
            label = read_matrix(answers[2 * k], 1, rows=len(y)).codes("1", range(K))
            sure = read_matrix(answers[2 * k + 1], 1, rows=len(y)).numbers("1", missing=False)
            cells += [label, sure]
            names += [f"{service}.label", f"{service}.confidence"]
        order = np.random.RandomState(SEEDS[fold]).permutation(len(y))
        half = len(y) // 2
        parts = np.split(order, [int(TRAIN * half), half])
        X = np.column_stack(cells).astype(np.float32)
        sensors = Prices.additive(cost, unit="dollars per 10000 calls")
        prices = sensors.of_columns(np.repeat(np.arange(len(cost)), 2).tolist())
        return Splits(*take(X, y, parts), prices, feature_names=tuple(names))


class FerPlus(RafDb):
    """Emotions of faces, 7 classes."""

    name: ClassVar[str] = "frugalml-ferplus"
    title: ClassVar[str] = "four services' answers on the faces of FER+, dollars per 10000 calls"
    home, files, downloads = _published("mlserviceperformance_FERPLUS", (0, 1, 2, 100))


class Waimai(RafDb):
    """Sentiment of reviews of meals (in Chinese): 1 is positive."""

    name: ClassVar[str] = "frugalml-waimai"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "four services' answers on reviews of Waimai, dollars per 10000 calls"
    home, files, downloads = _published("mlserviceperformance_WAIMAI", (0, 3, 4, 100))


bench_datasets = provide_datasets(RafDb, FerPlus, Waimai)
