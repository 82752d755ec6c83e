"""CSTC: cost-sensitive trees of classifiers, each buying what its part of the rows needs.

Z. Xu, M. J. Kusner, K. Q. Weinberger, M. Chen: Cost-Sensitive Tree of Classifiers, ICML 2013.
``cstc-single`` is the single classifier of eq. 4, ``cscc`` the chain, ``cstc`` the tree of eq. 5,
``astc`` its greedy successor (``bench_methods.cstc.astc``). phi(x) are the outputs of another
learner's boosted trees, learning rate included, or the raw features (``base = none``, a missing
cell is 0). Node k scores phi.b^k and sends a row up if that is above theta^k; a terminal element
returns its parent's prediction. In training a row goes up with probability sigmoid(s (phi.b^k -
theta^k)); p^k is its probability of reaching node k, p^l the share that ends at terminal l:

    min (1/N) sum_i sum_k p_i^k (phi_i.b^k - y_i)^2 / 2 + rho sum_k |b^k|_1
      + lambda sum_l p^l [ sum_t e_t sqrt(sum_{j in path(l)} (b_t^j)^2)
                           + sum_a c_a sqrt(sum_{j in path(l)} sum_t (F_at b_t^j)^2) ]

Equations
    4           tree.solve_leaf                 one classifier as if it were a leaf
    5           tree.true_loss                  risk, l1 and tree.expected_cost
    p^k, p^l    tree.flow, tree.arrival
    lemma 1     bench_models.problem.auxiliaries, bench_models.problem.quadratic_price
    one node    tree.NodeObjective              (5) by lemma 1

Square roots and absolute values become quadratic by auxiliary variables (lemma 1). Nodes are
initialised from the root down as if they were leaves, which is convex; then all are optimised in
turns; then pruned on validation, and what predicts is fitted anew on its own non-zero weights.

The paper's lambda is ``tradeoff * L0 / prices.everything`` with L0 the constant predictor's mean
training loss, half its squared error: 1/2 is in the loss above [M], without it lambda would be
twice that. The risk counts every node on the path [P]. a runs over sensors, so that shared,
discounted and derived features are charged as they are paid.

Departures
- The paper prints no slope s of the gates; 10 solves its synthetic problem, 1 does not. s and rho
  are for labels of that problem's variance, 6, and are converted to that of the labels at hand.
- Every classifier has a free constant (``constant = false``: the paper's letter).
- The initial threshold is the middle of the two neighbouring scores nearest the weighted median;
  in the chain at the share ``onward``. A node that tells no rows apart becomes a leaf.
- Weights below ``cut_off`` become exact zeros, and zeros stay so in the joint optimisation: its own
  optimum buys features early, since every node carries risk.
- Conjugate gradients are replaced by a few L-BFGS steps in whitened coordinates. A step that raises
  the loss above, as it stands, is dropped.
- Where ways differ in length (the chain, nodes become leaves) the risk of a row that ends early
  counts once more for each classifier that others still see, as if its terminal were a chain of
  copies (``tree.copies``, ``Flow.risk_count``). As printed the loss would pay for ending early: the
  chain would close its first gate.
- Predictors are refitted on the rows that hard gates send to them; those beside a remaining child
  on the rows of their own side, while the gate keeps its weights.
- Binary labels are -1 and +1, scores 2 f: the tangent of the log-odds 2 artanh(f) at 0.
- A path point is the tree cut at a level, its predictors refitted alike.
"""

from bench_models.boosting import bench_warm_up as bench_warm_up

from bench_core import provide_learners
from bench_methods.cstc.astc import ASTC
from bench_methods.cstc.learner import CSCC, CSTC, CSTCSingle

bench_learners = provide_learners(CSTCSingle, CSCC, CSTC, ASTC)
