"""Early exits from an additive ensemble whose trees and their order stay as they are.

``early-exit``: B. B. Cambazoglu, H. Zaragoza, O. Chapelle, J. Chen, C. Liao, Z. Zheng,
J. Degenhardt, "Early exit optimizations for additive machine learned ranking systems", WSDM 2010,
as used by the Cronus paper (AISTATS 2012) and the Greedy Miser paper (ICML 2012). After every 10
trees a row with partial score s may leave. With E exits, of which the E-th is the end, exit
i = 1..E lets go on

    proximity   s >= s_(k) - p_i, s_(k) the k-th best partial score of the query, k = 5,
                p_i = (E - i) / (E - 1) * threshold
    rank        at most r_i - 1 documents of the query score higher
    capacity    the same among the documents that stand before it in the query
    score       s >= tau_i
    class       the largest class probability is at most the threshold (Greedy Miser, section 5)

``proximity`` is stated by both papers, ``class`` by the second. That there are rules by score,
capacity and rank is all that could be verified of them: their form here is recalled, and
r_i and tau_i are ours: r_i = k + (E - i) / (E - 1) * (threshold - k) falls linearly from the
threshold to k; tau_i is the quantile of the training rows' partial scores at exit i that
leaves the share ``threshold`` below.

``lear``: F. Busolin, C. Lucchese, F. M. Nardini, S. Orlando, R. Perego, S. Trani, "Learning early
exit strategies for additive ranking ensembles", SIGIR 2021 (read as an abstract only; details
recalled). At a sentinel a small boosted classifier says how likely a document is to be relevant and
to end among the best ``k``; it goes on if that reaches a threshold. Its inputs are free: partial
score, the same scaled to [0, 1] within the query, the rank, the size of the query.

Equations
    rules         bench_models.staged.exit_rules.ExitRule.stays
    p_i, r_i      learner.EarlyExit._values, exits learner.exits
    lear          lear.Lear._classifiers, inputs bench_models.staged.learned_exits.describe

One fit serves all thresholds: every one is an operating point, and the last point is the full
model. No lambda: thresholds are swept. Training takes nothing but the base's trees.

Departures
- Proximity thresholds are in units of the standard deviation of the base's training scores
  (``facts["spread"]``), so that one grid serves any base. The papers give score units.
- A document exactly on the bar goes on (the papers remove at equality; then, at p = 0, the
  fifth best itself would leave). k-th best means among those still scored; while fewer than k
  are, nobody leaves.
- Documents that left rank below all that did not, by exit and then by partial score. In
  classification rows that left keep their partial scores.
- For K classes an exit comes every 10 iterations of K trees. Log-odds are read as two classes.
- lear: sentinels without trees behind them are dropped. All classifiers are trained on all
  documents; at a later sentinel those that left count with the score they left with. Negative and
  positive examples weigh alike. The classifiers' trees and splits are billed to whom they judge.
"""

from __future__ import annotations

from bench_models.boosting import bench_warm_up

from bench_core import BudgetedLearner, hookimpl
from bench_methods.early_exit.lear import Lear
from bench_methods.early_exit.learner import EarlyExit

bench_warm_up = hookimpl(bench_warm_up)


@hookimpl
def bench_learners() -> list[type[BudgetedLearner]]:
    """Rules by hand, and the learned one."""
    return [EarlyExit, Lear]
