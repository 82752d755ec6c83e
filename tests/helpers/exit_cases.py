"""The definition of a chain with exits, document by document, and random chains to test it."""

from dataclasses import dataclass, field

import numpy as np
from bench_models.boosting import prefix_chain
from bench_models.staged.exits import ExitModel, ExitRule

from helpers.random_trees import path, random_ensemble, used_features
from helpers.staged_cases import D, random_prices


@dataclass
class Document:
    """One row in the chain."""

    scores: list[float]
    stage: int = -1
    on: bool = True
    sensors: set[int] = field(default_factory=set)
    splits: float = 0.0
    trees: int = 0


def random_exits(rng, kind, outputs=1):
    """One to four exits, up to three settings, values among the scores that occur."""
    trees = int(rng.integers(1, 9))
    ensemble = random_ensemble(rng, trees=trees, features=D, leaves=4, outputs=outputs)
    inner = sorted(set(rng.integers(0, trees, size=int(rng.integers(1, 5))).tolist()))
    settings = int(rng.integers(1, 4))
    shape = (settings, len(inner))
    values = {
        "score": rng.normal(size=shape),
        "rank": rng.integers(1, 6, size=shape) + rng.choice([0.0, 0.5], size=shape),
        "capacity": rng.integers(1, 6, size=shape) + rng.choice([0.0, 0.5], size=shape),
        "proximity": rng.choice([0.0, 0.2, 1.0, 3.0], size=shape),
        "class": rng.uniform(0.3, 1.0, size=shape),
        "sentinel": rng.uniform(0.2, 0.9, size=shape),
    }[kind]
    judges = ()
    if kind == "sentinel":
        judges = tuple(random_ensemble(rng, trees=3, features=4, leaves=4) for _ in inner)
    return ExitModel(
        chain=prefix_chain(ensemble, [*inner, trees], random_prices(rng), {}),
        rule=ExitRule(kind, values.astype(float), int(rng.integers(1, 4)), classifiers=judges),
        points=[{"threshold": p} for p in range(settings)],
        full={"trees": trees},
    )


def walk_documents(model, features, setting):
    """Every document's route under one setting (None: no exit)."""
    ensemble, prices, rule = model.ensemble, model.chain.prices, model.rule
    n = len(features)
    query = list(range(n)) if features.queries is None else features.queries.index().tolist()
    found = [Document(ensemble.base.tolist()) for _ in range(n)]
    stages = model.chain.stages
    for e, stage in enumerate(stages):
        here = [i for i in range(n) if found[i].on]
        for i in here:
            for tree in stage.entries.tolist():
                climb(found[i], ensemble, prices, tree, features.X[i])
            found[i].stage = e
        if e == len(stages) - 1 or setting is None:
            continue
        value = float(rule.values[setting, e])
        if rule.kind == "sentinel":
            before = [d.scores[0] for d in found]
            stays = {
                i: judged(found[i], rule.classifiers[e], inputs_of(i, query, before)) >= value
                for i in here
            }
        else:
            stays = {
                i: goes_on(rule, value, i, [j for j in here if query[j] == query[i]], found)
                for i in here
            }
        for i in here:
            found[i].on = stays[i]
    return found


def inputs_of(i, query, scores):
    """What the classifier sees of row i, by definition."""
    mates = [scores[j] for j in range(len(scores)) if query[j] == query[i]]
    low, high = min(mates), max(mates)
    scaled = (scores[i] - low) / (high - low) if high > low else 0.0
    rank = 1 + sum(s > scores[i] for s in mates)
    return np.array([scores[i], scaled, rank, len(mates)], dtype=np.float32)


def judged(one, judge, inputs):
    """The probability that a classifier gives a document, which pays for it."""
    score = float(judge.base[0])
    for tree in range(judge.trees):
        tested, value, _ = path(judge, tree, inputs)
        score += value
        one.splits += len(tested)
        one.trees += bool(len(used_features(judge, tree)))
    return 1 / (1 + np.exp(-score))


def climb(one, ensemble, prices, tree, x):
    tested, value, _ = path(ensemble, tree, x)
    one.scores[int(ensemble.output[tree])] += value
    one.splits += sum(float(prices.multiplier[f]) for f in tested)
    one.sensors |= {s for f in tested for s in prices.sensors_of(f).tolist()}
    one.trees += bool(len(used_features(ensemble, tree)))


def goes_on(rule, value, i, rivals, found):
    """True if document i goes on; ``rivals`` are the query's documents at the exit, i included."""
    own = found[i].scores[0]
    if rule.kind == "score":
        return own >= value
    if rule.kind == "rank":
        return 1 + sum(found[j].scores[0] > own for j in rivals) <= value
    if rule.kind == "capacity":
        return 1 + sum(found[j].scores[0] > own for j in rivals if j < i) <= value
    if rule.kind == "proximity":
        best = sorted((found[j].scores[0] for j in rivals), reverse=True)
        return len(best) < rule.k or own >= best[rule.k - 1] - value
    scores = np.array(found[i].scores)
    if len(scores) == 1:
        scores = np.array([0.0, scores[0]])
    odds = np.exp(scores - scores.max())
    return bool(odds.max() / odds.sum() <= value)


def check_scores(model, features, scores, expected):
    last = len(model.chain.stages) - 1
    plain = scores.reshape(len(expected), model.chain.outputs)
    if features.queries is None or plain.shape[1] > 1:
        assert plain.tolist() == [d.scores for d in expected]
        return
    query = features.queries.index()
    for i, one in enumerate(expected):
        if one.stage == last:
            assert plain[i, 0] == one.scores[0]
        for j, other in enumerate(expected):
            if query[i] == query[j]:
                mine, its = (
                    (d.stage == last, d.stage if d.stage < last else 0, d.scores[0])
                    for d in (one, other)
                )
                assert (plain[i, 0] < plain[j, 0]) == (mine < its)
