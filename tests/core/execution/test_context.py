"""What ``fit`` gets of the harness, and what it cannot reach through that."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from helpers import toys

from bench_core.api import plan
from bench_core.execution.in_process import fit_in_process
from bench_core.execution.trial import fit_context, open_splits, run_fit
from bench_core.metrics import parse_metric
from bench_core.protocols import FitContext
from bench_core.results.records import FitSpec, TrialSpec
from bench_core.splits import Splits


def behind(root: Any) -> Iterator[Any]:
    """All that attributes, slots, closures, items and defaults lead to, modules left out."""
    seen: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, ModuleType | type):
            continue
        seen[id(value)] = value
        yield value
        if isinstance(value, FunctionType):
            cells = (cell.cell_contents for cell in value.__closure__ or ())
            waiting += [*cells, *(value.__defaults__ or ()), vars(value)]
        elif isinstance(value, np.ndarray):
            waiting.append(value.base)
        else:
            waiting += gc.get_referents(value)


class Looking(toys.Prefix):
    """Keeps what it was handed."""

    name = "toy-looking"

    def fit(self, *given: Any) -> Any:
        type(self).given = given
        return super().fit(*given)


def spec_of(home: Path) -> FitSpec:
    made = plan(data="toy-binary", learners=[Looking()], plugins="helpers.toys")
    return made.fits[0]


def test_nothing_behind_what_fit_gets_leads_to_the_test_rows_or_to_a_path(home: Path) -> None:
    spec = spec_of(home)
    run_fit(spec)
    hidden = {array.tobytes() for array in (open_splits(spec).test.X, open_splits(spec).test.y)}
    context, seen = Looking.given[3], 0
    for value in behind(list(Looking.given)):
        seen += 1
        assert not isinstance(value, FitSpec | TrialSpec | Splits | Path)
        assert not (isinstance(value, str | bytes) and str(spec.data) in str(value))
        assert not (isinstance(value, np.ndarray) and value.tobytes() in hidden)
    assert seen > 50
    assert all(hasattr(context, name) for name in FitContext.__annotations__)
    with pytest.raises((AttributeError, TypeError)):
        context.splits = 1


def test_what_is_fitted_in_this_process_sees_no_test_rows_either() -> None:
    splits = toys.ToyBinary().prepare(None, "quick", 0, 0)  # type: ignore[arg-type]
    fit_in_process(Looking(), splits, parse_metric("accuracy"), 0, 1)
    hidden = {splits.test.X.tobytes(), splits.test.y.tobytes()}
    for value in behind(list(Looking.given)):
        assert not (isinstance(value, np.ndarray) and value.tobytes() in hidden)


def test_test_rows_are_opened_only_to_predict_and_their_labels_only_to_judge(home: Path) -> None:
    spec = spec_of(home)
    splits = open_splits(spec, ("train", "valid"))
    assert (len(splits.train), len(splits.test)) == (300, 0)
    assert splits.test.X.shape[1] == splits.train.X.shape[1]
    blind = open_splits(spec, labels=("train", "valid"))
    assert len(blind.test) == 300
    assert np.isnan(blind.test.y).all()
    assert np.array_equal(blind.test.X, open_splits(spec).test.X, equal_nan=True)


def test_builds_that_ask_again_or_fail_are_answered_one_by_one(home: Path) -> None:
    spec = spec_of(home)
    with fit_context(spec, open_splits(spec), lambda done, total: None) as context:

        def outer() -> dict[str, Any]:
            return {"twice": 2 * context.shared("inner", lambda: {"x": np.arange(3)})["x"]}

        def broken() -> dict[str, Any]:
            raise OSError("no room")

        assert context.shared("outer", outer)["twice"].tolist() == [0, 2, 4]
        with pytest.raises(OSError, match="no room"):
            context.shared("broken", broken)
        assert context.shared("broken", outer)["twice"].tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="until it ends"):
        context.shared("outer", outer)


def test_reports_of_progress_are_rare_however_many_there_are(home: Path) -> None:
    spec, heard = spec_of(home), []
    with fit_context(
        spec, open_splits(spec), lambda done, total: heard.append((done, total))
    ) as context:
        for _ in range(20_000):
            context.progress(1, 1)
    assert heard[0] == (1, 1)
    assert len(heard) < 20
