"""The names of ``bench_trees`` and where they live; loaded on first use."""

from .binning import Bins as Bins
from .binning import find_bins as find_bins
from .boosting import boost as boost
from .ensemble import Ensemble as Ensemble
from .kernels import warm_up as warm_up
from .losses import LambdaRank as LambdaRank
from .losses import Logistic as Logistic
from .losses import Loss as Loss
from .losses import Softmax as Softmax
from .losses import Squared as Squared
from .penalties import Ledger as Ledger
from .penalties import Penalty as Penalty
from .settings import Settings as Settings
