"""Serve exported models on demand, in a process with only numpy.

Reads folders from stdin, one per line, with ``model/``, ``X.npy`` and for queries ``sizes.npy``.
Writes ``served.npz``: scores, spent, sensors acquired (n, s), and the number of rows that broke a
rule. Then prints one line: empty, or the error.
"""

import sys
import traceback
from pathlib import Path

import numpy as np

from bench_core.serving import Answer, StoredPolicy, load

HEAVY = ("pandas", "sklearn", "bench_models")
"""Modules that no model needs, the last one except for policies served by their class."""


class Shop:
    """The features of a block of rows, one row at a time, and the requests for them."""

    def __init__(self, model, X):
        self.model, self.X, self.repeats = model, X, 0
        self.place = {name: j for j, name in enumerate(model.names)}
        self.asked = [set() for _ in X]

    def of(self, first):
        """``acquire`` for the rows of a query from ``first`` on."""

        def acquire(document, names):
            row = first + document
            self.repeats += bool(self.asked[row] & set(names))
            self.asked[row] |= set(names)
            return [float(self.X[row, self.place[name]]) for name in names]

        return acquire

    def sensors(self):
        """Sensors that the rows acquired for the requested features, (n, s)."""
        found = np.zeros((len(self.X), self.model.costs.sensors), dtype=bool)
        for row, names in enumerate(self.asked):
            for name in names:
                found[row, self.model.costs.sensors_of(self.place[name])] = True
        return found


def serve(folder):
    """Serve a folder; return the modules that it loaded and should not."""
    before = {*sys.modules}
    model, X = load(folder / "model"), np.load(folder / "X.npy")
    shop, answers = Shop(model, X), list[Answer]()
    sizes = folder / "sizes.npy"
    first = 0
    for size in np.load(sizes).tolist() if sizes.exists() else [0] * len(X):
        if size:
            answers += model.predict_query(shop.of(first), size)
        else:
            one = shop.of(first)
            answers.append(model.predict(lambda names, one=one: one(0, names)))
        first += max(1, size)
    np.savez(
        folder / "served.npz",
        scores=np.array([a.score for a in answers]),
        spent=np.array([a.spent for a in answers]),
        sensors=shop.sensors(),
        repeats=shop.repeats,
        unlike=sum(set(a.bought) != asked for a, asked in zip(answers, shop.asked, strict=True)),
    )
    heavy = HEAVY[:-1] if isinstance(model.program, StoredPolicy) else HEAVY
    return [name for name in heavy if name in sys.modules and name not in before]


if __name__ == "__main__":
    for line in sys.stdin:
        try:
            loaded = serve(Path(line.rstrip("\n")))
            print(f"loaded {loaded}" if loaded else "", flush=True)
        except Exception:
            print(repr(traceback.format_exc()), flush=True)
