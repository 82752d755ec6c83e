"""Choice among services on published tables; ``pytest -m slow -s`` prints what the pages quote.

A random half of the rows is the test set, and points are chosen on 30% of the other half. Figures
are means over ``BENCH_HALVES`` halves (2; the pages have 5).
"""

import os

import numpy as np
import pytest
from bench_datasets.llm_routing import LlmRouter, RouteLlmMmlu
from bench_datasets.nine_llms import MedMcqa, MedMcqaLetter, Mmlu, MmluLetter, TruthfulQa
from bench_methods.opinion_pool import OpinionPool
from bench_methods.router import Router
from bench_methods.services import BestSingle, Cascade
from helpers.priced_cases import knowing_prices
from helpers.real_cases import needs

from bench_core.conformance.cases import fit
from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.execution.predict import predict_split

pytestmark = pytest.mark.slow
HALVES = int(os.environ.get("BENCH_HALVES", "2"))
NINE, ROUTED = (100, 200, 260, 300, 500), (100, 200, 300, 400, 500, 700, 900)
# least means at each budget: lines of the tables' publishers, of pairs of models and of texts, less
# .01 for two halves of five
CASES = [
    (Mmlu, BestSingle, NINE, [0.72, 0.80, 0.80, 0.80, 0.80]),
    (Mmlu, Cascade, NINE, [0.79, 0.815, 0.82, 0.825, 0.83]),
    (Mmlu, OpinionPool, NINE, [0.79, 0.82, 0.83, 0.83, 0.84]),
    (MmluLetter, OpinionPool, NINE, [0.79, 0.83, 0.835, 0.835, 0.84]),
    (MedMcqa, Cascade, NINE, [0.74, 0.75, 0.755, 0.765, 0.785]),
    (MedMcqa, OpinionPool, NINE, [0.74, 0.75, 0.76, 0.765, 0.79]),
    (MedMcqaLetter, OpinionPool, NINE, [0.74, 0.75, 0.76, 0.765, 0.79]),
    (TruthfulQa, Cascade, (50, 100, 200, 400, 800), [0.60, 0.61, 0.63, 0.68, 0.72]),
    (RouteLlmMmlu, Router, ROUTED, [0.688, 0.717, 0.734, 0.749, 0.763, 0.782, 0.795]),
    (LlmRouter, Router, (10, 15, 20, 30, 50, 75), [0.59, 0.62, 0.63, 0.635, 0.64, 0.64]),
]


@pytest.mark.parametrize(("data", "learner", "budgets", "least"), CASES)
def test_scores_within_mean_budgets(data, learner, budgets, least):
    folder, found = DataFolder(needs("rowprices")), []
    for seed in range(HALVES):
        splits = data().prepare(folder, "standard", 0, seed).complete(data.task)
        splits = knowing_prices(splits)
        model, figures = fit(learner(), splits), {}
        calls = splits.calls.tolist() if data.task is Task.CHOICE else ()
        for name in ("valid", "test"):
            rows = getattr(splits, name)
            path = predict_split(model, rows, splits.costs, splits.classes, calls=calls)
            answers = [s.argmax(axis=1) if s.ndim == 2 else (s > 0) * 1 for s in path.scores]
            y = rows.y if rows.y.ndim == 2 else rows.y[:, None] == np.arange(splits.classes)
            quality = [y[np.arange(len(y)), answer].mean() for answer in answers]
            figures[name] = np.column_stack([quality, path.cost.mean(axis=1)])
        quality, cost = figures["valid"].T
        best = [np.where(cost <= budget, quality, -1).argmax() for budget in budgets]
        found.append(figures["test"][best])
    mean = np.mean(found, axis=0)
    cells = (f"{b}: {q:.3f} at {c:.0f}" for b, (q, c) in zip(budgets, mean, strict=True))
    print(f"\n{data.name}, {learner.name}, {HALVES} halves;", ", ".join(cells))
    assert (mean[:, 0] >= least).all()
