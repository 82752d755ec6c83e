"""Text columns of a user's tables as numbers, by rules that see no labels.

A column of at most ``ONE_HOT`` different texts in the training rows becomes one column of 0 and 1
for each of them (``sex=f``), another one a column of codes, 0 for the most frequent text;
``readers.tables`` limits how many there may be. All columns made of one are read by one sensor. A
missing cell is missing in all of them; a text of no training row is 0 everywhere, or a missing
code.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench_core.arrays import Float32Array
from bench_core.datasets.file_parts import Part
from bench_core.datasets.readers.texts import TextArray, different_texts
from bench_core.errors import InputError

ONE_HOT = 12


def encoded(parts: dict[str, Part], notes: list[str]) -> tuple[dict[str, Part], tuple[str, ...]]:
    """The parts with all columns as numbers, and the column that each feature is made of ("()" if
    none was text). A note is added for each column of text."""
    given = parts["train"].names
    texts = {name for name in given if any(name in part.texts for part in parts.values())}
    if not texts:
        return parts, ()
    made: dict[str, list[Float32Array]] = {split: [] for split in parts}
    names: list[str] = []
    origins: list[str] = []
    for j, name in enumerate(parts["train"].names):
        known: list[str] = []
        if name in texts:
            known = _known(parts, name)
            notes.append(_note(name, len(known)))
        for split, part in parts.items():
            made[split].append(_columns(part.texts[name], known) if known else part.X[:, j : j + 1])
        inside = _features(name, known)
        names += inside
        origins += [name] * len(inside)
    for name, times in Counter(names).items():
        if times > 1:
            raise InputError(f"{parts['train'].path}: two features would be called {name!r}")
    return {
        split: replace(part, X=np.hstack(made[split]), names=tuple(names), texts={})
        for split, part in parts.items()
    }, tuple(origins)


def _known(parts: dict[str, Part], name: str) -> list[str]:
    """The texts of the training rows, the most frequent first, equals in order."""
    for part in parts.values():
        if name not in part.texts:
            raise InputError(
                f"{part.path}: column {name!r} holds numbers here and text elsewhere; use one"
            )
    counts = different_texts(parts["train"].texts[name])
    return sorted(counts, key=lambda text: -counts[text]) or ["-"]


def _features(name: str, known: list[str]) -> list[str]:
    return [f"{name}={text}" for text in known] if 1 < len(known) <= ONE_HOT else [name]


def _columns(texts: TextArray, known: list[str]) -> Float32Array:
    """The features (n, k) made of a column (n,), where "" is a missing cell."""
    made: Float32Array
    if 1 < len(known) <= ONE_HOT:
        made = (texts[:, None] == np.array(known, dtype=object)[None, :]).astype(np.float32)
    else:
        code = {text: float(k) for k, text in enumerate(known)}
        made = np.array([[code.get(text, np.nan)] for text in texts], dtype=np.float32)
    made[texts == ""] = np.nan
    return made


def _note(name: str, values: int) -> str:
    how = f"{values} features of 0 and 1, read by one sensor"
    if not 1 < values <= ONE_HOT:
        how = "codes, 0 for the most frequent"
    return f"column {name!r} holds text ({values} values in training): made {how}"


def positions(origins: tuple[str, ...]) -> Iterator[int]:
    """The number of the column that each feature is made of."""
    number = {name: k for k, name in enumerate(dict.fromkeys(origins))}
    return (number[name] for name in origins)
