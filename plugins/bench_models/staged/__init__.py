"""The one model form: routed stages over a dictionary of trees and standardised columns.

A row starts at stage 0. A stage scores it by a sparse weighted sum over the dictionary plus a bias.
The sum begins with the previous stage's score (``carry``) or at zero. If the score reaches the
stage's ``bar`` the row goes on to stage ``then``, otherwise to stage ``otherwise``; -1 ends its
route. Its score is the score of its last stage. Boosted trees are a chain of stages that carry and
have no bar. A cascade is a chain of bars. A tree of classifiers has two successors per stage::

    boosting   0 -> 1 -> 2 -> ...       cascade  0 -> 1 -> 2       tree   0 -> 1 -> 3
               carry, always pass                |    |                   |    +--> 4
                                                stop stop                 +--> 2 -> ...

Every stage is entered from only one stage. Its number thus determines a row's route: the trees
evaluated before, and the route's cost under the ``model`` accounting.
"""

from bench_models.staged.model import StagedModel
from bench_models.staged.stages import END, MOST_POINTS, Point, Rejected, Stage

__all__ = ["END", "MOST_POINTS", "Point", "Rejected", "Stage", "StagedModel"]
