"""Learners at settings that are quick but unlike their defaults: the promises of every learner, and
the values that their parameters refuse."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest
from bench_methods.adapt import AdaptGBRT, AdaptL1, AdaptLin, AdaptLstsq
from bench_methods.baselines import CheapestFirst, Constant, GreedyOrder, RandomOrder
from bench_methods.bayes_cmi import BayesCMI
from bench_methods.budget_boosting import BudgetBoosting
from bench_methods.budget_forest import BudgetPrune, BudgetRF
from bench_methods.cascades import AndOr, SoftCascade
from bench_methods.catboost import CatBoost
from bench_methods.cegb import CEGB
from bench_methods.confidence_cascade import ConfidenceCascade, SelectionCascade
from bench_methods.cost_tree import CostTree
from bench_methods.cronus import Cronus, CronusInit, CronusSingle
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from bench_methods.early_exit import EarlyExit, Lear
from bench_methods.forward_selection import ForwardSelection
from bench_methods.gbrt import GBRT
from bench_methods.gbrt_subset import SubsetGBRT
from bench_methods.lightgbm import LightGBM, LightGBMCEGB
from bench_methods.linear import L1, RBFSVM, AverageKernelSVM
from bench_methods.miser import GreedyMiser
from bench_methods.qwyc import QWYC
from bench_methods.scikit import RandomForest, ScikitLearn
from bench_methods.xgboost import XGBoost
from helpers.every_learner_cases import LEARNERS
from helpers.kit import refused as refused_in_words

from bench_core import Task, UsageError
from bench_core.conformance import learner_cases, task_splits
from bench_core.conformance.cases import fit, run_all, with_learners
from bench_core.conformance.learner_checks import (
    check_few_rows,
    check_multiplicity,
    check_one_class,
    check_poor_features,
    check_tradeoff,
)

CLASSES, NUMBERS = (Task.BINARY, Task.MULTICLASS), (Task.REGRESSION, Task.RANKING)
TREES, FEW = GBRT(trees=12), GBRT(trees=5)
STACK = AdaptLin(f0=FEW, supports=1, iterations=2, gates=1)
RULES = ("score", "rank", "capacity")
CYCLES = {"cycles": 2, "reweightings": 2}
TROUBLES = (check_few_rows, check_one_class, check_poor_features)
"""Every learner has them, and is audited on them, in ``test_every_learner``."""


def sklearn(path, **arguments):
    return ScikitLearn(estimator=f"sklearn.{path}", arguments=arguments or None)


PROMISES = [
    (Constant(), None),
    (RandomOrder(trees=3, steps=4), None),
    (CheapestFirst(trees=3, steps=4), None),
    (GreedyOrder(trees=3, steps=4), None),
    (ForwardSelection(trees=3, steps=2, learning_rate=0.4, min_rows=5, leaves=4), (Task.RANKING,)),
    (SelectionCascade(base=GreedyOrder(trees=3, steps=4), thresholds=(0.6, 0.9)), None),
    (ConfidenceCascade(base=CEGB(trees=8, tradeoff=0.05), large=TREES, prefixes=2, gates=2), None),
    (SubsetGBRT(trees=4), None),
    (CostTree(min_rows=5), None),
    (BayesCMI(points=6), None),
    (GBRT(trees=5), None),
    (GreedyMiser(trees=5, tradeoff=0.05), None),
    (CEGB(trees=5, tradeoff=0.05), None),
    (LightGBM(trees=3), None),
    (LightGBMCEGB(trees=3, tradeoff=0.05), None),
    (LightGBMCEGB(trees=3, tradeoff=0.05, acquisition="all-rows"), None),
    (XGBoost(trees=3), None),
    (CatBoost(trees=3, tradeoff=0.02, acquisition="all-rows"), None),
    (CatBoost(trees=3, tradeoff=0.02, grow="SymmetricTree"), None),
    (RandomForest(trees=3), None),
    (BudgetBoosting(trees=4, leaves=4), (Task.BINARY,)),
    (SoftCascade(base=TREES, stages=3, cycles=3), None),
    (AndOr(base=TREES, stages=3, cycles=3), None),
    (CronusSingle(base=TREES, rho_last=(0.01,)), None),
    (CronusInit(base=TREES, rho_first=(0.01, 0.1), rho_last=(0.01,), stages=3), None),
    (Cronus(base=TREES, rho_first=(0.01, 0.1), rho_last=(0.01,), stages=3), None),
    (CSTCSingle(base=GBRT(trees=8)), None),
    (ASTC(base=GBRT(trees=8)), None),
    (CSCC(base=GBRT(trees=5, depth=2), **CYCLES), None),
    (CSCC(base=None, prune=False, stages=3, **CYCLES), (Task.REGRESSION,)),
    (CSTC(base=GBRT(trees=5, depth=2), **CYCLES), None),
    (CSTC(base=None, prune=False, depth=2, **CYCLES), (Task.REGRESSION,)),
    (EarlyExit(base=TREES, every=3), CLASSES),
    (QWYC(base=TREES, every=3), None),
    *((EarlyExit(TREES, every=3, rule=rule, k=2), (Task.RANKING,)) for rule in RULES),
    (EarlyExit(base=GreedyMiser(trees=12, tradeoff=0.05), every=3, k=2), (Task.RANKING,)),
    (AdaptGBRT(f0=FEW, trees=4, iterations=2, gates=3), None),
    (AdaptGBRT(f0=STACK, trees=3, iterations=2, p_full=None, gates=2), None),
    (AdaptLin(f0=FEW, supports=2, iterations=3, gates=1), None),
    (AdaptLstsq(f0=FEW, supports=2, iterations=2, gates=1), None),
    (AdaptL1(f0=FEW, supports=2, gates=2), None),
    (L1(points=6), None),
    (RBFSVM(), None),
    (RBFSVM(probability="platt"), None),
    (AverageKernelSVM(), None),
    (BudgetRF(trees=4), None),
    (BudgetPrune(base=BudgetRF(trees=4), tradeoff=0.3), None),
    (BudgetPrune(base=BudgetRF(trees=4)), None),
    (ScikitLearn(), None),
    (sklearn("svm.SVC", C=10.0), CLASSES),
    (sklearn("ensemble.HistGradientBoostingRegressor", max_iter=4), NUMBERS),
    (sklearn("ensemble.ExtraTreesClassifier", n_estimators=3), CLASSES),
]


@pytest.mark.parametrize("later", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", range(len(PROMISES)), ids=[one.name for one, _ in PROMISES])
def test_every_promise_of_a_learner_is_kept(place, later):
    """On one of its tasks, in turn; a slow test has those left out."""
    cases = learner_cases(*PROMISES[place])
    tasks = sorted({case.on for case in cases})
    chosen = tasks[place % len(tasks)]
    chosen = [task for task in tasks if (task == chosen) != bool(later)]
    run_all([case for case in cases if case.on in chosen and case.check not in TROUBLES])


@pytest.mark.parametrize(
    ("learner", "excused"),
    [
        # by the raw rule prices choose features, but end no tree
        (
            CEGB(
                trees=5, acquisition="all-rows", order="level", depth=3, stop="raw", tradeoff=0.05
            ),
            check_tradeoff,
        ),
        # physical copies are served too; a row that stands for copies is served once
        (Lear(base=TREES, sentinels=(2, 5, 9), k=2), check_multiplicity),
    ],
    ids=lambda one: getattr(one, "name", ""),
)
def test_every_promise_is_kept_but_one(learner, excused):
    run_all([case for case in learner_cases(learner) if case.check is not excused])


REFUSED = """
    adapt-gbrt.p_full=1.1 adapt-lin.p_full=-0.1 adapt-lstsq.p_full=nan adapt-gbrt.tradeoff=-1.0
    adapt-lin.iterations=0 adapt-l1.gates=-1 adapt-gbrt.gates=99
    and-or.positive_weight=0.0 and-or.thresholds=[] and-or.cycles=-1
    astc.tolerance=-1.0 astc.budget=-0.1 astc.depth=9
    budget-prune.tradeoff=-1.0 budget-prune.tolerance=-1.0 budget-prune.iterations=0
    budget-rf.trees=0 budget-rf.alpha=-1.0 budget-rf.budget=-0.1 budget-rf.max_bins=256
    budget-rf.significance=0.0
    catboost.trees=0 catboost.min_rows=0 catboost.depth=0
    cegb.trees=-1 cegb.min_rows=0 cegb.max_bins=256 cegb.tradeoff=nan cegb.tradeoff=inf
    confidence-cascade.prefixes=0 confidence-cascade.gates=0 confidence-cascade.gates=99
    cost-tree.price_power=-1.0 cost-tree.depth=0 cost-tree.min_rows=0
    cronus.tradeoff=-1.0 cronus.cut_off=0.0 cronus.positive_weight=0.0 cronus.stages=0
    cronus.drop=1.0 cronus.delta=0.5 cronus.gate_slope=0.0 cronus.rho_first=[0.1,inf]
    cronus.rho_last=[] cronus.steps=0
    cscc.stages=0 cscc.onward=1.0
    cstc.tradeoff=-1.0 cstc.rho=inf cstc.cut_off=0.0 cstc.iterations=0 cstc.gate_slope=0.0
    cstc.cycles=-1 cstc.steps=0 cstc.depth=9
    early-exit.every=0 early-exit.k=0 early-exit.thresholds=[]
    forward-selection.price_power=-1.0 forward-selection.steps=0 forward-selection.steps=100
    gbrt.trees=-1 gbrt.learning_rate=0.0 gbrt.max_bins=256 gbrt.min_rows=0
    gbrt-subset.costs=[] gbrt-subset.costs=[5.0,1.0] gbrt-subset.costs=[-1.0]
    gbrt-subset.costs=[inf] gbrt-subset.costs=[nan]
    l1.points=0 l1.points=100 l1.least=0.0 l1.least=1.0 l1.steps=0 l1.tolerance=0.0
    lear.sentinels=[] lear.sentinels=[5,5] lear.sentinels=[0,5] lear.k=0 lear.leaves=1
    lightgbm.trees=0 lightgbm-cegb.tradeoff=-0.1 miser.tradeoff=-0.1 miser.tradeoff=inf
    qwyc.alphas=[] qwyc.alphas=[0.1,0.1] random-forest.trees=0 random-forest.depth=0
    random-order.learning_rate=0.0 random-order.steps=100 random-order.trees=-1 random-order.l2=-1.0
    rbf-svm.C=0.0 rbf-svm.gamma=-1.0 rbf-svm.max_rows=1
    soft-cascade.stages=0 soft-cascade.ridge=0.0 soft-cascade.limits=[5.0,1.0]
    soft-cascade.limits=[] soft-cascade.tolerance=-1.0 soft-cascade.tradeoff=-1.0
    xgboost.trees=0 xgboost.min_rows=0 xgboost.depth=0
"""


def refused(setting, message):
    """As in ``--set LEARNER.PARAMETER=VALUE``."""
    name, _, assigned = setting.partition(".")
    ((parameter, value),) = tomllib.loads(assigned).items()
    value = tuple(value) if isinstance(value, list) else value
    with pytest.raises((ValueError, UsageError), match=message):
        with_learners(replace(LEARNERS[name](), **{parameter: value}))


@pytest.mark.parametrize("setting", REFUSED.split())
def test_values_out_of_range_are_refused_by_name(setting):
    refused(setting, setting.partition(".")[2].partition("=")[0])


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("and-or.thresholds=[inf]", "finite"),
        ("early-exit.thresholds=[1.0, 1.0]", "different"),
        ("early-exit.thresholds=[-1.0]", "at least 0"),
        (f"early-exit.thresholds={[float(t) for t in range(100)]}", "99"),
        ("lear.thresholds=[0.5, 0.5]", "different"),
        ("selection-cascade.thresholds=[0.5, 0.5]", "different"),
        ("lear.thresholds=[1.5]", "0 to 1"),
        ("soft-cascade.thresholds=[0.5, 0.5]", "different"),
        ("soft-cascade.thresholds=[1.0]", "below 1"),
    ],
)
def test_values_that_mean_nothing_are_refused_with_the_reason(setting, why):
    refused(setting, why)


@pytest.mark.parametrize(
    ("learner", "task", "words"),
    [
        (EarlyExit(base=FEW, rule="class"), Task.RANKING, "rule=class: ranking takes proximity"),
        (EarlyExit(base=FEW, rule="rank"), Task.BINARY, "rule=rank: binary takes class"),
        (
            SelectionCascade(base=CEGB(trees=3)),
            Task.BINARY,
            "choose forward-selection or greedy-order",
        ),
        (
            SelectionCascade(GreedyOrder(trees=2), tuple(np.linspace(0.6, 0.9, 50).tolist())),
            Task.BINARY,
            "points, at most 100; give fewer thresholds or sets",
        ),
        (
            BudgetPrune(base=sklearn("naive_bayes.GaussianNB")),
            Task.BINARY,
            "base 'sklearn' has no trees",
        ),
        (BudgetPrune(base=EarlyExit(base=FEW)), Task.BINARY, "base 'early-exit' has no trees"),
    ],
)
def test_what_does_not_suit_the_task_or_its_base_is_one_line(learner, task, words):
    refused_in_words(words, fit, learner, task_splits(task))
