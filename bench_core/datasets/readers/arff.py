"""ARFF files (attribute-relation file format), as publishers write them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from bench_core._io.text import read_text
from bench_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_ATTRIBUTE = re.compile(r"@attribute\s+(\S+)\s+(.+)", re.IGNORECASE)


def read_arff(path: Path) -> pd.DataFrame:
    """Read a dense ARFF file without quotes: numbers as float64, other cells as text, ? as missing.

    Raises InputError with the line for a row of another number of cells, or a cell that is no
    number in a numeric column.
    """
    import pandas as pd

    names: list[str] = []
    numeric: list[bool] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    data = False
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        if data:
            rows.append(text.split(","))
            lines.append(number)
            if len(rows[-1]) != len(names):
                what = f"{len(rows[-1])} cells for {len(names)} attributes"
                raise InputError(f"{path}, line {number}: {what}; get the file again")
        elif attribute := _ATTRIBUTE.fullmatch(text):
            names.append(attribute[1])
            numeric.append(attribute[2].lower() in ("numeric", "real", "integer"))
        data = data or text.lower() == "@data"
    if not rows:
        raise InputError(f"{path}: no rows below @DATA; get the file again")
    columns = {}
    for name, number, cells in zip(names, numeric, zip(*rows, strict=True), strict=True):
        texts = pd.Series([None if cell == "?" else cell for cell in cells], dtype=object)
        columns[name] = texts
        if number:
            columns[name] = pd.to_numeric(texts, errors="coerce").astype("float64")
            wrong = (columns[name].isna() & texts.notna()).to_numpy()
            if wrong.any():
                row = int(wrong.argmax())
                what = f"line {lines[row]}, column {name!r}: {texts[row]!r:.40} is no number"
                raise InputError(f"{path}, {what}; get the file again")
    return pd.DataFrame(columns)
