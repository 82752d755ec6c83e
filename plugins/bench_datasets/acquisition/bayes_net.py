"""``bayes-net``: thirty small problems of discrete features, whose optimum is known exactly.

Each is a Bayesian network of at most twelve features and a class, with whole prices. The shapes go
from easy (features that tell of the class independently) to deceptive: parities, of which nothing
shows until all parts are bought; gates that say which features to buy, and tell nothing themselves;
noise that another feature cancels; copies, of which the second adds little; cheap decoys.

A network is a list of variables, each with its parents and the probability of 1 given their values
(or those of its values 0, 1, ..). The class is ``y``, all others are features in their order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bench_core import Examples, Prices, Source, Splits, Task, param
from bench_core.arrays import FloatArray

QUICK, LARGE = (1000, 500, 2000), (10_000, 5_000, 10_000)

Chance = float | Sequence[float]
Variable = tuple[str, str, Callable[..., Chance]]
"""Name, names of the parents, and the probability of 1, or of each value, given theirs."""


class Problem(NamedTuple):
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
            given = np.array([_chances(chance(*values)) for values in np.ndindex(shape)])
            sizes[name] = given.shape[-1]
            # the parents' axes in the order of the joint table, all others of length 1
            place = sorted(range(len(above)), key=lambda k: [*sizes].index(above[k]))
            factor = given.reshape(*shape, -1).transpose([*place, len(above)])
            wide = [size if v in above or v == name else 1 for v, size in sizes.items()]
            joint = joint[..., None] * factor.reshape(wide)
        return np.moveaxis(joint, [*sizes].index("y"), -1)


def _chances(chance: Chance) -> Sequence[float]:
    return (1 - chance, chance) if isinstance(chance, float) else chance


def coin(name: str, chance: float = 0.5) -> Variable:
    """1 by chance."""
    return name, "", lambda: chance


def noisy(name: str, parent: str, flip: float) -> Variable:
    """A binary parent's value, flipped by chance."""
    return name, parent, lambda v: flip if v == 0 else 1 - flip


def parity(name: str, parents: str, flip: float) -> Variable:
    """Whether an odd number of parents are 1, flipped by chance."""
    return name, parents, lambda *v: 1 - flip if sum(v) % 2 else flip


def gated(name: str, gates: str, opened: Sequence[int], flip: float) -> Variable:
    """The class, flipped by chance, where the gates have these values; else a coin."""

    def chance(*values: int) -> float:
        *gate, y = values
        return 0.5 if gate != [*opened] else (flip if y == 0 else 1 - flip)

    return name, f"{gates} y", chance


def spread(low: float, high: float, count: int) -> list[float]:
    """Evenly spaced chances."""
    return [float(chance) for chance in np.linspace(low, high, count)]


def naive(flips: Sequence[float], prices: Sequence[int], prior: float = 0.5) -> Problem:
    """Features that depend on the class alone."""
    features = [noisy(f"x{j}", "y", flip) for j, flip in enumerate(flips)]
    return Problem([coin("y", prior), *features], prices)


def chain(length: int) -> Problem:
    """Each feature a noisy copy of the one before: those nearer to the class cost more."""
    links = [noisy(f"x{j}", f"x{j - 1}" if j else "y", 0.1) for j in range(length)]
    return Problem([coin("y"), *links], range(length, 0, -1))


def tree(count: int) -> Problem:
    """A binary tree under the class; leaves are cheap."""
    parents = ["y" if j < 2 else f"x{(j - 2) // 2}" for j in range(count)]
    nodes = [noisy(f"x{j}", parent, 0.12) for j, parent in enumerate(parents)]
    return Problem([coin("y"), *nodes], [4 if j < 2 else 2 if j < 6 else 1 for j in range(count)])


def parities(parts: int, decoys: int) -> Problem:
    """The class is the parity of the first features; the others tell a little each."""
    free = [coin(f"x{j}") for j in range(parts - 1)]
    others = " ".join(f"x{j}" for j in range(parts - 1))
    last = parity(f"x{parts - 1}", f"y {others}", 0.05)
    weak = [noisy(f"z{j}", "y", 0.4) for j in range(decoys)]
    return Problem([coin("y"), *free, last, *weak], [1] * (parts + decoys))


def gate(groups: int, each: int, price: int = 1) -> Problem:
    """One feature says which group of others shows the class."""
    which: Variable = ("g", "", lambda: [1 / groups] * groups)
    members = [
        gated(f"x{k}{j}", "g", [k], flip)
        for k in range(groups)
        for j, flip in enumerate(spread(0.1, 0.25, each))
    ]
    return Problem([coin("y"), which, *members], [price] + [1] * (groups * each))


def nested_gates() -> Problem:
    """A first gate says which second gate opens one of two features."""
    gates = [coin("g"), coin("a"), coin("b")]
    members = [
        gated(f"x{k}{j}", f"g {second}", [k, j], 0.05)
        for k, second in enumerate("ab")
        for j in (0, 1)
    ]
    return Problem([coin("y"), *gates, *members], [1, 1, 1, 2, 2, 2, 2])


def noisy_gate() -> Problem:
    """The gate is dear; two features tell it with noise, cheaply."""
    seen = [noisy(f"s{j}", "g", 0.15) for j in range(2)]
    members = [gated(f"x{k}{j}", "g", [k], 0.1) for k in (0, 1) for j in (0, 1, 2)]
    return Problem([coin("y"), coin("g"), *seen, *members], [3, 1, 1, 2, 2, 2, 2, 2, 2])


def copies(groups: int, each: int) -> Problem:
    """Hidden signals stand first in each group, at a price; the others copy them."""
    found: list[Variable] = [coin("y")]
    for k in range(groups):
        found.append(noisy(f"x{k}", "y", 0.15 + 0.05 * k))
        found += [noisy(f"x{k}c{j}", f"x{k}", 0.08) for j in range(each - 1)]
    return Problem(found, [3, 2, 1, 1][:each] * groups)


def rule(parts: int, holds: Callable[[int], bool], chance: float, decoys: int) -> Problem:
    """The class depends on how many of the first features are 1; decoys copy one of them."""
    coins = [coin(f"x{j}", chance) for j in range(parts)]
    names = " ".join(f"x{j}" for j in range(parts))
    label: Variable = ("y", names, lambda *v: 0.97 if holds(sum(v)) else 0.03)
    weak = [noisy(f"z{j}", "x0", 0.2) for j in range(decoys)]
    return Problem([*coins, label, *weak], [2] * parts + [1] * decoys)


def cancelled(pairs: int) -> Problem:
    """Each signal has noise of its own, which another feature tells and which is worth nothing
    without it."""
    found: list[Variable] = [coin("y")]
    for k in range(pairs):
        found += [coin(f"n{k}", 0.4), parity(f"x{k}", f"y n{k}", 0.1 + 0.05 * k)]
    return Problem(found, [1, 2] * pairs)


def trap() -> Problem:
    """The best single feature is one that two cheaper ones make worthless."""
    pair = [coin("a"), parity("b", "y a", 0.02)]
    return Problem(
        [coin("y"), *pair, noisy("best", "y", 0.2), noisy("copy", "best", 0.05)], [1, 1, 1, 1]
    )


def classes(count: int, repeats: int, flip: float) -> Problem:
    """As many classes, each bit of whose number is seen several times."""
    label: Variable = ("y", "", lambda: [1 / count] * count)
    bits = range((count - 1).bit_length())

    def seen(bit: int, wrong: float) -> Callable[[int], float]:
        return lambda y: 1 - wrong if y >> bit & 1 else wrong

    features = [
        (f"x{bit}{r}", "y", seen(bit, flip + 0.1 * r)) for r in range(repeats) for bit in bits
    ]
    return Problem([label, *features], [3 - min(r, 2) for r in range(repeats) for _ in bits])


def cube(features: int) -> Problem:
    """CUBE in bits: class k shows in features k, k + 1 and k + 2, the others are coins."""

    def seen(j: int) -> Callable[[int], float]:
        return lambda y: 0.5 if not 0 <= j - y < 3 else (0.95 if y >> (j - y) & 1 else 0.05)

    count = features - 2
    label: Variable = ("y", "", lambda: [1 / count] * count)
    return Problem([label, *((f"x{j}", "y", seen(j)) for j in range(features))], [1] * features)


def ternary(count: int) -> Problem:
    """Three classes and features of three values, each of which separates one class best."""
    label: Variable = ("y", "", lambda: (0.5, 0.3, 0.2))

    def seen(j: int) -> Callable[[int], Chance]:
        sure = 0.6 + 0.03 * j
        return lambda y: (
            [sure if v == y else (1 - sure) / 2 for v in range(3)] if y != j % 3 else [1 / 3] * 3
        )

    return Problem(
        [label, *((f"x{j}", "y", seen(j)) for j in range(count))], [1 + j % 4 for j in range(count)]
    )


BINARY: Mapping[str, Callable[[], Problem]] = {
    "naive-4": lambda: naive(spread(0.1, 0.4, 4), [1] * 4),
    "naive-8": lambda: naive(spread(0.15, 0.45, 8), [1] * 8),
    "naive-12": lambda: naive(spread(0.2, 0.45, 12), [1] * 12),
    "naive-prices-8": lambda: naive(spread(0.1, 0.38, 8), range(8, 0, -1)),
    "rare-8": lambda: naive(spread(0.05, 0.4, 8), [5, 4, 3, 3, 2, 2, 1, 1], prior=0.15),
    "ladder-6": lambda: naive([0.4, 0.35, 0.3, 0.2, 0.1, 0.02], [1, 2, 4, 8, 16, 32]),
    "chain-6": lambda: chain(6),
    "chain-10": lambda: chain(10),
    "tree-6": lambda: tree(6),
    "tree-10": lambda: tree(10),
    "parity-2": lambda: parities(2, 4),
    "parity-3": lambda: parities(3, 4),
    "parity-4": lambda: parities(4, 5),
    "gate-2x3": lambda: gate(2, 3),
    "gate-4x2": lambda: gate(4, 2),
    "gate-3x3-dear": lambda: gate(3, 3, price=3),
    "gates-nested": nested_gates,
    "gate-noisy": noisy_gate,
    "copies-2x3": lambda: copies(2, 3),
    "copies-3x4": lambda: copies(3, 4),
    "decoys-6": lambda: naive([0.05, 0.4, 0.4, 0.42, 0.42, 0.44], [6, 1, 1, 1, 1, 1]),
    "decoys-10": lambda: naive([0.03, 0.1] + [0.42] * 8, [9, 6] + [1] * 8),
    "and-3": lambda: rule(3, lambda ones: ones == 3, 0.75, 3),
    "or-4": lambda: rule(4, lambda ones: ones > 0, 0.2, 3),
    "majority-7": lambda: rule(7, lambda ones: ones > 3, 0.5, 2),
    "cancelled-3": lambda: cancelled(3),
    "trap-4": trap,
}
CLASSES: Mapping[str, Callable[[], Problem]] = {
    "classes-4": lambda: classes(4, 4, 0.1),
    "cube-10": lambda: cube(10),
    "ternary-6": lambda: ternary(6),
}


@dataclass(frozen=True)
class BayesNet:
    """Small discrete problems, from easy to deceptive, whose optimum boards show."""

    name: ClassVar[str] = "bayes-net"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "27 small discrete problems whose optimum is known (generated)"
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")
    problems: ClassVar[Mapping[str, Callable[[], Problem]]] = BINARY

    problem: str = param("gate-2x3", f"one of {', '.join(BINARY)}")

    def __post_init__(self) -> None:
        if self.problem not in self.problems:
            raise ValueError(f"problem must be one of {', '.join(self.problems)}")

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw 1000/500/2000 rows, beyond profile quick 10000/5000/10000."""
        made = self.problems[self.problem]()
        table = made.table()
        rng = np.random.default_rng([seed, [*self.problems].index(self.problem)])
        train, valid, test = (
            _drawn(table, rows, rng) for rows in (QUICK if size == "quick" else LARGE)
        )
        return Splits(
            *(train, valid, test),
            Prices.additive(np.array(made.prices, dtype=np.float64)),
            classes=table.shape[-1],
            feature_names=tuple(name for name, _, _ in made.variables if name != "y"),
            truth={"table": table},
        )


@dataclass(frozen=True)
class BayesNetClasses(BayesNet):
    """Three more problems, of three to eight classes."""

    name: ClassVar[str] = "bayes-net-classes"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "Three such problems of several classes (generated)"
    problems: ClassVar[Mapping[str, Callable[[], Problem]]] = CLASSES

    problem: str = param("classes-4", f"one of {', '.join(CLASSES)}")


def _drawn(table: FloatArray, rows: int, rng: np.random.Generator) -> Examples:
    cells = rng.choice(table.size, rows, p=table.ravel() / table.sum())
    *features, label = np.unravel_index(cells, table.shape)
    return Examples(np.column_stack(features).astype(np.float32), label.astype(np.float64))
