"""What is known of a row under a forest of discrete variables for each class; compiled.

Messages go from the leaves of each tree to its root and back (J. Pearl, Probabilistic Reasoning in
Intelligent Systems, 1988). Naive Bayes is the forest without edges.
"""

# mypy: disallow-untyped-decorators=False
import numpy as np
from numba import njit

from bench_core.arrays import BoolArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def posterior(
    codes: IntArray,
    known: BoolArray,
    forest: tuple[IntArray, IntArray, IntArray, IntArray, IntArray],
    table: FloatArray,
    log_prior: FloatArray,
    temperature: float,
    out: tuple[FloatArray, FloatArray],
) -> None:
    """Write log p(x_m | y), (n, K), and the information of the first k variables, (n, k), into
    ``out``: I(y; x_j | x_m) in nats, 0 where x_j is known.

    ``codes`` (n, V) are read where ``known`` (n, V). ``forest``: of each variable its parent or -1,
    its values, where its own begin among all values and in ``table``, and an order of the
    variables with parents before children. ``table`` holds p(b | a, y) at
    ((y * parent's values) + a) * values + b. Classes weigh prior * p(x_m | y)^(1 / temperature).
    """
    parent, size, place, start, order = forest
    evidence, value = out
    classes, variables, candidates = len(log_prior), len(parent), value.shape[1]
    total = place[-1] + size[-1]
    below, above = np.empty(total), np.empty(total)  # from children; from the parent
    message = np.empty((variables, size.max()))
    tells = np.empty(variables, dtype=np.bool_)  # whether a variable or one below it is known
    belief = np.empty((classes, total))
    sureness = np.zeros((classes, variables))  # minus the entropy of a belief
    share = np.empty(classes)
    linked = parent >= 0  # whether another variable can tell something of it
    for v in range(variables):
        if parent[v] >= 0:
            linked[parent[v]] = True
    for i in range(len(codes)):
        for y in range(classes):
            logarithm = 0.0
            for v in range(variables):
                tells[v] = known[i, v]
                for b in range(size[v]):
                    below[place[v] + b] = 1.0 if not known[i, v] or codes[i, v] == b else 0.0
            for k in range(variables - 1, -1, -1):
                v = order[k]
                if not tells[v]:
                    continue
                u, own = parent[v], place[v]
                above_values = size[u] if u >= 0 else 1
                at, largest = start[v] + y * above_values * size[v], 0.0
                for a in range(above_values):
                    mass = 0.0
                    for b in range(size[v]):
                        mass += table[at + a * size[v] + b] * below[own + b]
                    message[v, a] = mass
                    if u >= 0:
                        below[place[u] + a] *= mass
                        mass = below[place[u] + a]
                    largest = max(largest, mass)
                logarithm += np.log(largest)
                if u >= 0:
                    tells[u] = True
                    for a in range(above_values):
                        below[place[u] + a] /= largest
            evidence[i, y] = logarithm
            if candidates == 0:
                continue
            for k in range(variables):
                v = order[k]
                if i > 0 and not linked[v]:
                    continue  # as for the row before
                u, own = parent[v], place[v]
                above_values = size[u] if u >= 0 else 1
                at, mass = start[v] + y * above_values * size[v], 0.0
                for b in range(size[v]):
                    above[own + b] = 0.0
                for a in range(above_values):
                    weight = 1.0
                    if u >= 0:
                        weight = above[place[u] + a] * below[place[u] + a]
                        if tells[v] and weight > 0.0:
                            weight /= message[v, a]
                    if weight > 0.0:
                        for b in range(size[v]):
                            above[own + b] += weight * table[at + a * size[v] + b]
                for b in range(size[v]):
                    if not linked[v]:
                        below[own + b] = 1.0
                    mass += above[own + b] * below[own + b]
                sureness[y, v] = 0.0
                for b in range(size[v]):
                    above[own + b] /= mass
                    own_share = above[own + b] * below[own + b]
                    belief[y, own + b] = own_share
                    if own_share > 0.0:
                        sureness[y, v] += own_share * np.log(own_share)
        if candidates == 0:
            continue
        highest, mass = -np.inf, 0.0
        for y in range(classes):
            share[y] = log_prior[y] + evidence[i, y] / temperature
            highest = max(highest, share[y])
        for y in range(classes):
            share[y] = np.exp(share[y] - highest)
            mass += share[y]
        for y in range(classes):
            share[y] /= mass
        for v in range(candidates):
            value[i, v] = 0.0
            if known[i, v]:
                continue
            found = 0.0
            for y in range(classes):
                found += share[y] * sureness[y, v]
            for b in range(place[v], place[v] + size[v]):
                mass = 0.0
                for y in range(classes):
                    mass += share[y] * belief[y, b]
                if mass > 0.0:
                    found -= mass * np.log(mass)
            value[i, v] = max(found, 0.0)
