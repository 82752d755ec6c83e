"""``bayes-net``: thirty small problems of discrete features, whose optimum is known exactly.

Each is a Bayesian network of at most twelve features and a class, with integer prices. They range
from easy (features independent given the class) to deceptive. Parities show nothing until all parts
are bought. Gates say which features to buy, but nothing about the class. Some noise is cancelled by
another feature. Some copies add little, and some cheap features are decoys.

A network is a list of variables with their parents. Each has the probability of 1 given the
parents' values (or the probabilities of its values 0, 1, ..). The class is ``y``, all others are
features in their order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bench_core import Examples, Prices, Source, Splits, Task, param
from bench_core.arrays import FloatArray

QUICK, LARGE = (1000, 500, 2000), (10_000, 5_000, 10_000)

Chance = float | Sequence[float]
Variable = tuple[str, str, Callable[..., Chance]]
"""Name, names of the parents, and the probability of 1, or of each value, given theirs."""


class PricedNetwork(NamedTuple):
    """A network and the prices of its features."""

    variables: Sequence[Variable]
    prices: Sequence[int]

    def table(self) -> FloatArray:
        """The probability of all values, (v1, .., vd, K)."""
        sizes: dict[str, int] = {}
        joint = np.ones(())
        for name, parents, chance in self.variables:
            above = parents.split()
            shape = tuple(sizes[parent] for parent in above)
            conditional = np.array([_chances(chance(*values)) for values in np.ndindex(shape)])
            sizes[name] = conditional.shape[-1]
            # the parents' axes in the order of the joint table, all others of length 1
            place = sorted(range(len(above)), key=lambda k: [*sizes].index(above[k]))
            factor = conditional.reshape(*shape, -1).transpose([*place, len(above)])
            wide = [size if v in above or v == name else 1 for v, size in sizes.items()]
            joint = joint[..., None] * factor.reshape(wide)
        return np.moveaxis(joint, [*sizes].index("y"), -1)


def _chances(chance: Chance) -> Sequence[float]:
    return (1 - chance, chance) if isinstance(chance, float) else chance


def odd(name: str, parents: str = "", flip: float = 0.5) -> Variable:
    """A bit, 1 if an odd number of parents are 1, flipped by chance; a coin without parents."""
    return name, parents, lambda *v: 1 - flip if sum(v) % 2 else flip


def gated(name: str, gates: str, opened: tuple[int, ...], flip: float) -> Variable:
    """The class, flipped by chance, where the gates have these values; elsewhere a coin."""
    return name, f"{gates} y", lambda *v: 0.5 if v[:-1] != opened else 1 - flip if v[-1] else flip


def even(name: str, count: int) -> Variable:
    """One of ``count`` equally likely values."""
    return name, "", lambda: [1 / count] * count


def linked(
    flips: Iterable[float], prices: Sequence[int], parents: str = "", prior: float = 0.5
) -> PricedNetwork:
    """Features that are each a noisy copy of an earlier one or, by default, of the class."""
    above = parents.split() or ["y"] * len(prices)
    features = [odd(f"x{j}", u, flip) for j, (u, flip) in enumerate(zip(above, flips, strict=True))]
    return PricedNetwork([odd("y", "", prior), *features], prices)


def parities(parts: int, decoys: int) -> PricedNetwork:
    """The class is the parity of the first features; the others are weak copies of the class."""
    names = [f"x{j}" for j in range(parts)]
    last = odd(names.pop(), " ".join(["y", *names]), 0.05)
    weak = [odd(f"z{j}", "y", 0.4) for j in range(decoys)]
    return PricedNetwork([odd("y"), *map(odd, names), last, *weak], [1] * (parts + decoys))


def gate(groups: int, each: int, price: int = 1) -> PricedNetwork:
    """One feature determines the group of others that shows the class."""
    flips = [*enumerate(np.linspace(0.1, 0.25, each).tolist())]
    members = [gated(f"x{k}{j}", "g", (k,), flip) for k in range(groups) for j, flip in flips]
    return PricedNetwork([odd("y"), even("g", groups), *members], [price] + [1] * (groups * each))


def nested_gates() -> PricedNetwork:
    """A first gate selects the second gate, which opens one of two features."""
    ways = [(k, j) for k in (0, 1) for j in (0, 1)]
    members = [gated(f"x{k}{j}", f"g {'ab'[k]}", (k, j), 0.05) for k, j in ways]
    return PricedNetwork([odd("y"), *map(odd, "gab"), *members], [1, 1, 1, 2, 2, 2, 2])


def noisy_gate() -> PricedNetwork:
    """The gate is expensive; two cheap features show it with noise."""
    seen = [odd(f"s{j}", "g", 0.15) for j in range(2)]
    members = [gated(f"x{k}{j}", "g", (k,), 0.1) for k in (0, 1) for j in (0, 1, 2)]
    return PricedNetwork([odd("y"), odd("g"), *seen, *members], [3, 1, 1, 2, 2, 2, 2, 2, 2])


def copies(groups: int, each: int) -> PricedNetwork:
    """Each group starts with an expensive signal; the others copy it."""
    variables = [odd("y")]
    for k in range(groups):
        variables.append(odd(f"x{k}", "y", 0.15 + 0.05 * k))
        variables += [odd(f"x{k}c{j}", f"x{k}", 0.08) for j in range(each - 1)]
    return PricedNetwork(variables, [3, 2, 1, 1][:each] * groups)


def rule(ones: Sequence[bool], chance: float, decoys: int) -> PricedNetwork:
    """The class depends on how many of the first features are 1; decoys copy one of them."""
    parts = len(ones) - 1
    coins = [odd(f"x{j}", "", chance) for j in range(parts)]
    names = " ".join(name for name, _, _ in coins)
    label: Variable = ("y", names, lambda *v: 0.97 if ones[sum(v)] else 0.03)
    weak = [odd(f"z{j}", "x0", 0.2) for j in range(decoys)]
    return PricedNetwork([*coins, label, *weak], [2] * parts + [1] * decoys)


def cancelled(pairs: int) -> PricedNetwork:
    """Each signal has noise shown by another feature, which is useless without the signal."""
    found = [odd("y")]
    for k in range(pairs):
        found += [odd(f"n{k}", "", 0.4), odd(f"x{k}", f"y n{k}", 0.1 + 0.05 * k)]
    return PricedNetwork(found, [1, 2] * pairs)


def trap() -> PricedNetwork:
    """Two cheaper features together make the best single feature worthless."""
    pair = [odd("a"), odd("b", "y a", 0.02)]
    return PricedNetwork(
        [odd("y"), *pair, odd("best", "y", 0.2), odd("copy", "best", 0.05)], [1] * 4
    )


def bits(name: str, bit: int, wrong: float) -> Variable:
    """A bit of the class's number, flipped by chance."""
    return name, "y", lambda y: 1 - wrong if y >> bit & 1 else wrong


def classes(count: int, repeats: int, flip: float) -> PricedNetwork:
    """``count`` classes, with each bit of their numbers observed several times."""
    seen = [(bit, r) for r in range(repeats) for bit in range((count - 1).bit_length())]
    features = [bits(f"x{bit}{r}", bit, flip + 0.1 * r) for bit, r in seen]
    return PricedNetwork([even("y", count), *features], [3 - min(r, 2) for _, r in seen])


def cube(features: int) -> PricedNetwork:
    """CUBE in bits: class k shows in features k, k + 1 and k + 2, the others are coins."""

    def shows(j: int) -> Variable:
        return (
            f"x{j}",
            "y",
            lambda y: 0.5 if not 0 <= j - y < 3 else 0.95 if y >> (j - y) & 1 else 0.05,
        )

    return PricedNetwork([even("y", features - 2), *map(shows, range(features))], [1] * features)


def ternary(count: int) -> PricedNetwork:
    """Three classes and features of three values; each feature separates one class best."""

    def shows(j: int) -> Variable:
        sure = 0.6 + 0.03 * j
        return (
            f"x{j}",
            "y",
            lambda y: (
                [sure if v == y else (1 - sure) / 2 for v in range(3)]
                if y != j % 3
                else [1 / 3] * 3
            ),
        )

    label: Variable = ("y", "", lambda: (0.5, 0.3, 0.2))
    return PricedNetwork([label, *map(shows, range(count))], [1 + j % 4 for j in range(count)])


BINARY: Mapping[str, PricedNetwork] = {
    "naive-4": linked(np.linspace(0.1, 0.4, 4), [1] * 4),
    "naive-8": linked(np.linspace(0.15, 0.45, 8), [1] * 8),
    "naive-12": linked(np.linspace(0.2, 0.45, 12), [1] * 12),
    "naive-prices-8": linked(np.linspace(0.1, 0.38, 8), range(8, 0, -1)),
    "rare-8": linked(np.linspace(0.05, 0.4, 8), [5, 4, 3, 3, 2, 2, 1, 1], prior=0.15),
    "ladder-6": linked([0.4, 0.35, 0.3, 0.2, 0.1, 0.02], [1, 2, 4, 8, 16, 32]),
    # features nearer to the class cost more
    "chain-6": linked([0.1] * 6, range(6, 0, -1), "y x0 x1 x2 x3 x4"),
    "chain-10": linked([0.1] * 10, range(10, 0, -1), "y x0 x1 x2 x3 x4 x5 x6 x7 x8"),
    "tree-6": linked([0.12] * 6, [4, 4, 2, 2, 2, 2], "y y x0 x0 x1 x1"),
    "tree-10": linked([0.12] * 10, [4, 4, *[2] * 4, *[1] * 4], "y y x0 x0 x1 x1 x2 x2 x3 x3"),
    "parity-2": parities(2, 4),
    "parity-3": parities(3, 4),
    "parity-4": parities(4, 5),
    "gate-2x3": gate(2, 3),
    "gate-4x2": gate(4, 2),
    "gate-3x3-dear": gate(3, 3, price=3),
    "gates-nested": nested_gates(),
    "gate-noisy": noisy_gate(),
    "copies-2x3": copies(2, 3),
    "copies-3x4": copies(3, 4),
    "decoys-6": linked([0.05, 0.4, 0.4, 0.42, 0.42, 0.44], [6, 1, 1, 1, 1, 1]),
    "decoys-10": linked([0.03, 0.1] + [0.42] * 8, [9, 6] + [1] * 8),
    "and-3": rule([False] * 3 + [True], 0.75, 3),
    "or-4": rule([False] + [True] * 4, 0.2, 3),
    "majority-7": rule([False] * 4 + [True] * 4, 0.5, 2),
    "cancelled-3": cancelled(3),
    "trap-4": trap(),
}
CLASSES: Mapping[str, PricedNetwork] = {
    "classes-4": classes(4, 4, 0.1),
    "cube-10": cube(10),
    "ternary-6": ternary(6),
}


@dataclass(frozen=True)
class BayesNet:
    """Small discrete problems, from easy to deceptive, whose optimum is shown in boards."""

    name: ClassVar[str] = "bayes-net"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "27 small discrete problems whose optimum is known (generated)"
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")
    problems: ClassVar[Mapping[str, PricedNetwork]] = BINARY

    problem: str = param("gate-2x3", f"one of {', '.join(BINARY)}")

    def __post_init__(self) -> None:
        if self.problem not in self.problems:
            raise ValueError(f"problem must be one of {', '.join(self.problems)}")

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw 1000/500/2000 rows, beyond profile quick 10000/5000/10000."""
        problem = self.problems[self.problem]
        table = problem.table()
        rng = np.random.default_rng([seed, [*self.problems].index(self.problem)])
        train, valid, test = (
            _drawn(table, rows, rng) for rows in (QUICK if size == "quick" else LARGE)
        )
        return Splits(
            *(train, valid, test),
            Prices.additive(np.array(problem.prices, dtype=np.float64)),
            classes=table.shape[-1],
            feature_names=tuple(name for name, _, _ in problem.variables if name != "y"),
            truth={"table": table},
        )


@dataclass(frozen=True)
class BayesNetClasses(BayesNet):
    """Three more problems, of three to eight classes."""

    name: ClassVar[str] = "bayes-net-classes"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "Three such problems of several classes (generated)"
    problems: ClassVar[Mapping[str, PricedNetwork]] = CLASSES

    problem: str = param("classes-4", f"one of {', '.join(CLASSES)}")


def _drawn(table: FloatArray, rows: int, rng: np.random.Generator) -> Examples:
    cells = rng.choice(table.size, rows, p=table.ravel() / table.sum())
    *features, label = np.unravel_index(cells, table.shape)
    return Examples(np.column_stack(features).astype(np.float32), label.astype(np.float64))
