"""Additive tree ensembles as flat arrays: the only model format of trees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import BoolArray, Float32Array, Float64Array, Int32Array

if TYPE_CHECKING:
    from bench_trees.inference import Layout

LEAF = -1
"""Marks a leaf in ``feature``, ``left`` and ``right``."""

VECTOR = -1
"""Marks a tree in ``output`` whose leaves number rows of ``vectors``."""

_PER_NODE = ("feature", "threshold", "missing_left", "value")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """T trees that add to K outputs over d features.

    Raises ValueError if the arrays do not describe such trees.
    """

    start: Int32Array  # (T+1,) nodes of tree t are start[t]:start[t+1], its root first
    feature: Int32Array  # (nodes,) -1 at a leaf
    threshold: Float32Array  # (nodes,) x <= threshold goes left (inf: every number does)
    left: Int32Array  # (nodes,) absolute node numbers, later than the node; -1 at a leaf
    right: Int32Array
    missing_left: BoolArray  # (nodes,) True if NaN goes left
    value: Float64Array  # (nodes,) leaf output, learning rate included; 0 at inner nodes
    output: Int32Array  # (T,) the output that the tree adds to, or VECTOR
    base: Float64Array  # (K,) the constant
    features: int  # d
    diverged: bool = False  # boosting ended as the training loss rose above the constant's
    vectors: Float64Array | None = None  # (m, K), added by leaves of trees of output VECTOR

    def __post_init__(self) -> None:
        for fault, found in _faults(self):
            if found:
                raise ValueError(f"ensemble: {fault}")

    @property
    def trees(self) -> int:
        """Number of trees T."""
        return len(self.output)

    @property
    def nodes(self) -> int:
        """Number of nodes of all trees."""
        return len(self.feature)

    @property
    def outputs_count(self) -> int:
        """Number of outputs K."""
        return len(self.base)

    @cached_property
    def layout(self) -> Layout:
        """All trees laid out without sensors and costs, for scores alone."""
        from bench_trees.inference import Needs, lay_out

        return lay_out(self, Needs.nothing(self.features))

    @property
    def vector_leaves(self) -> BoolArray:
        """True for leaves (nodes,) that number vectors."""
        of_vectors = np.repeat(self.output == VECTOR, np.diff(self.start))
        return np.asarray(of_vectors & (self.feature == LEAF))

    def with_vectors(self, vectors: Float64Array) -> Ensemble:
        """The trees, whose leaves number rows of ``vectors`` (m, K)."""
        return replace(self, output=np.full_like(self.output, VECTOR), vectors=vectors)

    def select(self, trees: NDArray[np.integer[Any]]) -> Ensemble:
        """The trees with these numbers (m,), in that order."""
        sizes = np.diff(self.start)[trees]
        start = np.append(0, np.cumsum(sizes))
        nodes = np.repeat(self.start[trees] - start[:-1], sizes) + np.arange(start[-1])
        moved = np.repeat(start[:-1] - self.start[trees], sizes)
        leaf = self.feature[nodes] == LEAF
        return replace(
            self,
            start=start.astype(np.int32),
            left=np.where(leaf, LEAF, self.left[nodes] + moved).astype(np.int32),
            right=np.where(leaf, LEAF, self.right[nodes] + moved).astype(np.int32),
            output=self.output[trees],
            **{name: getattr(self, name)[nodes] for name in _PER_NODE},
        )

    def pruned(self, split: BoolArray) -> tuple[Ensemble, BoolArray]:
        """The trees in which only these nodes (nodes,) split, each below another one, and the
        remaining nodes."""
        kept = np.zeros(self.nodes, dtype=bool)
        kept[self.start[:-1]] = True
        kept[self.left[split]] = kept[self.right[split]] = True
        place = np.cumsum(kept) - 1  # new numbers

        def child(side: Int32Array) -> Int32Array:
            return np.where(split, place[side], LEAF)[kept].astype(np.int32)

        ensemble = replace(
            self,
            start=np.append(0, np.cumsum(kept))[self.start].astype(np.int32),
            feature=np.where(split, self.feature, LEAF)[kept].astype(np.int32),
            threshold=np.where(split, self.threshold, 0)[kept].astype(np.float32),
            left=child(self.left),
            right=child(self.right),
            missing_left=(self.missing_left & split)[kept],
            value=self.value[kept],
        )
        return ensemble, kept

    @classmethod
    def concat(cls, parts: Sequence[Ensemble]) -> Ensemble:
        """The trees of all parts in order; the constant is the first part's."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(ensemble, name) for ensemble in parts])
            for name in (*_PER_NODE, "left", "right", "output")
        }
        nodes = [ensemble.nodes for ensemble in parts]
        shift = np.repeat(np.cumsum([0, *nodes[:-1]]), nodes)
        for side in ("left", "right"):
            joined[side] = np.where(joined[side] < 0, LEAF, joined[side] + shift).astype(np.int32)
        sizes = np.concatenate([np.diff(ensemble.start) for ensemble in parts])
        joined["diverged"] = any(ensemble.diverged for ensemble in parts)
        tables = [ensemble.vectors for ensemble in parts if ensemble.vectors is not None]
        if tables:
            rows = [0 if ensemble.vectors is None else len(ensemble.vectors) for ensemble in parts]
            above = np.repeat(np.cumsum([0, *rows[:-1]]), nodes)
            leaves = np.concatenate([ensemble.vector_leaves for ensemble in parts])
            joined["value"] = joined["value"] + above * leaves
            joined["vectors"] = np.concatenate(tables)
        return replace(parts[0], start=np.cumsum([0, *sizes], dtype=np.int32), **joined)

    @classmethod
    def of_trees(
        cls, trees: Sequence[Any], output: Sequence[int] | Int32Array, base: Any, features: int
    ) -> Ensemble:
        """Build from trees with sequences ``feature``, ``threshold``, ``left``, ``right`` (numbers
        within the tree, negative at a leaf), ``missing_left`` and ``value``."""
        start = np.cumsum([0, *(len(tree.left) for tree in trees)], dtype=np.int32)
        shift = np.repeat(start[:-1], np.diff(start))

        def joined(name: str, dtype: Any) -> Any:
            parts = [getattr(tree, name) for tree in trees]
            return np.concatenate([np.zeros(0), *parts]).astype(dtype)

        left, right = joined("left", np.int32), joined("right", np.int32)
        leaf = left < 0
        feature = np.clip(joined("feature", np.int64), LEAF, features)  # one too large is rejected
        return cls(
            start=start,
            feature=np.where(leaf, LEAF, feature).astype(np.int32),
            threshold=np.where(leaf, 0, joined("threshold", np.float32)).astype(np.float32),
            left=np.where(leaf, LEAF, left + shift).astype(np.int32),
            right=np.where(leaf, LEAF, right + shift).astype(np.int32),
            missing_left=joined("missing_left", np.bool_) & ~leaf,
            value=np.where(leaf, joined("value", np.float64), 0.0),
            output=np.asarray(output, dtype=np.int32).reshape(-1),
            base=np.asarray(base, dtype=np.float64).reshape(-1),
            features=features,
        )

    def state(self) -> dict[str, Any]:
        """The arrays by name, ``features`` as int, ``diverged`` if true, ``vectors`` if any."""
        state = {name: getattr(self, name) for name in (*_ARRAYS, "features")}
        state |= {"diverged": True} if self.diverged else {}
        return state | ({} if self.vectors is None else {"vectors": self.vectors})

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``; ignores other entries."""
        arrays: dict[str, Any] = {
            name: np.ascontiguousarray(state[name], t) for name, t in _ARRAYS.items()
        }
        diverged, vectors = bool(state.get("diverged", False)), state.get("vectors")
        return cls(**arrays, features=int(state["features"]), diverged=diverged, vectors=vectors)


_TYPE = {"threshold": np.float32, "missing_left": np.bool_, "value": np.float64, "base": np.float64}
_OTHERS = ("features", "diverged", "vectors")
_ARRAYS = {f.name: _TYPE.get(f.name, np.int32) for f in fields(Ensemble) if f.name not in _OTHERS}


def _faults(e: Ensemble) -> Iterator[tuple[str, Any]]:
    """Possible faults and their tests, in order: a later test assumes that earlier ones passed."""
    for name, dtype in _ARRAYS.items():
        array = getattr(e, name)
        fault = f"{name} must be one-dimensional {np.dtype(dtype)}"
        yield fault, array.ndim != 1 or array.dtype != dtype
    lengths = {len(getattr(e, name)) for name in (*_PER_NODE, "left", "right")}
    yield "arrays per node or per tree differ in length", len(lengths) != 1
    yield "arrays per node or per tree differ in length", len(e.start) != e.trees + 1
    rising = e.start[0] == 0 and e.start[-1] == e.nodes and np.all(np.diff(e.start) > 0)
    yield "start must rise strictly from 0 to the number of nodes", not rising
    outside = (e.output < VECTOR) | (e.output >= e.outputs_count)
    yield "output names an output that does not exist", np.any(outside)
    outside = (e.feature < LEAF) | (e.feature >= e.features)
    yield f"feature must be -1 or 0..{e.features - 1}", np.any(outside)
    finite = np.isfinite(e.value).all() and np.isfinite(e.base).all()
    yield "value or base is not finite", not finite
    yield "a threshold is NaN", np.isnan(e.threshold).any()
    leaf, own, end = e.feature == LEAF, np.arange(e.nodes), np.repeat(e.start[1:], np.diff(e.start))
    for child in (e.left, e.right):
        right = np.where(leaf, child == LEAF, (child > own) & (child < end))
        yield "a child is outside its tree or not after its parent", not right.all()
    children = np.concatenate([e.left[~leaf], e.right[~leaf], e.start[:-1]])
    found = np.zeros(e.nodes, dtype=bool)
    found[children] = True
    once = len(children) == e.nodes and found.all()
    yield "every node but the roots must have exactly one parent", not once
    vectors = np.zeros((0, e.outputs_count)) if e.vectors is None else e.vectors
    fits = vectors.dtype == np.float64 and vectors.shape[1:] == e.base.shape
    yield "vectors must be float64 with a value for each output", not fits
    yield "a vector is not finite", not np.isfinite(vectors).all()
    number = e.value[e.vector_leaves]
    within = (number >= 0) & (number < len(vectors)) & (number == np.floor(number))
    yield "a leaf numbers no vector", not within.all()
