"""An existing model, a file of LightGBM, XGBoost or CatBoost, billed under our costs.

    bench run --data mine.csv --learners imported --set imported.file=model.txt

Nothing is trained, and the mark ``trained elsewhere`` says so. The model is judged as it is: its
only operating point has all trees of the file.

The file (LightGBM's text, XGBoost's JSON or UBJ, CatBoost's JSON; recognised by its content) is
read by our own parsers, so the library need not be installed. Its trees are served and billed like
ours. They are stored with the model, so the file is not needed again. The file's content is part of
the fit's key: a changed file is read again.

Features and classes are matched by ``bench_models.matching``. A note reports the match. A warning
is given if the rows contradict it, or if the model is worse than a constant on validation. Two
classes the wrong way round are refused.

Departures
- Probabilities and means of a logarithmic link become log-odds and label units; an averaged model
  (boosting = rf) stays averaged. Such models, and CatBoost's for classes, have no ``ensemble``.
- Two outputs of two classes become one score, their difference: the log-odds of the second.
- Categorical splits (of LightGBM, XGBoost), and LightGBM's thresholds on the codes of ordered
  categories, become splits on codes or on features of 0 and 1, so one may count as several.
  Categories are matched by name; unknown names are treated as missing.
- LightGBM's splits with zero_as_missing may count as up to three.
- Linear leaves, vector-valued XGBoost leaves and CatBoost's statistics of categories are not
  supported. Its one-hot categories are, if the file was written with ``pool=``.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import OnEngine
from bench_models.libraries import LibraryModel, serve
from bench_models.matching import matched

from bench_core import (
    ELSEWHERE,
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
"""Maximum validation rows for the comparison of a classifier with a constant."""

REVERSED = 0.4
"""Two classes are the wrong way round if the AUC on validation is below this."""


@dataclass(frozen=True)
class ImportedModel(OnEngine):
    """An existing LightGBM, XGBoost or CatBoost model."""

    name: ClassVar[str] = "imported"
    role: ClassVar[str] = "own"

    file: str = param("", "the model: LightGBM text, XGBoost JSON or UBJ, CatBoost JSON")

    def stamp(self) -> str:
        """A digest of the file. Raises UsageError or InputError if there is none."""
        return hashlib.sha256(self._content()).hexdigest()[:32]

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LibraryModel:
        """Read the model, for the columns and classes of the data."""
        model, _ = matched(self._read(), context.splits, self.file)
        context.progress(1, 1)
        return serve(model, prices, {"marks": (ELSEWHERE,)}, whole=True)

    def notes(self, splits: Splits) -> Iterator[tuple[str, bool]]:
        """Notes on the match of columns and classes, and warnings (True) on contradictions."""
        model, notes = matched(self._read(), splits, self.file)
        coded = {own.name for own in splits.encodings if own.kind == "codes"}
        if shared := sorted(
            coded & {model.names[m] for m in model.categories if m < len(model.names)}
        ):
            notes[
                f"{', '.join(shared)}: categories to this model, codes (0 for the most frequent "
                "text) to learners that train here"
            ] = False
        if splits.task in (Task.BINARY, Task.MULTICLASS):
            served = serve(model, splits.prices, {}, whole=True)
            notes |= dict.fromkeys(_coded_otherwise(served, splits), True)
        yield from ((f"{self.name}: {line}", warning) for line, warning in notes.items())

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
        except RuntimeError as error:  # ~USER with an unknown user
            raise InputError(f"imported: {self.file} is not a file") from error


def _coded_otherwise(model: LibraryModel, splits: Splits) -> Iterator[str]:
    """Warning for a class with validation scores worse than a constant's: its own rows have lower
    scores than the other rows (p < .001). Raises UsageError where two classes are reversed."""
    from scipy.stats import mannwhitneyu

    rows = np.random.default_rng(0).permutation(len(splits.valid))[:ROWS]
    y = splits.valid.y[rows]
    (answer,) = model.predict_path(Features(splits.valid.X[rows]))
    scores = answer.scores if answer.scores.ndim > 1 else np.outer(answer.scores, [-1, 1])
    names = splits.class_names or tuple(map(str, range(splits.classes)))
    for k, name in enumerate(names):
        own, others = scores[y == k, k], scores[y != k, k]
        found = mannwhitneyu(own, others, alternative="less") if len(own) and len(others) else None
        if found is not None and found.pvalue < 0.001:
            auc = found.statistic / (len(own) * len(others))
            if len(splits.class_names) == 2 and auc < REVERSED:
                raise UsageError(
                    f"imported: AUC of {names[1]} on validation is {auc:.2f}: the model scores "
                    f"{names[0]}; run with --positive {names[0]}, or write positive = "
                    f'"{names[0]}" into datasets.toml'
                )
            order = ", ".join(f"{name} is {number}" for number, name in enumerate(names))
            yield (
                f"AUC of class {name} on validation is {auc:.2f}, worse than a constant: if "
                f"training numbered classes otherwise than here ({order}), write its numbers as "
                "the labels of your data"
            )
            return


bench_learners = provide_learners(ImportedModel, family="libraries")
