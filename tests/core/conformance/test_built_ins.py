"""What this benchmark ships keeps the promises that it asks of others: learners and data sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.every_learner_cases import LEARNERS, quick

from bench_core import Task
from bench_core.conformance import check_dataset, check_learner, task_splits
from bench_core.conformance.tasks import with_learners
from bench_core.contracts import dataset_of
from bench_core.plugins import load_registry

DATASETS = load_registry().datasets
PAIRS = [
    (name, task)
    for name in sorted(LEARNERS)
    for task in sorted(LEARNERS[name].tasks)
    if name != "sklearn" or task in (Task.BINARY, Task.MULTICLASS)  # the others have no trees
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), PAIRS, ids=str)
def test_every_learner_keeps_every_promise(name: str, task: Task, tmp_path: Path) -> None:
    learner = quick(name, task, task_splits(task).train, tmp_path)
    if name == "cronus":  # five steps end so early that the rounding of copies shows, at 3e-6
        learner = replace(learner, steps=10)
    check_learner(with_learners(learner), [task])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(n for n, d in DATASETS.items() if not dataset_of(d).files))
def test_every_data_set_without_files_keeps_its_promises(name: str) -> None:
    check_dataset(DATASETS[name]())
