"""The one model form: routed stages over a dictionary of trees and raw columns.

A row starts at stage 0. A stage scores it by a sparse weighted sum over the dictionary plus a
bias, on top of the previous stage's score (``carry``) or afresh. If the score reaches the stage's
``bar`` the row goes on to stage ``then``, otherwise to stage ``otherwise``; -1 ends its way, and
the score of the last stage it saw is its score. Boosted trees are a chain of stages that carry and
have no bar, a cascade a chain of bars, a tree of classifiers has two successors per stage::

    boosting   0 -> 1 -> 2 -> ...       cascade  0 -> 1 -> 2       tree   0 -> 1 -> 3
               carry, always pass                |    |                   |    +--> 4
                                                stop stop                 +--> 2 -> ...

Every stage is entered from one stage only, so its number tells a row's whole way: which trees
were evaluated for it before, and what the way costs under the ``model`` accounting.
"""

from bench_models.staged.model import StagedModel
from bench_models.staged.stages import END, MOST_POINTS, Point, Rejected, Stage

__all__ = ["END", "MOST_POINTS", "Point", "Rejected", "Stage", "StagedModel"]
