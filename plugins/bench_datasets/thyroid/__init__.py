"""UCI thyroid disease (ann-thyroid): 3 classes, 21 features, prices of real medical tests.

Prices (dollars) are Turney's (``_turney``), from the publisher's cost file: TSH 22.78, T3 11.41,
TT4 14.51, T4U 11.41, all others 1. FTI is computed from TT4 and T4U: it is free once both are
bought. Every blood test after the first costs 2.10 less; ``discount=false`` charges all in full.

The rows are in ``ann-thyroid.csv.gz`` (CC BY 4.0; the ``README.md`` there has the attribution).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench_core import Examples, Prices, Source, Splits, Task, param, provide_datasets
from bench_core.datasets.readers.tables import read_matrix
from bench_core.datasets.splitting import cut_by_class
from bench_datasets._turney import DRAWING_BLOOD, turney_prices

NAMES = (
    "age", "sex", "on_thyroxine", "query_on_thyroxine", "on_antithyroid_medication", "sick",
    "pregnant", "thyroid_surgery", "I131_treatment", "query_hypothyroid", "query_hyperthyroid",
    "lithium", "goitre", "tumor", "hypopituitary", "psych", "TSH", "T3", "TT4", "T4U", "FTI",
)  # fmt: skip
BLOOD_TESTS = {"TSH": 22.78, "T3": 11.41, "TT4": 14.51, "T4U": 11.41}
ROWS = Path(__file__).with_name("ann-thyroid.csv.gz")
FUNCTION = ("hyperthyroid", "hypothyroid", "normal")  # classes 1, 2 and 3 of the file
TRAINING = 3772  # the first rows are the publisher's training set, the others its test set


@dataclass(frozen=True)
class Thyroid:
    """Thyroid disease: hyper-, hypo- and normal function are the classes 0, 1 and 2."""

    name: ClassVar[str] = "thyroid"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "UCI ann-thyroid with the prices of its medical tests, included"
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/102"

    discount: bool = param(True, "blood tests after the first cost 2.10 less")

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The publisher's test set; 30% of each class of its training set validate."""
        table = read_matrix(ROWS, len(NAMES) + 1)
        X, y = table.matrix(table.names[:-1]), table.codes(table.names[-1], (1, 2, 3)) - 1
        train, valid = (
            Examples(X[rows], y[rows]) for rows in cut_by_class(y[:TRAINING], (0.7, 0.3), seed)
        )
        test = Examples(X[TRAINING:], y[TRAINING:])
        prices = thyroid_prices(self.discount)
        return Splits(train, valid, test, prices, feature_names=NAMES, class_names=FUNCTION)


def thyroid_prices(discount: bool) -> Prices:
    """Turney's prices, with or without the discount for later blood tests."""
    column = {name: j for j, name in enumerate(NAMES)}
    cost = {name: BLOOD_TESTS.get(name, 1.0) for name in NAMES}
    derived = {column["FTI"]: (column["TT4"], column["T4U"])}
    groups = ((DRAWING_BLOOD, tuple(BLOOD_TESTS)),) if discount else ()
    return turney_prices(cost, groups, derived)


bench_datasets = provide_datasets(Thyroid)
