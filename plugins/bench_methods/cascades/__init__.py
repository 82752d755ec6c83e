"""Cascades whose stages are given beforehand: Soft-Cascade and AND-OR.

The trees of another learner are put into stages by the price of their costliest feature: stage k
may use all trees up to the k-th limit (in the Cronus paper, AISTATS 2012, five stages and prices
5, 20, 50, 150, 200). A stage is a linear function f_k = w_k.h + b_k of its trees' outputs h. What
is learned is the weights, jointly for all stages, cycling over them.

``soft-cascade``: V. Raykar, B. Krishnapuram, S. Yu, "Designing efficient cascaded classifiers:
tradeoff between accuracy and cost", KDD 2010 [formulas recalled, not verified in its text]. A
row is positive with probability p_i = prod_k sigma(f_ik). Minimised is, per row,

    - log-likelihood + beta (c_1 + sum_{k>=2} c_k prod_{j<k} sigma(f_ij)) + ridge / 2 sum_k |w_k|^2

c_k: the price of the sensors and trees that stage k adds. beta is tau = ``tradeoff`` times the
constant's log-loss / price of all features, because the loss is a mean over rows.

``and-or``: M. Dundar, J. Bi, "Joint optimization of cascaded classifiers for computer aided
detection", CVPR 2007 [formulas as in its patent]. With y = +-1 and e_ik = 1 - y_i f_ik it minimises

    sum_neg prod_k max(0, e_ik) + nu sum_pos max(0, e_i1, .., e_iK) + ridge / 2 sum_k |w_k|^2

(means over rows): one stage must reject a negative, all must pass a positive. It knows no cost.

Equations
    soft-cascade    objectives.Soft.value, one stage's part objectives.Soft.stage
    and-or          objectives.Hinges.value, one stage's part objectives.Hinges.stage
    stages, c_k     learner.stage_trees, learner.stage_costs
    cycles          objectives.descend, objectives.Descent.improved

When serving, a row is rejected as soon as what it can still reach is below a threshold: p_i so far
for soft-cascade, the smallest f_ik so far for and-or (papers: 0). Both only fall from stage to
stage, so no row that would end above the threshold is ever rejected. Every threshold is an
operating point of the one fit; the last point is the model that rejects nobody.

Departures
- That serving rule, and the sweep, are ours. Cronus' authors drew AND-OR's curve by its weights.
- Stages: ``limits = none`` orders the trees by costliest feature, then by place in the ensemble;
  stage k has the first k / K of them. Where all prices are equal a stage is a prefix of the
  ensemble. Stages without trees, or with the trees of the one before, are left out.
- |w_k|^2 counts weights in the unit in which a stage's columns have variance 1 on average (one
  scale for all, so faint trees are shrunk most). Columns that are constant on the training rows are
  dropped. The constant b_k is free.
- Both are minimised by L-BFGS, stage by stage, begun with each stage fitted by itself; a stage is
  also begun anew from there, since one that passes all rows has no slope. No update
  is kept that raises the objective. The hinge is rounded off over a width of 0.1 meanwhile.
- A stage pays for all its trees' features, whatever path a row takes (as the papers do); what is
  reported is what rows pay.
- Ranking: positive means a grade of at least ``relevant_grade``. Rejected documents rank below all
  others, by stage and then by score. Scores are the log-odds of p_i for soft-cascade. For and-or
  they are the last stage's in ranking, else the smallest f_ik, routed into log-odds by
  Platt's line, fitted on the training rows.
"""

from bench_models.boosting import bench_warm_up

from bench_core import provide_learners
from bench_methods.cascades.learner import AndOr, SoftCascade

__all__ = ["bench_learners", "bench_warm_up"]

bench_learners = provide_learners(SoftCascade, AndOr)
