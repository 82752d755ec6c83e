"""Every registered learner on data that troubles learners: it copes, or says why in one line."""

import re
from collections import Counter
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.every_learner_cases import (
    LEARNERS,
    NOT_FOR_CHOICE,
    ONLY_FOR,
    POLICIES,
    ROUNDS,
    TROUBLES,
    audited,
    predicted,
    quick,
    quick_settings,
)
from helpers.fakes import FakeContext

from bench_core import Examples, InputError, Task, UsageError
from bench_core._io.large_arrays import inputs_digest
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit
from bench_core.contracts import learner_of
from bench_core.execution.fitting import fit_in_process
from bench_core.metrics import default_metric
from bench_core.parameters import is_learner

pytestmark = pytest.mark.usefixtures("few_purchases")
ROWS = 80
CAPS = (0.03, 0.3, 0.7)  # parts of the price of everything
NOTHING_TO_LEARN = (
    "nothing varies",
    "one training class",
    "one class everywhere",
    "a class without a training row",
    "a row of each class",
)

ordinary = cache(lambda task: task_splits(task, ROWS))


def test_every_learner_has_a_row_in_the_table():
    assert set(quick_settings()) == set(LEARNERS)


def pays_what_it_reads(learner, splits, word="verified"):
    """Fit, predict and replay in full, as a run does, also under caps that no row exceeds."""
    model = fit(learner, splits)
    path, limits = predicted(model, splits, CAPS)
    for own, limit in zip(path.cost[len(path.points) :], limits, strict=False):
        assert (own <= limit).all()
        assert (own >= 0).all()
    assert np.isfinite(path.scores).all()
    assert np.isfinite(path.cost).all()
    assert (path.cost >= 0).all()
    found = audited(model, splits, path)
    assert found.word == word, found.reason


PAIRS = [(name, task) for name in sorted(LEARNERS) for task in sorted(LEARNERS[name].tasks)]
ALONE = [
    (name, task, trouble)
    for name, task in PAIRS
    for trouble in TROUBLES
    if ONLY_FOR.get(trouble, task) is task
    if task is not Task.CHOICE or trouble not in NOT_FOR_CHOICE
]


def in_turn():
    """Every learner with every round, each time on the task that both had least, or
    on the one that a trouble of the round needs; what that task does not have, on another."""
    had = Counter()
    for name, (r, troubles) in product(sorted(LEARNERS), enumerate(ROUNDS)):
        tasks = sorted(LEARNERS[name].tasks)
        while tasks and troubles:
            needed = [ONLY_FOR[one] for one in troubles if ONLY_FOR.get(one) in tasks]
            task = min(needed or tasks, key=lambda task: 4 * had[name, task] + had[r, task])
            if met := [one for one in troubles if (name, task, one) in ALONE]:
                had.update([(name, task), (r, task)])
                yield name, task, met
            tasks.remove(task)
            troubles = [one for one in troubles if one not in met]


FEW = [*in_turn()]


def test_every_learner_every_trouble_and_every_task_is_tried():
    tried = [(name, task, one) for name, task, troubles in FEW for one in troubles]
    assert {(name, one) for name, _, one in tried} == {(name, one) for name, _, one in ALONE}
    assert {(task, one) for _, task, one in tried} == {(task, one) for _, task, one in ALONE}
    assert {(name, task) for name, task, _ in FEW} == set(PAIRS)


def copes_or_says_why(name, task, troubles, folder):
    plain = troubled = ordinary(task)
    for trouble in troubles:
        troubled = TROUBLES[trouble](troubled)
    same_columns = troubled.train.X.shape == plain.train.X.shape
    learner = quick(name, task, (plain if same_columns else troubled).train, folder)
    try:
        pays_what_it_reads(learner, troubled)
    except (InputError, UsageError) as refusal:
        said = str(refusal)
        assert troubles[0] in NOTHING_TO_LEARN, said
        held = getattr(learner, "f0", getattr(learner, "base", learner))
        owners = "|".join(
            re.escape(one.name) for one in (learner, held, *learner_of(learner).needs())
        )
        assert re.fullmatch(rf"({owners}): (all|no|every) .*training .*", said)


@pytest.mark.parametrize(("name", "task", "troubles"), FEW, ids=str)
def test_a_learner_copes_or_says_why(name, task, troubles, folder):
    copes_or_says_why(name, task, troubles, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), PAIRS, ids=str)
def test_a_learner_copes_with_each_trouble_alone_or_says_why(name, task, folder):
    for trouble in TROUBLES:
        if (name, task, trouble) in ALONE:
            copes_or_says_why(name, task, [trouble], folder)


def test_another_task_is_refused_in_one_line(bench):
    ended = bench("run", "--data", "digits", "--learners", "cronus")
    assert (ended.status, ended.out) == (2, "")
    # a slow machine says before that the data are prepared
    line = "error: nothing to run: cronus does binary, ranking; digits is multiclass\n"
    assert ended.err.endswith(line)


LARGE = {
    name: tasks
    for name in LEARNERS
    if (tasks := sorted(LEARNERS[name].tasks & {Task.BINARY, Task.RANKING}))
}
"""The tasks that the large model of ``adapt-lin`` may have, of which each learner tries one."""


@pytest.mark.parametrize(
    ("name", "task"),
    [
        pytest.param(
            name, LARGE[name][k // 2 % len(LARGE[name])], marks=[pytest.mark.slow] * (k % 2)
        )
        for k, name in enumerate(sorted(LARGE))
    ],
    ids=str,
)
def test_every_learner_may_be_the_large_model(name, task, folder):
    splits = ordinary(task)
    settings = {**quick_settings()["adapt-lin"], "iterations": 2}
    settings["f0"] = quick(name, task, splits.train, folder)
    # what has no program, where not all rows are sent to it or not all buy alike
    opaque = (name, task) == ("sklearn", Task.RANKING) or name in POLICIES - {"backward-induction"}
    word = "declared" if opaque else "verified"
    pays_what_it_reads(LEARNERS["adapt-lin"](**settings), splits, word)


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_progress_never_falls_and_reaches_its_end(name, folder):
    task = min(LEARNERS[name].tasks)
    splits = ordinary(task)
    context = FakeContext(task, splits.classes, splits=splits)

    def fitted(learner):
        """With what it needs, whose progress does not count."""
        context.models |= {need: fitted(need) for need in learner_of(learner).needs()}
        context.reports.clear()
        return learner.fit(splits.train, splits.valid, splits.prices, context)

    fitted(quick(name, task, splits.train, folder))
    shares = [done / total for done, total in context.reports]
    assert shares == sorted(shares)
    if name != "budget-prune":  # which ends where it has converged
        assert shares[-1:] in ([], [1.0])


@dataclass(frozen=True)
class Halved:
    """Fits a learner inside, on half of the rows, with its own context."""

    inner: Any

    def needs(self):
        return learner_of(self.inner).needs()

    def fit(self, train, valid, prices, context):
        queries = train.queries and train.queries.select(0, len(train.queries) // 2)
        rows = queries.rows if queries else len(train) // 2
        half = Examples(train.X[:rows], train.y[:rows], queries)
        return self.inner.fit(half, valid, prices, context)


def fitted_with(learner, splits, kept):
    model = fit_in_process(learner, splits, default_metric(splits.task), 0, 1, kept)
    return inputs_digest(model)


def two_settings(name, task, train, folder):
    """A learner over two bases that differ in one parameter; twice the same without a base."""
    learner = quick(name, task, train, folder)
    for field in fields(learner):
        inner = getattr(learner, field.name)
        if is_learner(inner):
            change = {"trees": 7} if hasattr(inner, "trees") else {"rows": 40}
            return learner, replace(learner, **{field.name: replace(inner, **change)})
    return learner, learner


def over_others():
    """Learners with a learner among their parameters."""
    settings = quick_settings().items()
    return [name for name, own in settings if any(map(is_learner, own.values()))]


@pytest.mark.parametrize("name", [*over_others(), "gbrt", "budget-rf", "bayes-cmi"])
def test_no_learner_gets_shared_arrays_of_another_base_or_of_other_rows(name, folder):
    task = min(LEARNERS[name].tasks - {Task.RANKING}, default=Task.RANKING)
    splits = ordinary(task)
    first, second = two_settings(name, task, splits.train, folder)
    kept = {}
    fitted_with(first, splits, kept)
    assert fitted_with(second, splits, kept) == fitted_with(second, splits, {})
    assert fitted_with(Halved(first), splits, kept) == fitted_with(Halved(first), splits, {})
