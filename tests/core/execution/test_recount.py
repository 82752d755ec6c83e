"""The full audit counts splits and trees of models that come with bench itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench_core
from bench_core import Examples, Features, Prediction
from bench_core.api import plan
from bench_core.class_names import is_shipped
from bench_core.execution.audit import replay
from bench_core.execution.predict import predict_split
from bench_core.execution.recount import recount
from bench_core.execution.trial import open_splits, run_fit
from bench_core.results.store_files import load_model, state_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A few trees on rows of three columns, where a split costs 0.5 and a tree 2."""
    home = tmp_path_factory.mktemp("recount")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    costs = bench_core.Prices.additive(np.ones(3), split=0.5, tree=2.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        np.savetxt(
            home / "rows.csv", np.c_[X, X[:, 0] > 0], delimiter=",", header="a,b,c,y", comments=""
        )
        made = plan(data=str(home / "rows.csv"), learners="gbrt", settings=["gbrt.trees=5"])
        run_fit(made.fits[0])
        spec = made.trials[0]
        splits = replace(open_splits(spec), prices=costs)
        yield load_model(state_path(spec.states, spec.fit)), splits, Path(home)


def test_an_honest_count_is_confirmed_and_another_is_refused(fitted: Any) -> None:
    model, splits, _ = fitted
    test: Examples = splits.test
    path = predict_split(model, test, splits.prices, 2)
    assert recount(model, test, splits.prices, path, np.random.default_rng(0)) == ""
    assert replay(model, test, splits.prices, 2, "full", path=path).word == "verified"
    path.cost -= 0.5  # a split fewer in every row
    found = recount(model, test, splits.prices, path, np.random.default_rng(0))
    assert "its splits, trees and sensors counted anew cost otherwise" in found


def test_the_full_audit_refuses_a_shipped_model_that_always_bills_a_split_too_few(
    fitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bills agree with themselves in every block, so that nothing but counting finds it."""
    model, splits, _ = fitted
    honest = type(model).predict_path

    def too_few(self: Any, features: Features) -> Iterator[Prediction]:
        for told in honest(self, features):
            bills = {
                name: replace(bill, splits=np.maximum(np.asarray(bill.splits) - 1, 0))
                for name, bill in told.bills.items()
            }
            yield replace(told, bills=bills)

    monkeypatch.setattr(type(model), "predict_path", too_few)
    assert is_shipped(type(model))
    assert replay(model, splits.test, splits.prices, 2, "sample").word == "sampled"
    found = replay(model, splits.test, splits.prices, 2, "full")
    assert found.word == "failed"
    assert "its splits, trees and sensors counted anew cost otherwise" in found.reason
