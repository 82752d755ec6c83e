"""Posteriors of a mixture's hypotheses, and what a feature is expected to tell, row by row."""

from typing import Any

import numpy as np
from numba import njit

LEAST = 1e-12  # a share that counts
SURE = 1e-9  # the probability of all classes but one, from which nothing is asked
ROOT = np.sqrt(2 * np.pi)


@njit(cache=True, nogil=True)
def posterior(cells: Any, kind: Any, mean: Any, sd: Any) -> Any:
    """The probabilities (n, h) of equally likely hypotheses after cells (n, d), NaN: not bought.

    ``kind`` (d, h) names the density of each feature: normal, or uniform where ``sd`` (u,) < 0.
    """
    n, d = cells.shape
    found = np.zeros((n, kind.shape[1]))
    logs = np.zeros(len(mean))
    for i in range(n):
        for j in range(d):
            x = np.float64(cells[i, j])
            if np.isnan(x):
                continue
            for u in range(len(mean)):
                if sd[u] < 0:
                    logs[u] = 0.0 if 0 <= x < 1 else -1e9
                else:
                    logs[u] = -0.5 * ((x - mean[u]) / sd[u]) ** 2 - np.log(sd[u] * ROOT)
            for h in range(kind.shape[1]):
                found[i, h] += logs[kind[j, h]]
        found[i] = np.exp(found[i] - found[i].max())
        found[i] /= found[i].sum()
    return found


@njit(cache=True, nogil=True)
def gains(
    hypotheses: Any, bought: Any, label: Any, column: Any, apart: Any, kind: Any, density: Any
) -> Any:
    """The information (n, k) about the class that each purchase not made is expected to give.

    ``hypotheses`` (n, h) are probabilities, ``label`` (h,) classes, ``column`` (k,) the only
    feature that a purchase shows, or -1: then ``apart`` (k, h) numbers what it tells apart.
    ``density`` (u, nodes) are the probabilities of a feature's values under each ``kind`` (d, h).
    """
    n, count = hypotheses.shape
    kinds = len(density)
    classes = label.max() + 1
    found = np.zeros(bought.shape)
    own = np.zeros(kinds)
    for u in range(kinds):
        for p in density[u]:
            own[u] += p * np.log(p) if p > 0 else 0.0
    for i in range(n):
        whole = np.zeros((1, classes))
        for h in range(count):
            whole[0, label[h]] += hypotheses[i, h]
        if whole.max() > 1 - SURE:
            continue
        before = _entropy(whole)
        for k in range(bought.shape[1]):
            if bought[i, k]:
                continue
            j = column[k]
            groups = count if j < 0 else kinds
            share = np.zeros((groups, classes))
            for h in range(count):
                share[apart[k, h] if j < 0 else kind[j, h], label[h]] += hypotheses[i, h]
            after = _entropy(share) if j < 0 else _mixed(share, density, own)
            found[i, k] = max(before - after, 0.0)
    return found


@njit(cache=True, nogil=True)
def _entropy(share: Any) -> float:
    """Entropy of the class given the group, of their shares (groups, K)."""
    total = 0.0
    for g in range(share.shape[0]):
        own = share[g].sum()
        for y in range(share.shape[1]):
            if share[g, y] > 0:
                total -= share[g, y] * np.log(share[g, y] / own)
    return total


@njit(cache=True, nogil=True)
def _mixed(share: Any, density: Any, own: Any) -> float:
    """Entropy of the class given a value, of shares (u, K) of classes with each density; ``own``
    (u,) is the sum of p log p of each density.

    A class with a single density needs no sum over values: only those with several do, and all
    classes together.
    """
    kinds, classes = share.shape
    every = share.sum(axis=1)
    if (every > LEAST).sum() <= 1:  # a value tells nothing
        return _entropy(share)
    total, several = 0.0, np.zeros(classes, np.bool_)
    for y in range(classes):
        u = share[:, y].argmax()
        p = share[u, y]
        several[y] = share[:, y].sum() - p > LEAST
        if p > 0 and not several[y]:
            total -= p * (np.log(p) + own[u])
    for x in range(density.shape[1]):
        p = 0.0
        for u in range(kinds):
            p += every[u] * density[u, x]
        if p > 0:
            total += p * np.log(p)
        for y in range(classes):
            if several[y]:
                p = 0.0
                for u in range(kinds):
                    p += share[u, y] * density[u, x]
                if p > 0:
                    total -= p * np.log(p)
    return total
