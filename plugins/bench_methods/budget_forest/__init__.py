"""Trees that know their cost: BudgetRF grows a forest, BudgetPrune prunes any trees.

F. Nan, J. Wang, V. Saligrama, "Feature-budgeted random forest", ICML 2015 (``budget-rf``), and
"Pruning random forests for prediction on a budget", NIPS 2016 (``budget-prune``). Neither text was
at hand: both are followed as restated from them and from the authors' released code; [M] marks
what is recalled and not verified.

``budget-rf``. A node with n_j rows (copies) of class j has the threshold-pairs impurity

    F = sum_{i<j} max(0, [n_i - a]_+ [n_j - a]_+ - a^2),   a = ``alpha`` >= 0.

For feature f let m_f be the least max(F(left), F(right)) over its cuts. The node is split on the
feature with the smallest c_f / (F - m_f), and is a leaf where F = 0 or nothing gains. Trees grow on
bootstrap samples, and the full price is charged at every node, though rows pay a sensor once
when served. Trees are added while validation rows stay within ``budget`` [M].

``budget-prune`` prunes a forest of T trees. z_h = 1 iff node h becomes a leaf, w_ik = 1 iff row i
buys sensor k, e_h the share of training rows misclassified if h is a leaf:

    min (1/T) sum_t sum_h e_h z_h + lambda sum_k c_k (1/N) sum_i w_ik
    s.t. one z = 1 on each path from root to leaf, and w_ik + sum_{h above u} z_h >= 1 for u, the
    first node on the path of row i in tree t that needs k

e_h is that of the bag's rows, w that of validation rows. lambda = tau = ``tradeoff`` x (error of
the constant) / (price of all features). The program has whole optima, and as lambda rises they
shrink, each inside the one before. One convex program gives them all (``pruning``): a fit is
their path, from all trees as mere roots to the whole trees. Each point's gap to the optimum is
certified. Where the next pruning costs much more, its first trees are points too.

Equations
    F                          kernels.pairs
    c_f / (F - m_f)            kernels.grow
    e_h                        forest.errors; where leaves add up: forest.with_means
    u, the first node          kernels.first_needs
    both terms                 pruning.PruningProblem.outcomes
    optima at all lambda       pruning.search, their bounds pruning.bounds

Departures
- A feature whose best cut could be chance is passed over where another one's could not: a cut
  tells if its likelihood ratio statistic reaches a level that noise reaches, on any feature of a
  node, with chance ``significance`` at most. Where none tells, all features count as printed. By
  the printed rule alone (``significance`` 1) useless cheap features are split on to the last row
  before any expensive one: an uninformative cut in halves gains three quarters of F.
- By default a split leaves ``min_rows`` = 3 on each side; the printed rule goes on to one.
- Features are binned to at most ``max_bins`` quantiles; missing values go where the larger impurity
  is least. Cuts that tie take the least sum of both impurities, features that tie the larger gain.
- Of more features than rows, to no more bins than leave 8 rows in each, or 32.
- Free features win over all others, the one with the largest gain first.
- A feature's price is that of all sensors it needs. ``budget-rf`` knows no discount;
  ``budget-prune`` buys sensors, so sharing and discounts are exact.
- Ranking: a document is relevant iff its grade is at least ``relevant_grade``, and scores are the
  log-odds of relevance.
- Evaluation is charged too where prices have it: every row that meets a kept split, and every
  row for a tree that keeps its root.
- Of several best prunings the smallest is taken; at ``tradeoff`` 0 nothing is pruned, to the last
  bit of the scores.
- The constant's error is that of the bags.
- The authors relax w^t <= w for each tree t and take 50 to 100 subgradient steps for one lambda.
  Here one search finds the prunings of every lambda, to ``tolerance``.
- The paper prunes forests of classifiers. Trees whose values v are added or averaged (boosted ones,
  forests of numbers) are pruned too. Node h as a leaf adds v_h, the mean of v over its training
  rows, and e_h = (1/N) sum_i |v_i - v_h|^2 / 2, as a share of what all roots lose: for trees
  fitted to residuals by least squares on these rows that is how far their squared error rises.
  A leaf without rows counts as one.
- The mean probability of class 1 is served as log-odds, of K > 2 classes as logarithms.
"""

from bench_models.boosting import bench_warm_up as bench_warm_up

from bench_core import provide_learners
from bench_methods.budget_forest.prune import BudgetPrune
from bench_methods.budget_forest.rf import BudgetRF

bench_learners = provide_learners(BudgetRF, BudgetPrune)
