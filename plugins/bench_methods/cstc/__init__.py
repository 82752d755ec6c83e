"""CSTC: cost-sensitive trees of classifiers, each buying the features that its rows need.

Z. Xu, M. J. Kusner, K. Q. Weinberger, M. Chen: Cost-Sensitive Tree of Classifiers, ICML 2013.
``cstc-single`` is the single classifier of eq. 4, ``cscc`` the chain, ``cstc`` the tree of eq. 5,
``astc`` its greedy successor (``bench_methods.cstc.astc``). phi(x) are the outputs of another
learner's boosted trees, learning rate included, or the raw features (``base = none``; a missing
cell counts as the training mean). Node k scores phi.b^k and sends a row up if that is above
theta^k; a terminal element returns its parent's prediction. In training a row goes up with
probability sigmoid(s (phi.b^k - theta^k)); p^k is its probability of reaching node k, p^l the share
that ends at terminal l:

    min (1/N) sum_i sum_k p_i^k (phi_i.b^k - y_i)^2 / 2 + rho sum_k |b^k|_1
      + lambda sum_l p^l [ sum_t e_t sqrt(sum_{j in path(l)} (b_t^j)^2)
                           + sum_a c_a sqrt(sum_{j in path(l)} sum_t (F_at b_t^j)^2) ]

Equations
    4           bench_models.priced_squares.priced_loss    one classifier as if it were a leaf
    5           tree.true_loss                  risk, l1 and tree.expected_cost
    p^k, p^l    tree.flow, tree.arrival
    lemma 1     bench_models.problem.auxiliaries, bench_models.problem.quadratic_price
    one node    tree.NodeObjective              (5) by lemma 1

Square roots and absolute values become quadratic by auxiliary variables (lemma 1). Nodes are
initialised from the root down as if they were leaves, which is convex. Then all nodes are optimised
in turns and pruned on validation. Predictors are refitted on their own non-zero weights.

The paper's lambda is ``tradeoff * L0 / prices.everything`` with L0 the constant predictor's mean
training loss, half its squared error. The loss above has the factor 1/2 [M]; without it lambda
would double. The risk counts every node on the path [P]. a runs over sensors, so shared, discounted
and derived features are charged exactly.

Departures
- The paper does not print the slope s of the gates. 10 solves its synthetic problem, 1 does not. s
  and rho are for labels of that problem's variance, 6, and are rescaled to the actual variance.
- Every classifier has a free constant (``constant = false``: the paper's letter).
- The initial threshold is the middle of the two neighbouring scores nearest the weighted median,
  or in the chain the share ``onward``. A node with equal scores for all rows becomes a leaf.
- Weights below ``cut_off`` become exact zeros, and zeros stay so in the joint optimisation: its own
  optimum buys features early, since every node carries risk.
- Conjugate gradients are replaced by a few L-BFGS steps in whitened coordinates, which end at a
  relative gain below 1e-6. A step that raises the exact loss above is dropped. Passes end at a gain
  below .001 (``tolerance``); with 1e-12 and 1e-4 the mean accuracy over budgets is the same within
  .0006 on letters, spambase and breast-cancer.
- The initialisation is solved as Cronus's: on working sets of columns, which grow until the
  optimality conditions hold for all. The cut-off applies in every iteration.
- Paths differ in length in the chain and where nodes become leaves. There the risk of a row that
  ends early counts again for each classifier that other rows still see: a terminal acts as a chain
  of copies (``tree.copies``, ``TreeFlow.risk_count``). The printed loss would reward ending
  early: the chain would close its first gate.
- Predictors are refitted on the rows that hard gates send to them. A predictor next to a remaining
  child is refitted on the rows of its own side, while the gate keeps its weights.
- Binary labels are -1 and +1, scores 2 f: the tangent of the log-odds 2 artanh(f) at 0.
- A path point is the tree cut at a level, its predictors refitted alike.
"""

from bench_core import provide_learners
from bench_methods.cstc.astc import ASTC
from bench_methods.cstc.learner import CSCC, CSTC, CSTCSingle

bench_learners = provide_learners(CSTCSingle, CSCC, CSTC, ASTC, family="linear trees")
