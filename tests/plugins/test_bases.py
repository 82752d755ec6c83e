"""What may stand under another learner: trees that add up to their model's scores, no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from bench_plugins.boosted import chain
from bench_plugins.cronus import Cronus
from bench_plugins.early_exit import EarlyExit
from bench_plugins.gbrt import GBRT
from bench_plugins.staged import Gate, Stage, StagedModel
from boosted_cases import examples, prices
from fakes import FakeContext
from trees.random_trees import path, random_ensemble, random_rows

from bench_core import Features, Task, UsageError

CHANGES: dict[str, Callable[[Stage], Stage]] = {
    "a weight": lambda s: replace(s, weights=s.weights * 2),
    "no weight": lambda s: replace(s, weights=s.weights * 0),
    "the constant": lambda s: replace(s, bias=s.bias + 1),
    "a gate": lambda s: replace(s, gate=Gate("score", 0.0)),
    "a start afresh": lambda s: replace(s, carry=False),
    "fewer trees": lambda s: replace(s, entries=s.entries[:0], weights=s.weights[:0]),
    "other trees": lambda s: replace(s, entries=s.entries[::-1] - 1),
}


def boosted(outputs: int) -> StagedModel:
    rng = np.random.default_rng(outputs)
    trees = random_ensemble(rng, trees=6, features=4, leaves=5, outputs=outputs)
    return chain(trees, prices(), {})


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_a_chain_of_all_trees_adds_up(outputs: int) -> None:
    model = boosted(outputs)
    trees = model.ensemble
    assert trees is not None
    X = random_rows(np.random.default_rng(0), 20, 4)
    expected = np.tile(trees.base, (20, 1))
    for i, row in enumerate(X):
        for t in range(trees.trees):
            expected[i, trees.output[t]] += path(trees, t, row).value
    last = list(model.predict_path(Features(X)))[-1].scores
    assert model.adds_up
    assert np.allclose(last.reshape(20, outputs), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("change", CHANGES)
def test_a_chain_with_one_stage_changed_does_not(change: str) -> None:
    model = boosted(1)
    last = CHANGES[change](model.stages[-1])
    assert not replace(model, stages=[*model.stages[:-1], last]).adds_up


@pytest.mark.parametrize("learner", [EarlyExit, Cronus])
def test_trees_that_were_weighted_anew_are_not_taken_for_the_base(learner: Any) -> None:
    rows, base = examples(Task.BINARY), GBRT(trees=4)
    context = FakeContext(Task.BINARY, 2)
    context.models = {base: base.fit(rows, rows, prices(), context)}
    weighted = Cronus(base=base, stages=2, cycles=1)
    context.models = {weighted: weighted.fit(rows, rows, prices(), context)}
    with pytest.raises(UsageError, match="base 'cronus' has no trees that add up"):
        learner(base=weighted).fit(rows, rows, prices(), context)
