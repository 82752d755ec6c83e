"""Who reaches which stage of a model that describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from bench_core import Acquired, Bill, Examples, Features, Prediction, Prices, price_list
from bench_core.execution.contract import ContractError
from bench_core.execution.predict import predict_split
from bench_core.execution.trial import stages_of
from bench_core.protocols import StageTree

PRICES: Prices = price_list([1.0, 2.0])
TREE = StageTree((-1, 0, 0, 2), (1, 2, 2, 2), (1.0, 3.0, 3.0, 3.0))


@dataclass
class Walker:
    """Rows end at the stage that their first cell names, under the second setting at the last."""

    stage_tree: StageTree | None = TREE
    silent: bool = False

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        n, last = len(features), features.X[:, 0].astype(np.int64)
        for point, stage in enumerate((last, np.full(n, 3))):
            bills = {"path": Bill(Acquired.nothing(2))}
            yield Prediction({"k": point}, np.zeros(n), bills, None if self.silent else stage)


def rows() -> Examples:
    X = np.array([[0, 0], [1, 0], [2, 0], [3, 0]], dtype=np.float32)
    return Examples(X, np.zeros(4), multiplicity=np.array([1, 1, 2, 4]))


def test_a_stage_is_reached_by_the_rows_that_end_there_or_beyond_each_with_its_copies() -> None:
    path = predict_split(Walker(), rows(), PRICES, 2)
    assert path.ended.tolist() == [[1 / 8, 1 / 8, 2 / 8, 4 / 8], [0, 0, 0, 1]]
    found = stages_of(Walker(), path, (0, 1))
    assert found["parent"] == (-1, 0, 0, 2)
    assert found["reached"] == {0: [1, 0.125, 0.75, 0.5], 1: [1, 0, 1, 1]}


def test_without_a_tree_nothing_is_said_ofstages_of() -> None:
    model = Walker(stage_tree=None)
    path = predict_split(model, rows(), PRICES, 2)
    assert path.ended.shape == (2, 0)
    assert stages_of(model, path, (0,)) == {}


@pytest.mark.parametrize("model", [Walker(silent=True), Walker(StageTree((-1,), (1,), (1.0,)))])
def test_a_stage_that_is_none_of_the_tree_is_a_broken_contract(model: Walker) -> None:
    with pytest.raises(ContractError, match=r"stage must be \(n,\), one of"):
        predict_split(model, rows(), PRICES, 2)
