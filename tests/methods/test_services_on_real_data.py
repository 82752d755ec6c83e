"""Choice among services on published tables: halves of the rows, points chosen on validation."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench_methods.router import Router
from bench_methods.services import BestSingle, Cascade
from helpers.kit import prepared
from helpers.real_cases import needs

from bench_core.conformance.cases import fit
from bench_core.costs.by_row import with_known_prices
from bench_core.execution.predict import predict_split

pytestmark = pytest.mark.slow
LLMS = (
    *("llama1b", "llama3b", "llama8b", "llama70b", "llama405b"),
    *("gpt4omini", "qwen32b", "qwen72b", "gpt4o"),
)


def halves(table, sources, choose, features, folder, seed):
    """Half of the rows train, 30% of it validate."""
    order = np.random.default_rng(seed).permutation(len(table))
    train = order[: len(order) // 2]
    word = np.full(len(order), "test", dtype=object)
    word[train], word[train[-round(0.3 * len(train)) :]] = "train", "valid"
    table.assign(split=word).iloc[order].to_csv(folder / "calls.csv", index=False)
    costs = {
        s: {"column": f"{s}_price", "features": [f.format(s) for f in features], "when": "quoted"}
        for s in sources
    }
    paid = (*(f"{s}_" for s in sources), choose.replace("*", "")[:6], "split")
    costs |= {c: 0 for c in table if not c.startswith(paid)}
    (folder / "costs.json").write_text(json.dumps({"costs": costs}), encoding="utf-8")
    path, costs = folder / "calls.csv", str(folder / "costs.json")
    return prepared(path, choose=(choose,), costs=costs).complete()


def scores_within(learner, splits, budgets):
    """Test score and price within each budget, of the best point on validation."""
    known = {n: with_known_prices(getattr(splits, n), splits.costs) for n in ("train", "valid")}
    model = fit(learner, replace(splits, **known))
    figures = {}
    for part in ("valid", "test"):
        rows = with_known_prices(getattr(splits, part), splits.costs)
        calls = splits.calls.tolist()
        path = predict_split(model, rows, splits.costs, splits.classes, calls=calls)
        answers = [s.argmax(axis=1) if s.ndim == 2 else (s > 0).astype(int) for s in path.scores]
        score = [rows.y[np.arange(len(rows)), answer].mean() for answer in answers]
        figures[part] = np.column_stack([score, path.cost.mean(axis=1)])
    best = []
    for budget in budgets:
        within = np.flatnonzero(figures["valid"][:, 1] <= budget)
        best.append(figures["test"][within[figures["valid"][within, 0].argmax()]])
    return np.array(best)


def means(name, sources, choose, features, learners, budgets, folder, drop):
    table = pd.read_csv(needs("rowprices") / name)
    table = table.drop(columns=[c for c in drop if c in table])
    every = {learner.name: [] for learner in learners}
    for seed in range(2):
        splits = halves(table, sources, choose, features, folder, seed)
        for learner in learners:
            every[learner.name].append(scores_within(learner, splits, budgets)[:, 0])
    return {learner: np.mean(scores, axis=0) for learner, scores in every.items()}


def test_a_router_of_two_models_beats_the_better_single_within_each_price(tmp_path):
    budgets = (100, 200, 300, 400, 500, 700, 900)
    of = ("routing/routellm-mmlu.csv.gz", ("mixtral", "gpt4"), "right_*", ["{}"])
    drop = ("id", "group", "contaminated")
    found = means(*of, [BestSingle(), Router()], budgets, tmp_path, drop)
    assert (found["router"] > found["best-single"]).all()
    # the line of the table's domains, less .005 as only two of five halves are tried
    domain = np.array([0.693, 0.722, 0.739, 0.754, 0.768, 0.787, 0.802])
    assert (found["router"] > domain - 0.005).all(), found


def test_a_cascade_of_nine_models_beats_singles_of_its_price(tmp_path):
    used = ("answer", "confidence", "price", "correct")
    columns = [f"{m}_{c}" for m in LLMS for c in ("ms", "in", "out")]
    features = [f"{{}}_{c}" for c in used[:2]]
    of = ("llm/mmlu.csv.gz", LLMS, "*_correct", features, [BestSingle(), Cascade()], (100, 200))
    found = means(*of, tmp_path, ("id", "group", "split", "label", *columns))
    assert found["cascade"][0] > found["best-single"][0] + 0.03
    assert found["cascade"][1] > 0.815
