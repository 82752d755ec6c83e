"""A model that exists already: a file of LightGBM, XGBoost or CatBoost, metered under our costs.

    bench run --data mine.csv --learners imported --set imported.file=model.txt

Nothing is trained. The file (LightGBM's text, XGBoost's JSON or UBJ, CatBoost's JSON; recognised by
its content) is read by parsers of our own, so the library need not be installed. Its trees are
walked and billed like ours, one point for each reported number of trees; its state holds them, so
that the file is not needed again. The file's content is part of the fit's key: a changed file is
read anew.

Features are matched by name where model and data both have names (Column_0, f0 and the like are no
names); else both must have equally many, in the same order. Labels must be coded as in training:
0/1, or 0..K-1.

Departures
- Probabilities and means of a logarithmic link become log-odds and label units; an averaged model
  (boosting = rf) stays averaged. Such models, and CatBoost's for classes, have no ``ensemble``.
- Categorical splits, linear leaves and vector-valued XGBoost leaves are refused.
- LightGBM's splits that set zeros apart (zero_as_missing) may count as up to three.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bench_models.boosting import TASKS
from bench_models.boosting import bench_warm_up as bench_warm_up
from bench_models.libraries import LibraryModel, check_fits, onto_columns, serve

from bench_core import (
    Examples,
    FitContext,
    InputError,
    Prices,
    Task,
    UsageError,
    param,
    provide_learners,
)


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
        """Read the model; of ``train`` only the number of features matters."""
        from bench_trees.importers import ModelError, read_model

        try:
            model = read_model(self._content())
        except ModelError as error:
            raise InputError(f"{self.file}: {error}") from error
        # a binary model does no regression
        check_fits(model, context.task, context.classes, self.file)
        model = onto_columns(model, prices.features, context.feature_names, self.file)
        context.progress(1, 1)
        return serve(model, prices, {})

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


bench_learners = provide_learners(ImportedModel)
