"""Generated problems of active feature acquisition: the best next purchase depends on the row.

``cube`` and its variants, and ``cube-nm``: classes that differ in three features each (``cube``).
``syn1`` to ``syn3``: one feature says which of the others decide (``syn``).
``bayes-net``: thirty small discrete problems whose optimum is known (``bayes_net``).
"""

from bench_core import provide_datasets
from bench_datasets.acquisition.bayes_net import BayesNet, BayesNetClasses
from bench_datasets.acquisition.cube import Cube, CubeNM, CubePrices, CubeUniform
from bench_datasets.acquisition.syn import Syn1, Syn2, Syn3

bench_datasets = provide_datasets(
    *(Cube, CubeUniform, CubePrices, CubeNM, Syn1, Syn2, Syn3, BayesNet, BayesNetClasses)
)
