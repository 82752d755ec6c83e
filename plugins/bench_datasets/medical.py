"""Small medical sets with Turney's (1995) prices of tests: hepatitis, heart disease, diabetes.

Prices come from ``_turney``; questions and physical examinations cost 1. Groups of tests share
drawing blood (2.10) and, for heart disease, two examinations: thalach and thal 101.90; exang,
oldpeak and slope 86.30. ``discount=false`` charges every test in full. 60 / 20 / 20 percent of each
class are drawn by the seed: the sets have no published split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_core import InputError, Source, Splits, Task, param, provide_datasets
from bench_core.arrays import Float32Array, FloatArray
from bench_core.datasets.publishers import Download, from_uci
from bench_core.datasets.readers.tables import read_matrix, read_table
from bench_core.datasets.splitting import cut_by_class, take
from bench_datasets._turney import DRAWING_BLOOD, Group, turney_prices

HEPATITIS = {
    "age": 1.0, "sex": 1.0, "steroid": 1.0, "antviral": 1.0, "fatigue": 1.0, "malaise": 1.0,
    "anorexia": 1.0, "liver_big": 1.0, "liver_firm": 1.0, "spleen_palpable": 1.0, "spiders": 1.0,
    "ascites": 1.0, "varices": 1.0, "bilirubin": 7.27, "alk_phosphate": 7.27, "sgot": 7.27,
    "albumin": 7.27, "protime": 8.30, "histology": 1.0,
}  # fmt: skip
HEPATITIS_GROUPS = ((DRAWING_BLOOD, ("bilirubin", "alk_phosphate", "sgot", "albumin", "protime")),)
HEPATITIS_FILE, HEPATITIS_TABLE = "hepatitis.data", "hepatitis.csv"
HEPATITIS_LABELS = "hepatitis_target.csv"
HEART = {
    "age": 1.0, "sex": 1.0, "cp": 1.0, "trestbps": 1.0, "chol": 7.27, "fbs": 5.20,
    "restecg": 15.50, "thalach": 102.90, "exang": 87.30, "oldpeak": 87.30, "slope": 87.30,
    "ca": 100.90, "thal": 102.90,
}  # fmt: skip
HEART_GROUPS = (
    (DRAWING_BLOOD, ("chol", "fbs")),
    (101.90, ("thalach", "thal")),
    (86.30, ("exang", "oldpeak", "slope")),
)
HEART_FILE = "processed.cleveland.data"
PIMA = {
    "pregnancies": 1.0, "glucose": 17.61, "blood_pressure": 1.0, "skin_thickness": 1.0,
    "insulin": 22.78, "body_mass": 1.0, "pedigree": 1.0, "age": 1.0,
}  # fmt: skip
PIMA_GROUPS = ((DRAWING_BLOOD, ("glucose", "insulin")),)
PIMA_UNMEASURED = ("glucose", "blood_pressure", "skin_thickness", "insulin", "body_mass")
PIMA_FILE = "pima-indians-diabetes.data"


@dataclass(frozen=True)
class _Medical:
    task: ClassVar[Task] = Task.BINARY
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)
    cost: ClassVar[Mapping[str, float]]
    groups: ClassVar[Sequence[Group]]

    discount: bool = param(True, "tests of a group after its first cost less by the shared cost")

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Split by ``seed`` within each class; every size uses all rows."""
        X, y = self.rows(source)
        parts = take(X, y, cut_by_class(y, (0.6, 0.2, 0.2), seed))
        prices = turney_prices(self.cost, self.groups if self.discount else ())
        return Splits(*parts, prices, feature_names=tuple(self.cost))

    def rows(self, source: Source) -> tuple[Float32Array, FloatArray]:
        """Cells (n, d) and labels (n,) of all rows."""
        raise NotImplementedError


@dataclass(frozen=True)
class Hepatitis(_Medical):
    """Death of a hepatitis patient (label 1)."""

    name: ClassVar[str] = "hepatitis"
    title: ClassVar[str] = "UCI hepatitis with the prices of its tests"
    files: ClassVar[tuple[str, ...]] = (HEPATITIS_FILE, HEPATITIS_TABLE, HEPATITIS_LABELS)
    downloads: ClassVar[tuple[Download, ...]] = from_uci(46, "hepatitis.zip", HEPATITIS_FILE)
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/46"
    cost, groups = HEPATITIS, HEPATITIS_GROUPS

    def complete(self, source: Source) -> bool:
        """True for the publisher's file, or a table with its labels."""
        return source.has(HEPATITIS_FILE) or source.has(HEPATITIS_TABLE)

    def rows(self, source: Source) -> tuple[Float32Array, FloatArray]:
        """The publisher's file, or its copy as a table and labels."""
        if source.has(HEPATITIS_FILE):
            table = read_matrix(source.find(HEPATITIS_FILE), 20, missing=True)
            kind = table.codes("1", (1, 2))
            return table.matrix(table.names[1:]), (kind == 1).astype(np.float64)
        table = read_table(source.find(HEPATITIS_TABLE))
        labels = read_table(source.find(HEPATITIS_LABELS))
        y = labels.codes(labels.names[0], range(2))
        if len(y) != len(table):
            fault = f"{len(y)} labels for {len(table)} rows"
            raise InputError(f"{labels.path}: {fault}; get both again")
        X = table.matrix(tuple(HEPATITIS))
        return np.where(X == -1, np.float32(np.nan), X), y


@dataclass(frozen=True)
class Heart(_Medical):
    """Heart disease of a patient (label 1)."""

    name: ClassVar[str] = "heart"
    title: ClassVar[str] = "UCI heart disease (Cleveland) with the prices of its tests"
    files: ClassVar[tuple[str, ...]] = (HEART_FILE,)
    downloads: ClassVar[tuple[Download, ...]] = from_uci(45, "heart+disease.zip", HEART_FILE)
    homepage: ClassVar[str] = "https://archive.ics.uci.edu/dataset/45"
    cost, groups = HEART, HEART_GROUPS

    def rows(self, source: Source) -> tuple[Float32Array, FloatArray]:
        """Grades 1 to 4 of disease are labelled 1."""
        table = read_matrix(source.find(HEART_FILE), 14, missing=True)
        y = (table.codes("14", range(5)) > 0).astype(np.float64)
        return table.matrix(table.names[:-1]), y


@dataclass(frozen=True)
class Pima(_Medical):
    """Diabetes of Pima women (label 1)."""

    name: ClassVar[str] = "pima"
    title: ClassVar[str] = "Pima diabetes with the prices of its blood tests"
    files: ClassVar[tuple[str, ...]] = (PIMA_FILE,)
    homepage: ClassVar[str] = "OpenML, set 37 (as comma-separated numbers without a header)"
    cost, groups = PIMA, PIMA_GROUPS

    zeros: bool = param(False, "keep the zeros that mark unmeasured values")

    def rows(self, source: Source) -> tuple[Float32Array, FloatArray]:
        """Impossible zeros (of glucose, pressure, skin, insulin, mass) are missing values."""
        table = read_matrix(source.find(PIMA_FILE), 9)
        y, X = table.codes("9", range(2)), table.matrix(table.names[:-1])
        if not self.zeros:
            for j in (list(PIMA).index(name) for name in PIMA_UNMEASURED):
                X[X[:, j] == 0, j] = np.nan
        return X, y


bench_datasets = provide_datasets(Hepatitis, Heart, Pima)
