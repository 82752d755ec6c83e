"""What gbrt, miser and cegb have in common: every task, odd data, copies, scales, states."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from bench_methods.cegb import CEGB
from bench_methods.gbrt import GBRT
from bench_methods.miser import GreedyMiser
from bench_models.staged import StagedModel
from helpers.boosted_cases import CLASSES, examples, fit, mean_cost, path, prices
from helpers.fakes import FakeContext

from bench_core import Examples, Queries, Task, price_list
from bench_core.conformance import learner_cases
from bench_core.conformance.case import run_all
from bench_core.conformance.checks import check_tradeoff
from bench_core.conformance.tasks import with_learners
from bench_core.metrics import default_metric

LEARNERS = [
    GBRT(trees=15),
    GreedyMiser(trees=15, tradeoff=0.05),
    CEGB(trees=15, tradeoff=0.05),
    CEGB(trees=15, tradeoff=0.05, acquisition="all-rows", order="level", depth=3, stop="raw"),
]
PRICED = LEARNERS[1:]


def learners(some: list[Any] = LEARNERS) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("learner", some, ids=lambda one: one.name)


@learners()
@pytest.mark.parametrize("task", Task)
def test_every_task_is_learned_better_than_by_a_constant(learner: Any, task: Task) -> None:
    train = examples(task)
    metric = default_metric(task)
    last = path(fit(learner, train, task), train)[-1]
    constant = np.zeros(last.scores.shape)
    if task is Task.REGRESSION:
        constant += train.y.mean()
    sign = 1 if metric.higher_is_better else -1
    got, base = (
        sign * metric.values(s, train.y, train.queries).mean for s in (last.scores, constant)
    )
    assert got > base + 0.05
    assert last.scores.shape == ((300, 3) if task is Task.MULTICLASS else (300,))


@learners()
def test_points_count_trees_and_the_last_is_the_whole_model(learner: Any) -> None:
    train = examples(Task.MULTICLASS)
    model = fit(learner, train, Task.MULTICLASS)
    points = [p.point["trees"] for p in path(model, train)]
    assert points == list(range(3, 46, 3))
    assert model.ensemble.trees == 45


@learners()
@pytest.mark.parametrize("copies_of", ["no row", "some rows"])
def test_multiplicity_trains_what_physical_copies_train(learner: Any, copies_of: str) -> None:
    train = examples(Task.REGRESSION, n=120)
    m = np.ones(120, dtype=np.int64)
    if copies_of == "some rows":
        m[::3] = 4
    copied = Examples(np.repeat(train.X, m, axis=0), np.repeat(train.y, m))
    learner = replace(learner, min_rows=5)
    a = path(fit(learner, replace(train, multiplicity=m), Task.REGRESSION), train)
    b = path(fit(learner, copied, Task.REGRESSION), train)
    assert np.allclose(a[-1].scores, b[-1].scores, rtol=0, atol=1e-6)
    assert mean_cost(a[-1], prices()) == pytest.approx(mean_cost(b[-1], prices()), abs=1e-6)


@learners()
def test_rescaling_all_costs_changes_no_prediction(learner: Any) -> None:
    train = examples(Task.REGRESSION)
    usual, expensive = (prices(scale, split=scale * 0.25) for scale in (1.0, 1000.0))
    a = path(fit(learner, train, Task.REGRESSION, usual), train)[-1]
    b = path(fit(learner, train, Task.REGRESSION, expensive), train)[-1]
    assert a.scores.tolist() == pytest.approx(b.scores.tolist(), rel=1e-12)
    assert 1000 * mean_cost(a, usual) == pytest.approx(mean_cost(b, expensive))


@learners(PRICED)
@pytest.mark.parametrize("task", Task)
def test_a_huge_tradeoff_leaves_the_free_constant(learner: Any, task: Task) -> None:
    train = examples(task)
    (only,) = path(fit(replace(learner, tradeoff=1e6, trees=3, **net(learner)), train, task), train)
    assert dict(only.point) == {"trees": 0}
    assert mean_cost(only, prices()) == 0
    assert len(np.unique(only.scores, axis=0)) == 1


def net(learner: Any) -> dict[str, str]:
    return {"stop": "net"} if any(f.name == "stop" for f in fields(learner)) else {}


@learners(PRICED)
def test_free_features_are_used_and_ruinous_ones_are_not(learner: Any) -> None:
    train = examples(Task.REGRESSION)
    at = price_list(np.array([0.0, 1.0, 1.0, 1e6]))
    model = fit(replace(learner, tradeoff=1e4, **net(learner)), train, Task.REGRESSION, at)
    tested = set(model.ensemble.feature.tolist())
    assert 0 in tested
    assert 3 not in tested


@learners()
@pytest.mark.parametrize("task", Task)
@pytest.mark.parametrize("label", [0.0, 1.0])
def test_a_single_label_gives_the_constant(learner: Any, task: Task, label: float) -> None:
    train = examples(task)
    train = replace(train, y=np.full(300, label))
    last = path(fit(learner, train, task), train)[-1]
    assert mean_cost(last, prices()) == 0
    if task in (Task.RANKING, Task.REGRESSION):
        assert last.scores.tolist() == [label] * 300
    elif task is Task.BINARY:
        assert np.all((last.scores > 0) == bool(label))
    else:
        assert np.all(last.scores.argmax(axis=1) == label)


@learners()
def test_constant_and_missing_columns_are_never_split(learner: Any) -> None:
    train = examples(Task.REGRESSION)
    X = train.X.copy()
    X[:, 0] = 7
    X[:, 1] = np.nan
    model = fit(learner, replace(train, X=X), Task.REGRESSION)
    assert set(model.ensemble.feature.tolist()) <= {-1, 2, 3}
    assert model.ensemble.trees > 0


@learners()
def test_one_query_is_enough(learner: Any) -> None:
    train = replace(examples(Task.RANKING), queries=Queries.from_sizes(np.array([300])))
    assert np.isfinite(path(fit(learner, train, Task.RANKING), train)[-1].scores).all()


@learners()
def test_lambdarank_learns_to_rank(learner: Any) -> None:
    train = examples(Task.RANKING)
    last = path(fit(replace(learner, loss="lambdarank"), train, Task.RANKING), train)[-1]
    metric = default_metric(Task.RANKING)
    got = metric.values(last.scores, train.y, train.queries).mean
    assert got > metric.values(np.zeros(300), train.y, train.queries).mean + 0.1


@learners()
def test_threads_change_no_bit(learner: Any) -> None:
    train = examples(Task.REGRESSION)
    a, b = (
        path(fit(learner, train, Task.REGRESSION, threads=threads), train)[-1].scores.tobytes()
        for threads in (1, 3)
    )
    assert a == b


@learners()
def test_a_rebuilt_model_keeps_its_loss_and_scores(learner: Any) -> None:
    train = examples(Task.BINARY)
    model = fit(learner, train, Task.BINARY)
    rebuilt = StagedModel.from_state(model.state())
    assert rebuilt.facts["loss"] == "logistic"
    assert path(rebuilt, train)[-1].scores.tolist() == path(model, train)[-1].scores.tolist()


@learners()
def test_progress_is_reported_after_every_iteration(learner: Any) -> None:
    train = examples(Task.REGRESSION)
    context = FakeContext(Task.REGRESSION, CLASSES[Task.REGRESSION])
    learner.fit(train, train, prices(), context)
    assert context.reports == [(k, 15) for k in range(1, 16)]


@learners()
def test_every_promise_of_a_learner_is_kept(learner: Any) -> None:
    cases = learner_cases(replace(learner, trees=5))
    if getattr(learner, "stop", "net") == "raw":  # prices choose features, but end no tree
        cases = [case for case in cases if case.check is not check_tradeoff]
    run_all(cases)


@learners()
@pytest.mark.parametrize(
    "change", [{"trees": -1}, {"learning_rate": 0.0}, {"max_bins": 256}, {"min_rows": 0}]
)
def test_values_out_of_range_are_refused_by_name(learner: Any, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        with_learners(replace(learner, **change))


@learners(PRICED)
@pytest.mark.parametrize("tradeoff", [-0.1, float("nan"), float("inf")])
def test_a_tradeoff_is_finite_and_not_negative(learner: Any, tradeoff: float) -> None:
    with pytest.raises(ValueError, match="tradeoff"):
        with_learners(replace(learner, tradeoff=tradeoff))


@pytest.mark.parametrize("learner", [GBRT, GreedyMiser, CEGB])
def test_a_parameter_without_its_name_is_refused(learner: Any) -> None:
    with pytest.raises(TypeError, match="positional"):
        learner(100)
