"""ADAPT: a cheap gate and a cheap classifier in front of a large model that hard rows are sent to.

F. Nan and V. Saligrama, "Adaptive Classification for Prediction Under a Budget", NIPS 2017. The
large model f0 is any registered learner of the task at hand, binary or ranking. A gate g and a
classifier f1 are learned together, by turns over q, the probability that a training row goes to f0,
and over (g, f1):

    min  mean[ (1 - q) l(f1) + q l(f0) + D(q, g) ] + gamma sum_a c_a [a used by g or f1]
    s.t. mean q <= P_full

Equations
    (OPT)           q_step.F0Limit.objective, the price of features in linear_step.GroupPenalty
    (OPT1)          q_step.KullbackLeibler.log_odds, the bias for P_full in q_step.smallest_bias
    (OPT2)          linear_step.LinearProblem.given, at the best q .best_q; boosted_step.JointLoss
    (1), (2)        boosted_step.JointLoss.gradients
    Algorithm 1     linear_step.fit_in_turns
    Algorithm 2     boosted_step.AdaptGBRT._pair
    sending g > 0   model.AdaptModel.predict_path

``adapt-lin`` is algorithm 1, ``adapt-gbrt`` algorithm 2, ``adapt-lstsq`` their third with D the
squared difference of log-odds, ``adapt-l1`` the baseline of their section 5. An ADAPT model may
itself be f0 (their note 2). The gamma of adapt-lin is tau of ``bench_models.boosting``; that of
adapt-gbrt, whose residuals carry no 1/N here, is N tau (the paper's printed one tau / N, the
released code's 2 N tau).

[M] The supplement is not at hand. Of adapt-lstsq only one line is known ("fitting g directly to the
log odds ratio of q"); the half square, the step over q and the treatment of P_full are ours.

Departures
- A row sent to f0 does not pay for f1, one kept does not pay for f0: c(f_z, g, x) as printed. The
  released evaluator leaves out the gate of rows that are sent: the bill ``adapt-released``.
- Each pair is served at several thresholds of its gate, not at 0 alone, and the last point sends
  everything to f0. ``gates = 0`` leaves the paper's threshold.
- ``p_full = none`` instead charges each row tau times what f0 costs more than f1, as the
  cost term stands before the paper splits it in two.
- f0 predicts the rows that it was trained on, where it is more certain than elsewhere. Its
  probabilities are kept within [1e-6, 1 - 1e-6].
- Ranking data: a document counts as 1 where its grade is at least ``relevant_grade``, as the paper
  binarises Yahoo's. f0 learns the grades, in a unit of its own; what a gate weighs, and what is
  ranked together with f1's log-odds, must be log-odds of the same event. So f0's scores become
  log-odds of relevance by Platt's line (``bench_models.calibration``), fitted to validation rows:
  of rows that it was trained on f0 is far more certain; a line fitted there ranks what f0 answers
  apart from what f1 does. Binary tasks have no such line.
- The restart is this project's. adapt-lin orders the features by sqrt(g^2 + f1^2) at ``tradeoff``
  and then, for each number of them, restarts from g = 0 and the logistic f1 with these features
  free. ``restart = false`` is algorithm 1 as printed, evaluated as the released code does: the
  smallest weights of (g, f1) are set to zero, nothing is fitted again. A restart
  takes two turns over q and then moves (g, f1) with q as their function, to a lower objective than
  30 turns reach; a set goes on from the pair of a smaller one where that ends lower. So does
  adapt-lstsq, though its q may jump.
- Of more columns than rows (and than 256) only as many take part in the first fit of adapt-lin and
  adapt-lstsq, those whose loss is steepest for their price; others follow in the order.
- The penalty of linear pairs is over sensors: price_k sqrt(sum of g_a^2 + f1_a^2 over the features
  that need k). Columns are standardised, intercepts are free, a missing cell counts as 0, and
  a ridge of 1e-6 keeps weights finite.
- adapt-gbrt starts each step from the best constants, not from 0, splits only where that gains
  (see ``miser``), and keeps the step of lowest objective, which may rise where
  trees are grown afresh. With ``p_full = 0`` no gate is grown: it is Greedy Miser.
- adapt-gbrt's ``depth = 4`` is 4 levels of splits, 16 leaves; the released code's depth 4 has 3
  levels, 8 leaves. ``min_rows`` has no counterpart there. It offers no points at prefixes of its
  trees (released: every 10), but thresholds of the gate.
- adapt-l1 takes one set of features of each size from its path, where the released code takes the
  n largest weights at every C, and sweeps its gate's threshold instead of its class weight.
- An RBF machine as f0 gives sigma of its margin unless ``probability = "platt"``, as released.
"""

from bench_models.boosting import bench_warm_up as bench_warm_up

from bench_core import provide_learners
from bench_methods.adapt.boosted_step import AdaptGBRT
from bench_methods.adapt.learners import AdaptL1, AdaptLin, AdaptLstsq

bench_learners = provide_learners(AdaptGBRT, AdaptL1, AdaptLin, AdaptLstsq)
