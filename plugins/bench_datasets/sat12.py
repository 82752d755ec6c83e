"""SAT12-ALL of ASlib: is a formula satisfiable, from ten feature steps that cost their seconds?

B. Bischl et al., "ASlib: a benchmark library for algorithm selection" (Artificial Intelligence,
2016). A step is one sensor: its features, and the seconds that it took on this formula, known
afterwards. All steps need the step Pre. The clustering graph (CG) crashes on half of the formulas
and is paid all the same; its features are then missing. A step pays at most 1200 seconds, the
scenario's limit.

20 formulas that a step had already solved are left out: most of their prices are missing, and
buying Pre would tell the label. Formulas of a family (the folder, digits ignored) are near copies;
whole families form ten parts. Fold k tests on part k, validates on the next one, and trains on the
other eight. The publisher's folds divide families and look 5 to 6 points better.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bench_core import InputError, Source, Splits, Task, provide_datasets
from bench_core.datasets.readers.arff import read_arff
from bench_datasets._logged_calls import Logged, Sensor, require, splits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pandas as pd

STEPS = {
    "Pre": 6, "Basic": 14, "KLB": 20, "CG": 10, "DIAMETER": 5, "cl": 18, "sp": 18, "ls_saps": 11,
    "ls_gsat": 11, "lobjois": 2,
}  # fmt: skip
"""Steps and their numbers of features, in the order of the publisher's columns."""
LIMIT = 1200.0
FOLDS, VALID = 10, 1
TABLE = "aslib/sat12-all.csv"
ARFF = tuple(
    f"SAT12-ALL/{name}.arff"
    for name in ("feature_values", "feature_costs", "feature_runstatus", "ground_truth")
)


class Sat12(Logged):
    """Satisfiability of a formula (label 1) from features that cost seconds."""

    name: ClassVar[str] = "sat12"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "SAT12-ALL: satisfiability from ten feature steps, in seconds"
    folds: ClassVar[int] = FOLDS
    depends_on: ClassVar[tuple[str, ...]] = ("fold",)
    home: ClassVar[str] = "aslib_data"
    homepage: ClassVar[str] = "https://github.com/coseal/aslib_data"
    licence: ClassVar[str] = "GPL-3.0 (README of the repository)"
    files: ClassVar[tuple[str, ...]] = (TABLE, *ARFF)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Divide whole families; every size uses all rows."""
        path, frame = self.table(
            source,
            lambda: published(*(source.find(name) for name in ARFF)),
            text=("id", "family", "label"),
        )
        prices, status = ([f"{step}_{of}" for step in STEPS] for of in ("seconds", "status"))
        require(path, frame, ("family", "family_fold", "label", *prices, *status))
        features = features_of(path, [*frame.columns])
        frame = frame[~(frame[status] == "presolved").any(axis=1)].reset_index(drop=True)
        frame[prices] = frame[prices].clip(upper=LIMIT)
        pre = [*STEPS].index("Pre")
        sensors = [Sensor(f"{step}_seconds", features[step], False, (pre,)) for step in STEPS]
        y = (frame["label"] == "SAT").to_numpy(np.float64)
        turn = (frame["family_fold"].to_numpy(np.int64) - 1 - fold) % FOLDS
        tests, validates = turn == 0, (turn >= 1) & (turn <= VALID)
        parts = [np.flatnonzero(mask) for mask in (~(tests | validates), validates, tests)]
        numbers = {family: k for k, family in enumerate(sorted({*frame["family"]}))}
        family = np.array([numbers[text] for text in frame["family"]])
        return splits(
            frame, y, parts, (), sensors, "s", family, class_names=("UNSAT", "SAT"),
        )  # fmt: skip


def features_of(path: Path, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the features of each step. Raises InputError for another number of features."""
    roles = ("id", "family", "fold", "family_fold", "label")
    names = [n for n in columns if n not in roles and not n.endswith(("_seconds", "_status"))]
    if len(names) != sum(STEPS.values()):
        what = f"{len(names)} features, not the {sum(STEPS.values())} of SAT12-ALL"
        raise InputError(f"{path}: {what}; get the file again")
    left = iter(names)
    return {step: tuple(next(left) for _ in range(count)) for step, count in STEPS.items()}


def published(values: Path, costs: Path, status: Path, truth: Path) -> pd.DataFrame:
    """Return our table, made of the publisher's files."""
    tables = [read_arff(path) for path in (values, costs, status, truth)]
    key = "instance_id"
    for path, table in zip((values, costs, status, truth), tables, strict=True):
        require(path, table, (key,))
        if {*table[key]} != {*tables[0][key]} or table[key].duplicated().any():
            raise InputError(f"{path}: other instances than {values.name}; get the files again")
    of_steps = [
        table.drop(columns="repetition", errors="ignore").rename(
            columns=lambda name, end=end: name if name == key else f"{name}{end}"
        )
        for table, end in zip(tables[1:3], ("_seconds", "_status"), strict=True)
    ]
    frame = tables[0].drop(columns="repetition", errors="ignore")
    for table in (*of_steps, tables[3].rename(columns={"satunsat": "label"})):
        frame = frame.merge(table, on=key)
    family = [re.sub(r"\d+", "#", name.rpartition("/")[0]) for name in frame[key]]
    fold = family_folds(family)
    frame = frame.assign(family=family, family_fold=[fold[text] for text in family])
    return frame.rename(columns={key: "id"})


def family_folds(family: Sequence[str]) -> dict[str, int]:
    """Return the part 1..10 of each family: the largest first, each to the emptiest part."""
    sizes = [0] * FOLDS
    fold = {}
    for name, size in sorted(Counter(family).items(), key=lambda item: (-item[1], item[0])):
        k = int(np.argmin(sizes))
        sizes[k] += size
        fold[name] = k + 1
    return fold


bench_datasets = provide_datasets(Sat12)
