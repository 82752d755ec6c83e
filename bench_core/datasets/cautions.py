"""One-line notes, of kind ``CAUTION``, on data too small or too repetitive for reliable results."""

import re
from collections.abc import Iterable, Iterator

import numpy as np

from bench_core.data import Examples, Task
from bench_core.datasets.splitting import U64, hashed
from bench_core.splits import CUT, Splits

FEW_UNITS = 500
"""With fewer validation rows, the standard error of accuracy may exceed 2%."""

FEW_OF_A_CLASS = 10
COPIES = (0.9, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""Shares of copies in a split that a note names. They are coarse, so that folds give one note."""
_COPIED = re.compile(r"at least (\d+)% of (?=\w+ rows are copies)")
CHOSEN = ": points are chosen on rows that they are judged by"
"""End of the note on test rows that are validation rows."""
FEW_VALUES = 20
"""Rows whose features all have at most this many values may be equal by chance."""
BLOCK = 1 << 14


def cautions(splits: Splits) -> list[str]:
    """Return notes on the sizes of the validation split and of classes; the same for all folds if
    the data are the same."""
    valid, notes = splits.valid, []
    units, what = len(valid.units or valid), "rows"
    if valid.units is not None:
        what = "groups of rows" if valid.queries is None else "queries"
    if units < FEW_UNITS:
        notes.append(
            f"fewer than {FEW_UNITS} validation {what}: the choice of points, and savings, are "
            "uncertain"
        )
    if splits.classes and splits.task is not Task.CHOICE:
        y = np.concatenate([splits.train.y, valid.y, splits.test.y]).astype(np.int64)
        sizes = np.bincount(y, minlength=splits.classes)
        few = np.flatnonzero(sizes < FEW_OF_A_CLASS)
        names = splits.class_names or tuple(map(str, range(splits.classes)))
        shown = ", ".join(f"{names[k]} has {sizes[k]}" for k in few[:3])
        if len(few):
            more = f" and {len(few) - 3} more as few" if len(few) > 3 else ""
            notes.append(f"classes of fewer than {FEW_OF_A_CLASS} rows: {shown}{more}")
    return notes


def copied_rows(splits: Splits) -> list[str]:
    """Return notes on splits with copies of training rows, label included, and on test rows that
    are validation rows.

    If features have few values, copies are expected by chance as often as among the training rows.
    """
    import pandas as pd

    train, notes, chance = splits.train, [], 0.0
    drawn = any(note.kind == CUT for note in splits.all_notes)
    remedy = "; a query column keeps copies in one split" if drawn else ""
    train_hashes, of_valid, of_test = map(_hashes, (train, splits.valid, splits.test))
    if all(len(np.unique(train.X[:, j])) <= FEW_VALUES for j in range(train.X.shape[1])):
        chance = float(pd.Series(train_hashes).duplicated(keep=False).mean())
    pairs = [("validation", of_valid, "training", train_hashes, remedy)]
    pairs += [("test", of_test, "training", train_hashes, remedy)]
    if not drawn:  # else copies are in all three
        pairs += [("test", of_test, "validation", of_valid, CHOSEN)]
    for name, rows, origin, others, harm in pairs:
        share = float(pd.Series(rows).isin(others).mean())
        error = (chance * (1 - chance) / max(len(rows), 1)) ** 0.5  # standard
        if share > COPIES[-1] + chance + 4 * error:
            least = next(step for step in COPIES if step <= share)
            notes.append(
                f"at least {least:.0%} of {name} rows are copies of {origin} rows, label "
                f"included{harm}"
            )
    return notes


def joined(lines: Iterable[str]) -> Iterator[str]:
    """Yield each note once; notes on copies in several splits that differ only in the share become
    one with the range of shares."""
    shares: dict[tuple[str, str], set[int]] = {}
    for line in lines:
        before, share, after = (*_COPIED.split(line, maxsplit=1), "0", "")[:3]
        shares.setdefault((before, after), set()).add(int(share))
    for (before, after), own in shares.items():
        ends = " to ".join(f"{share}%" for share in sorted({min(own), max(own)}))
        yield f"{before}at least {ends} of {after}" if after else before


def _hashes(examples: Examples) -> U64:
    """Return 64 bits (n,) per row: a sum of its cells' bits, each times its own factor."""
    width = examples.X.shape[1] + (examples.y[:1].size or 1)
    factors = hashed(np.arange(width)) | np.uint64(1)
    hashes = np.empty(len(examples), dtype=np.uint64)
    for start in range(0, len(hashes), BLOCK):
        rows = slice(start, start + BLOCK)
        cells = np.column_stack([examples.X[rows], examples.y[rows]]).astype(np.float32) + 0.0
        hashes[rows] = cells.view(np.uint32).astype(np.uint64) @ factors  # + 0.0: one zero
    return hashes
