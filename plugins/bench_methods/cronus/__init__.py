"""Cronus: a cascade of re-weighted boosted trees that minimises loss plus test-time cost.

M. Chen, Z. Xu, K. Q. Weinberger, O. Chapelle, D. Kedem: Classifier Cascade for Minimizing Feature
Evaluation Cost, AISTATS 2012. ``cronus-single`` is the single stage of section 3.1 (eq. 4-7),
``cronus-init`` the cascade after Algorithm 2 (eq. 13, 14), ``cronus`` the cascade after Algorithm 1
(eq. 8, 9, 11), warm-started from it. The dictionary is another learner's boosted trees, learning
rate included, so that all weights 1 is that learner; a free constant stands beside them.

Equations
    4-7           initialise.stage_loss       one stage as if it were the last
    8             cascade.true_loss           with bench_models.problem.relaxed_cost
    p, d, q       cascade.flow, cascade.Flow.exit
    9             cascade.StageObjective      (8) as a function of one stage, by (11)
    10, 11        bench_models.problem.auxiliaries    kappa and eta; sigma is |b|
    13, 14        initialise.stage_ridge, initialise._reweight
    Algorithm 1   cascade.optimise, bench_models.descent.improve_in_turns
    Algorithm 2   initialise.initialise
    section 3.4   learner.best over initialisations; units of rho: initialise.critical_rho

The paper's lambda is ``tradeoff * L0 / prices.everything`` with L0 the constant predictor's mean
training loss, because a row's weight is m w / N: m its multiplicity, w its class weight, N the sum
of m. The unit of the lambda that the paper prints (1e-4 * 1.3^-(0..9) on Yahoo) is not given and
cannot be this one: it would make ``tradeoff`` 24 to 2, where even a single stage stays empty from
about .15 on, whatever the number of trees.

rho_1 (of all stages but the last) and rho_K are given as shares of the smallest rho that leaves the
first stage of the initialisation without a tree at ``tradeoff`` 0. As in section 3.4 every pair of
``rho_first`` and ``rho_last`` is initialised, the one with the best metric of the run on validation
is kept, and that one alone is optimised. The validation rows decide nothing else.

Departures
- lambda_k = lambda delta^(K-k). The printed rule (lambda_1 = lambda delta^-K, then falling)
  contradicts its own text, which inflates early stages and reaches lambda at the last.
- Tree weights below ``cut_off`` are set to exact zeros, before any cost is counted: re-weighted
  least squares only approaches zero.
- Stages of the initialisation are solved on working sets of trees, which grow until the optimality
  conditions hold for all trees. The cut-off applies in every iteration; a tree whose weight falls
  below it is given a second chance where the loss would fall with it.
- Columns that are constant on the rows that reach a stage are left out of it. A singular Gram
  matrix gets the smallest sufficient jitter of 1e-10, 1e-8, ... of its diagonal.
- A stage of the initialisation that ends without trees gets an accept-all threshold at once,
  and the optimisation does not revive it. Such stages are not part of the served model; its
  ``facts`` name them.
- No update of the optimisation is accepted that raises eq. (8).
- The class weight 3.5 is the paper's for rare relevant documents. Binary tasks default to 1, which
  the paper calls usual for balanced data: shrunken scores under other weights lose their zero.
- d_k uses the rows' multiplicity but not the class weights: cost knows no classes.
- The tree price e_t is the price of a tree plus that of the splits on the training rows' mean path.
- ``drop`` is reduced where the initial gates would leave fewer rows than ``keep`` times the share
  of positives, since the paper's 15 percent assumes rare positives (``keep = 0``: the letter).
- For ranking, rejected rows are ordered below all survivors, by exit stage and then stage score.
  The printed rule, -1 for all of them, is ``rejected = "minus-one"``; binary tasks have it anyway.
"""

from bench_core import provide_learners
from bench_methods.cronus.learner import Cronus, CronusInit, CronusSingle

bench_learners = provide_learners(CronusSingle, CronusInit, Cronus)
