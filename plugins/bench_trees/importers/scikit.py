"""scikit-learn's fitted trees, forests and boosted trees.

A row goes left iff x <= threshold, x float32 and threshold float64, so thresholds are rounded down
to float32. Forests average probabilities for classes and values for numbers. Gradient boosting adds
to a constant, which is derived from a prediction, since no public attribute holds it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array
from bench_trees.importers.imported import Imported, ModelError, Tree, flat

_TREES = ("DecisionTree", "ExtraTree")
_FORESTS = ("RandomForest", "ExtraTrees")
_HISTOGRAM = "HistGradientBoosting"
_GRADIENT = "GradientBoosting"
_PLAIN = ("log_loss", "squared_error", "absolute_error", "huber", "quantile")
_LOGARITHMIC = ("poisson", "gamma")


def is_known(name: str) -> bool:
    """True if ``from_scikit`` may import a class of this name."""
    stem = name.removesuffix("Classifier").removesuffix("Regressor")
    return stem in (*_TREES, *_FORESTS, _HISTOGRAM, _GRADIENT) and stem != name


def from_scikit(estimator: Any, classes: int = 0) -> Imported:
    """The trees of a fitted estimator; raises a one-line ModelError if they cannot be imported.

    ``classes`` K > 1: labels are 0..K-1; classes absent from training get no votes.
    """
    name = type(estimator).__name__
    if not is_known(name):
        raise ModelError(f"{name} is not made of trees that can be imported")
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise ModelError("it has several targets, which cannot be imported")
    if name.startswith(_HISTOGRAM):
        return _histogram(estimator)
    if name.startswith(_GRADIENT):
        return _gradient(estimator)
    return _averaged(estimator, classes)


def _averaged(estimator: Any, classes: int) -> Imported:
    trees = getattr(estimator, "estimators_", [estimator])
    features = int(estimator.n_features_in_)
    if not hasattr(estimator, "classes_"):
        grown = [_tree(t.tree_, t.tree_.value[:, 0, 0]) for t in trees]
        ensemble, limits = flat(grown, [0] * len(trees), np.zeros(1), features)
        return Imported(ensemble, limits, "regression", "scikit-learn", average=True)
    columns = estimator.classes_.astype(np.int64)
    width = max(classes, int(columns.max()) + 1, 2)
    shares = [_shares(t.tree_, columns, width) for t in trees]
    every = np.concatenate(shares)
    # of two classes, the second's share suffices
    kept, axis = (every[:, 1], None) if width == 2 else (every, 0)
    vectors, number = np.unique(kept, axis=axis, return_inverse=True)
    vectors = vectors.reshape(len(vectors), -1)
    ends = np.cumsum([len(s) for s in shares])[:-1]
    grown = []
    for tree, own in zip(trees, np.split(number.reshape(-1), ends), strict=True):
        value = np.zeros(tree.tree_.node_count)
        value[tree.tree_.children_left < 0] = own
        grown.append(_tree(tree.tree_, value))
    ensemble, limits = flat(grown, [0] * len(trees), np.zeros(vectors.shape[1]), features)
    kind = "binary" if width == 2 else "multiclass"
    ensemble = ensemble.with_vectors(vectors)
    return Imported(ensemble, limits, kind, "scikit-learn", (), True, "probability")


def _shares(tree: Any, columns: Int64Array, width: int) -> Float64Array:
    """Class shares of every leaf, (leaves, K)."""
    counts = tree.value[tree.children_left < 0, 0, :]
    found = np.zeros((len(counts), width))
    found[:, columns] = counts / counts.sum(axis=1, keepdims=True)
    return found


def _tree(tree: Any, value: Float64Array, scale: float = 1.0) -> Tree:
    # releases 1.6 to 1.8 may split two rows that both lack a feature, at NaN: nothing is below it
    threshold = np.where(np.isnan(tree.threshold), -np.inf, tree.threshold)
    return Tree(
        feature=tree.feature,
        threshold=threshold,
        left=tree.children_left,
        right=tree.children_right,
        missing_left=np.asarray(tree.missing_go_to_left) != 0,
        value=scale * value,
    )


def _gradient(estimator: Any) -> Imported:
    if estimator.init not in (None, "zero"):
        raise ModelError("it starts from another estimator (init), which cannot be imported")
    rate, stages = float(estimator.learning_rate), estimator.estimators_
    outputs, features = stages.shape[1], int(estimator.n_features_in_)
    if estimator.loss == "exponential":
        rate *= 2.0  # its raw score is half the log-odds
    grown = [_tree(t.tree_, t.tree_.value[:, 0, 0], rate) for t in stages.ravel()]
    output = list(range(outputs)) * len(stages)
    kind = _kind(estimator, outputs)
    predict = estimator.predict if kind == "regression" else estimator.decision_function
    raw = np.ravel(predict(np.zeros((1, features))))
    raw = raw * (2.0 if estimator.loss == "exponential" else 1.0)
    base = raw - _sums_at_zero(grown, output, outputs)
    return Imported(*flat(grown, output, base, features), kind, "scikit-learn")


def _histogram(estimator: Any) -> Imported:
    if estimator.loss not in (*_PLAIN, *_LOGARITHMIC):
        raise ModelError(f"its loss {estimator.loss!r} is not one that can be imported")
    if estimator.is_categorical_ is not None and bool(np.any(estimator.is_categorical_)):
        raise ModelError("it has categorical features, which cannot be imported")
    stages = estimator._predictors
    outputs = int(estimator.n_trees_per_iteration_)
    grown = [_histogram_tree(p.nodes) for stage in stages for p in stage]
    output, base = list(range(outputs)) * len(stages), np.ravel(estimator._baseline_prediction)
    ensemble, limits = flat(grown, output, base, int(estimator.n_features_in_))
    link = "exp" if estimator.loss in _LOGARITHMIC else "identity"
    return Imported(ensemble, limits, _kind(estimator, outputs), "scikit-learn", link=link)


def _histogram_tree(nodes: Any) -> Tree:
    inner = nodes["is_leaf"] == 0
    return Tree(
        feature=nodes["feature_idx"].astype(np.int64),
        threshold=np.where(inner, nodes["num_threshold"], 0.0),
        left=np.where(inner, nodes["left"].astype(np.int64), -1),
        right=np.where(inner, nodes["right"].astype(np.int64), -1),
        missing_left=nodes["missing_go_to_left"] != 0,
        value=nodes["value"],
    )


def _kind(estimator: Any, outputs: int) -> str:
    if not hasattr(estimator, "classes_"):
        return "regression"
    if list(estimator.classes_) != list(range(max(2, outputs))):
        raise ModelError(f"its classes are {estimator.classes_.tolist()}, not 0, 1, ...")
    return "binary" if outputs == 1 else "multiclass"


def _sums_at_zero(trees: Sequence[Tree], output: Sequence[int], outputs: int) -> Float64Array:
    sums = np.zeros(outputs)
    for tree, k in zip(trees, output, strict=True):
        node = 0
        while tree.left[node] >= 0:
            node = int((tree.left if tree.threshold[node] >= 0 else tree.right)[node])
        sums[k] += tree.value[node]
    return sums
