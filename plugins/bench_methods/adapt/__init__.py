"""ADAPT: a cheap gate and a cheap classifier in front of a large model for hard rows.

F. Nan and V. Saligrama, "Adaptive Classification for Prediction Under a Budget", NIPS 2017. The
large model f0 is any registered learner for the task, binary or ranking. A gate g and a classifier
f1 are learned together, alternating between (g, f1) and q, the probability that a training row goes
to f0:

    min  mean[ (1 - q) l(f1) + q l(f0) + D(q, g) ] + gamma sum_a c_a [a used by g or f1]
    s.t. mean q <= P_full

Equations
    (OPT)           q_step.F0Limit.objective, the price of features in linear_step.GroupPenalty
    (OPT1)          q_step.KullbackLeibler.log_odds, the bias for P_full in q_step.smallest_bias
    (OPT2)          linear_step.LinearProblem.given, at the best q .best_q; boosted_step.JointLoss
    (1), (2)        boosted_step.JointLoss.gradients
    Algorithm 1     linear_step.fit_in_turns
    Algorithm 2     boosted_step.AdaptGBRT._pair
    sending g > 0   bench_models.large_model.LargeModel

``adapt-lin`` is algorithm 1, ``adapt-gbrt`` algorithm 2, ``adapt-lstsq`` their third with D the
squared difference of log-odds, ``adapt-l1`` the baseline of their section 5. An ADAPT model may
itself be f0 (their note 2). The gamma of adapt-lin is tau of ``bench_models.boosting``. The gamma
of adapt-gbrt is N tau, as its residuals here have no 1/N (the paper prints tau / N, the released
code has 2 N tau).

[M] The supplement was not available. Only one line on adapt-lstsq is known ("fitting g directly to
the log odds ratio of q"). The half square, the step over q and the use of P_full are our own.

Departures
- A row sent to f0 does not pay for f1, a kept row does not pay for f0: c(f_z, g, x) as printed. The
  released evaluator omits the gate for rows sent to f0: the bill ``adapt-released``.
- Each pair is served at several thresholds of its gate, not only at 0, and the last point sends
  everything to f0. ``gates = 0`` keeps only the paper's threshold.
- ``p_full = none`` instead charges each row tau times the extra cost of f0 over f1, as in the
  paper's cost term before it is split in two.
- f0 predicts its own training rows, on which it is more confident than on others. Its probabilities
  are clipped to [1e-6, 1 - 1e-6].
- Ranking data: a document counts as 1 if its grade is at least ``relevant_grade``, as the paper
  binarises Yahoo's. f0 learns the grades, in a different unit. Gates and joint rankings with f1
  need log-odds of the same event. So f0's scores become log-odds of relevance by Platt scaling
  (``bench_models.calibration``), fitted to validation rows. On its training rows f0 is too
  confident, and a line fitted there would rank f0's documents apart from f1's. Binary tasks have
  no calibration.
- The restart is our own. adapt-lin orders the features by sqrt(g^2 + f1^2) at ``tradeoff``, those
  below 1e-4 by the slope of the loss above their price. Then, for each number of them, it restarts
  from g = 0 and the logistic f1 with these features free. A restart takes two steps over q and then
  optimises (g, f1) with q as their function, to a lower objective than 30 alternations. A set
  starts from the pair of a smaller one if that ends lower. So does adapt-lstsq, though its q may
  jump. ``restart = false`` is algorithm 1 as printed, evaluated as in the released code: the
  smallest weights of (g, f1) are set to zero without a refit.
- With more columns than rows (and than 256) only as many are in the first fit of adapt-lin and
  adapt-lstsq, those with the steepest loss for their price. The others come last in the order.
- The penalty of linear pairs is over sensors: price_k sqrt(sum of g_a^2 + f1_a^2 over the features
  that need k). Columns are standardised, intercepts are free, a missing cell counts as the training
  mean, and a ridge of 1e-6 keeps weights finite.
- adapt-gbrt starts each step from the best constants, not from 0, and splits only with a gain (see
  ``miser``). It keeps the step of lowest objective, which may rise as trees are regrown. With
  ``p_full = 0`` no gate is grown: it is Greedy Miser.
- adapt-gbrt's ``depth = 4`` is 4 levels of splits, 16 leaves; the released code's depth 4 has 3
  levels, 8 leaves, and no ``min_rows``. Points are thresholds of the gate, not prefixes of its
  trees (released: every 10).
- adapt-l1 takes one set of features of each size from its path, where the released code takes the
  n largest weights at every C. It sweeps the gate's threshold instead of the class weight.
- An RBF machine as f0 gives sigma of its margin unless ``probability = "platt"``, as released.
"""

from bench_core import provide_learners
from bench_methods.adapt.boosted_step import AdaptGBRT
from bench_methods.adapt.learners import AdaptL1, AdaptLin, AdaptLstsq

bench_learners = provide_learners(AdaptGBRT, AdaptL1, AdaptLin, AdaptLstsq, family="cascades")
