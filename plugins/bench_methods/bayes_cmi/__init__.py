"""A policy that buys what tells most about the class per price, under naive Bayes or trees.

C. Ma, S. Tschiatschek, K. Palla, J. M. Hernandez-Lobato, S. Nowozin, C. Zhang, "EDDI: Efficient
dynamic discovery of high-value information with partial VAE", ICML 2019, buy the feature of the
highest expected information. Here the class is the only latent variable, so that this information
is a sum and needs no draws. With x_m what is bought and c_j the marginal price, a row buys

    argmax_j  I(y; x_j | x_m) / c_j,   I = sum_{y,b} p(y, b | x_m) log( p(b | y, x_m) / p(b | x_m) )

and stops where that is at most t H(y) / (price of everything): t, the operating point, is the
price of everything in units of the information that the class holds. Numbers are cut into ``bins``
of equal frequency, missing cells being one more. Shares are counted with one row added to each.

    p(x | y) = prod_j p(x_j | y)                naive
    p(x | y) = prod_j p(x_j | x_parent(j), y)   tree, the same for all classes, that maximises
                                                sum_j I(x_j; x_parent(j) | y)

The first is what K. Chai, L. Deng, Q. Yang, C. Ling, "Test-cost sensitive naive Bayes
classification", ICDM 2004, buy by with misclassification costs [M]. The second is N. Friedman,
D. Geiger, M. Goldszmidt, Machine Learning 29 (1997), after C. Chow, C. Liu, IEEE Transactions on
Information Theory 14 (1968) [M]. [M] marks formulas restated from memory.

Equations
    I, p(x | y)      kernels.posterior
    combinations     model.Variables.of_rows
    shares           model.Forest.of
    tree             model.chow_liu
    purchases, stop  model.BayesPolicy.act
    T                model.temperature_of

Departures
- EDDI's latent variable is continuous, its posterior a network's and its information estimated
  from draws. It stops by a limit on the information per price, which here has the unit above.
- The columns of one purchase are one variable: the combinations of their bins, whose shares are
  counted, so that nothing is assumed of columns that are bought together. Of more than 128
  combinations, those that tell nearly the same about the class are one value; this only lowers the
  information. A column that several purchases give together is not used, and a purchase is not
  credited with columns of another one that it includes.
- Branches of the tree that gain less than the Bayesian information criterion takes for their shares
  are left out. Shares given another variable lean on those given the class alone by 5 rows.
- One temperature T calibrates: classes weigh p(y) p(x_m | y)^(1/T). It is fitted to the log-loss
  of the validation rows, of which 1, 2, 4, ... and all purchases are known, in the order of their
  initial information per price. ``temperature`` sets it.
- Under a cap the choice is among what the row can still pay for.
- Evaluating the posterior is not charged.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from bench_core import (
    Examples,
    FitContext,
    Prices,
    Sequential,
    Task,
    among,
    log,
    param,
    provide_learners,
)
from bench_methods.bayes_cmi.model import BayesPolicy, Forest, Variables, temperature_of

MOST_IN_TREE = 128
"""Variables of which all pairs are looked at without being asked to."""

SPAN = 1e-5
"""The last operating point's price of information, as a share of the first one's."""


@dataclass(frozen=True, kw_only=True)
class BayesCMI:
    """Purchases of most information about the class per price, by counted shares."""

    name: ClassVar[str] = "bayes-cmi"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "scipy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})

    bins: int = param(8, "most bins of a number", least=2, most=64, search=log(4, 32))
    dependence: Literal["auto", "naive", "tree"] = param(
        "auto",
        "what variables may depend on besides the class: nothing, or one other each; auto: tree up "
        "to 128 variables",
        search=among("naive", "tree"),
    )
    temperature: float | None = param(
        None, "T, what log p(x | y) is divided by; none: fitted to the validation rows", above=0
    )
    points: int = param(60, "operating points", least=2, most=100)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Count on ``train``; ``valid`` calibrates."""
        variables = Variables.of_rows(train, prices, self.bins, context)
        codes = variables.codes(train.X, context.threads)
        few = self.dependence == "auto" and len(variables.sizes) <= MOST_IN_TREE
        tree = few or self.dependence == "tree"
        forest = Forest.of(codes, train, variables.sizes, tree, context)
        policy = BayesPolicy({"tradeoff": (1.0,)}, variables, forest, prices, 1.0)
        first = policy.worth(np.full((1, prices.features), np.nan, np.float32))[0]
        order = np.argsort(-first, kind="stable")
        paid = order[policy.purchases.price[order] > 0]
        policy = replace(
            policy, temperature=self.temperature or temperature_of(policy, valid, paid)
        )
        # nobody buys at the highest price: what is free is known, and may differ by row
        most = float(policy.worth(policy.free(valid.X)).max(initial=0.0)) or 1.0
        stops = np.geomspace(most, most * SPAN, self.points).tolist()
        context.progress(1, 1)
        return Sequential(replace(policy, stops={"tradeoff": stops}), prices)


bench_learners = provide_learners(BayesCMI)
