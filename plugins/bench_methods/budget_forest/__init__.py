"""Cost-aware trees: BudgetRF grows a forest, BudgetPrune prunes any trees.

F. Nan, J. Wang, V. Saligrama, "Feature-budgeted random forest", ICML 2015 (``budget-rf``), and
"Pruning random forests for prediction on a budget", NIPS 2016 (``budget-prune``). Neither text was
available: both methods are restated from secondary sources and the authors' released code. [M]
marks recalled, unverified statements.

``budget-rf``. A node with n_j rows (copies) of class j has the threshold-pairs impurity

    F = sum_{i<j} max(0, [n_i - a]_+ [n_j - a]_+ - a^2),   a = ``alpha`` >= 0.

For feature f let m_f be the least max(F(left), F(right)) over its cuts. The node is split on the
feature with the smallest c_f / (F - m_f). It is a leaf if F = 0 or no cut gains. Trees grow on
bootstrap samples. Every node is charged the full price, though served rows pay a sensor once. Trees
are added while validation rows stay within ``budget`` [M].

``budget-prune`` prunes a forest of T trees. z_h = 1 iff node h becomes a leaf, w_ik = 1 iff row i
buys sensor k, e_h the share of training rows misclassified if h is a leaf:

    min (1/T) sum_t sum_h e_h z_h + lambda sum_k c_k (1/N) sum_i w_ik
    s.t. one z = 1 on each path from root to leaf, and w_ik + sum_{h above u} z_h >= 1 for u, the
    first node on the path of row i in tree t that needs k

e_h counts the bag's rows, w validation rows. lambda = tau = ``tradeoff`` x (error of the constant)
/ (price of all features). The program has integer optima. As lambda rises they shrink, each nested
in the one before. One convex program gives them all (``pruning``). A fit is their path, from all
trees pruned to roots to the unpruned trees. Each point's gap to the optimum is certified. Where the
next pruning costs much more, prefixes of its trees are points too.

Equations
    F                          kernels.pairs
    c_f / (F - m_f)            kernels.grow
    e_h                        forest.errors; where leaves add up: forest.with_means
    u, the first node          kernels.first_needs
    both terms                 pruning.PruningProblem.outcomes
    optima at all lambda       pruning.search, their bounds pruning.bounds

Departures
- Features with a significant cut take precedence over the others. A cut is significant if its
  likelihood ratio statistic reaches a level that noise reaches on any feature of a node with
  probability ``significance`` at most. If no cut is significant, all features count as printed. The
  printed rule alone (``significance`` 1) splits useless cheap features down to single rows before
  any expensive one: an uninformative cut in halves gains three quarters of F.
- By default a split leaves ``min_rows`` = 3 on each side; the printed rule allows 1.
- Features are binned to at most ``max_bins`` quantiles. Missing values go to the side that gives
  the smaller maximum impurity. Ties: cuts by the least sum of both impurities, features by gain.
- With more features than rows, bins hold at least 8 rows each, or there are 32.
- Free features come before all others, the one with the largest gain first.
- A feature's price is the price of all its sensors. ``budget-rf`` ignores discounts.
  ``budget-prune`` buys sensors, so sharing and discounts are exact.
- Ranking: a document is relevant iff its grade is at least ``relevant_grade``, and scores are the
  log-odds of relevance.
- Evaluation prices are charged for every row at a kept split, and for every row in a tree with a
  kept root.
- The smallest of several optimal prunings is taken. At ``tradeoff`` 0 nothing is pruned: scores
  are bit-identical.
- The constant's error is measured on the bags.
- The authors relax w^t <= w for each tree t and take 50 to 100 subgradient steps for one lambda.
  Here one search finds the prunings of every lambda, to ``tolerance``.
- The paper prunes forests of classifiers. Trees whose values v are added or averaged (boosted ones,
  forests of numbers) are pruned too. Node h as a leaf adds v_h, the mean of v over its training
  rows, and e_h = (1/N) sum_i |v_i - v_h|^2 / 2, as a share of the loss of all roots. For trees
  fitted to residuals by least squares on these rows, e_h is the increase of their squared error.
  A leaf without rows counts as one row.
- Scores are log-odds of the mean probability of class 1, or logarithms for K > 2 classes.
"""

from bench_core import provide_learners
from bench_methods.budget_forest.prune import BudgetPrune
from bench_methods.budget_forest.rf import BudgetRF

bench_learners = provide_learners(BudgetRF, BudgetPrune, family="trees")
