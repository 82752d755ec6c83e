"""A model that exists already: a file of LightGBM, XGBoost or CatBoost, metered under our costs.

    bench run --data mine.csv --learners imported --set imported.file=model.txt

Nothing is trained. The file (LightGBM's text, XGBoost's JSON or UBJ, CatBoost's JSON; recognised by
its content) is read by parsers of our own, so the library need not be installed. Its trees are
walked and billed like ours, one point for each reported number of trees; its state holds them, so
that the file is not needed again. The file's content is part of the fit's key: a changed file is
read anew.

Features and classes are matched as ``bench_models.matching`` says. A note tells how, and a warning
where the rows contradict it, or where the model does worse than a constant on validation.

Departures
- Probabilities and means of a logarithmic link become log-odds and label units; an averaged model
  (boosting = rf) stays averaged. Such models, and CatBoost's for classes, have no ``ensemble``.
- Categorical splits, linear leaves and vector-valued XGBoost leaves are refused.
- LightGBM's splits that set zeros apart (zero_as_missing) may count as up to three.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import TASKS
from bench_models.boosting import bench_warm_up as bench_warm_up
from bench_models.libraries import LibraryModel, serve
from bench_models.matching import matched

from bench_core import (
    Examples,
    Features,
    FitContext,
    InputError,
    Prices,
    Splits,
    Task,
    UsageError,
    param,
    provide_learners,
)

if TYPE_CHECKING:
    from bench_trees.importers import Imported

ROWS = 5000
"""Of the validation rows, on which an existing classifier is compared with a constant."""


@dataclass(frozen=True)
class ImportedModel:
    """An existing LightGBM, XGBoost or CatBoost model."""

    name: ClassVar[str] = "imported"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")  # exp and log of a link
    role: ClassVar[str] = "own"
    tasks: ClassVar[frozenset[Task]] = TASKS

    file: str = param("", "the model: LightGBM text, XGBoost JSON or UBJ, CatBoost JSON")

    def stamp(self) -> str:
        """A digest of the file. Raises UsageError or InputError where there is none."""
        return hashlib.sha256(self._content()).hexdigest()[:32]

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LibraryModel:
        """Read the model; ``train`` only tells how its features are counted."""
        model, _, _ = matched(self._read(), context, train.X, self.file)
        context.progress(1, 1)
        return serve(model, prices, {})

    def notes(self, splits: Splits) -> Iterator[tuple[str, bool]]:
        """How columns and classes were matched, and what speaks against that."""
        model, how, doubts = matched(self._read(), splits, splits.train.X, self.file)
        yield f"{self.name}: {'; '.join(how)}", False
        if splits.task in (Task.BINARY, Task.MULTICLASS):
            doubts += _worse_than_a_constant(serve(model, splits.prices, {}), splits)
        yield from ((f"{self.name}: {doubt}", True) for doubt in doubts)

    def _read(self) -> "Imported":
        from bench_trees.importers import ModelError, read_model

        try:
            return read_model(self._content())
        except ModelError as error:
            raise InputError(f"{self.file}: {error}") from error

    def _content(self) -> bytes:
        if not self.file:
            raise UsageError(
                "imported: which model? name it, --set imported.file=model.txt (LightGBM's text, "
                "XGBoost's JSON or UBJ, CatBoost's JSON), and under a learner by --set "
                "LEARNER.base.file=model.txt"
            )
        try:
            return Path(self.file).expanduser().read_bytes()
        except OSError as error:
            raise InputError(f"imported: {self.file}: {error.strerror}") from error
        except RuntimeError as error:  # ~USER, of whom there is none
            raise InputError(f"imported: {self.file} is not a file") from error


def _worse_than_a_constant(model: LibraryModel, splits: Splits) -> list[str]:
    """What is said of a classifier that is right less often than by chance (p < .001)."""
    from scipy.stats import binomtest, mannwhitneyu

    rows = np.random.default_rng(0).permutation(len(splits.valid))[:ROWS]
    y = splits.valid.y[rows].astype(np.int64)
    *_, last = model.predict_path(Features(splits.valid.X[rows]))
    scores, count = last.scores, np.bincount(y, minlength=splits.classes)
    names = splits.class_names or tuple(map(str, range(splits.classes)))
    if splits.task is Task.MULTICLASS:
        right = int(np.sum(scores.argmax(axis=1) == y))
        if binomtest(right, len(y), count.max() / len(y), alternative="less").pvalue >= 0.001:
            return []
        order = ", ".join(f"{name} is {k}" for k, name in enumerate(names))
        return [
            f"worse than a constant on validation: did training number its classes so: {order}?"
        ]
    if not count.all():
        return []
    u, p = mannwhitneyu(scores[y == 1], scores[y == 0], alternative="less")
    if p >= 0.001:
        return []
    turned = f"; --positive {names[0]} turns them" if splits.class_names else ""
    what = "its classes are probably coded the other way round than here"
    return [f"AUC {u / count.prod():.2f} on validation, worse than a constant: {what}{turned}"]


bench_learners = provide_learners(ImportedModel)
