"""Serving of fitted models at one operating point: they request features and report their cost.

``load(folder)`` opens a folder written by ``bench model export``. Every model is a ``Program``
(steps over trees and columns) or a ``PolicyProgram``, without code of its learner; or a
``StoredPolicy``, which imports the class of a policy that is neither. Two compiled walks of a
``Program`` give the same answers: ``on_demand`` serves rows that ask, ``block_walk`` many known
rows without a cap.
"""

from bench_core.sequential import StoredPolicy
from bench_core.serving.explanation import ExplainedStep, Explanation
from bench_core.serving.folder import Folder, write_folder
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.predictor import Predictor, load
from bench_core.serving.program import (
    END,
    REJECT,
    VECTOR,
    Exportable,
    Finish,
    Kernel,
    Program,
    Step,
    Stop,
    WeightedColumns,
    WeightedPrices,
    joined,
    no_trees,
)
from bench_core.serving.row_state import Answer, Answers

__all__ = [
    "END",
    "REJECT",
    "VECTOR",
    "Answer",
    "Answers",
    "ExplainedStep",
    "Explanation",
    "Exportable",
    "Finish",
    "Folder",
    "Kernel",
    "PolicyProgram",
    "Predictor",
    "Program",
    "Step",
    "Stop",
    "StoredPolicy",
    "WeightedColumns",
    "WeightedPrices",
    "joined",
    "load",
    "no_trees",
    "write_folder",
]
