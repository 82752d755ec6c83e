"""Options of how a table is read and its rows are divided, for files and for data in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from bench_core.costs.price_table import PriceColumn
from bench_core.errors import UsageError, option
from bench_core.option_fields import COLUMN, TEXTS, Form, choice, declared, options_of, whole_number

TASKS = ("ranking", "regression", "binary", "multiclass")
MARK = Form("a point or a comma", "MARK", fits=lambda value: value in ("", ".", ","))
CODEC = Form("an encoding that Python knows", "NAME", fits=lambda name: is_codec(name or "utf-8"))
SHARES = Form(
    "a comma-separated list of fractions, as 0.2,0.2",
    "VALID,TEST",
    lambda text: tuple(map(float, text.split(","))),
    lambda value: isinstance(value, int | float) and 0 < value < 1,
    many=True,
)


def is_codec(name: object) -> bool:
    """True for the name of an encoding of text."""
    try:
        return isinstance(name, str) and "".encode(name) is not None
    except (LookupError, UnicodeError):
        return False


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options for reading a table or an SVMlight file. Values are checked on creation.

    To add an option, add a field here: it becomes an option of the command and of ``bench init``,
    an argument in Python and a key of ``datasets.toml``. Readers get the options as one value.
    """

    label: str = declared("", "Column of the label, for CSV and Parquet.", COLUMN)
    query: str = declared("", "Column of the query, for CSV and Parquet.", COLUMN)
    split: str = declared(
        "",
        "Column with the values train, valid and test.",
        COLUMN,
        python="With X also the values, one per row.",
    )
    task: str = declared(
        "", "ranking, regression, binary or multiclass; default: from the labels.", choice(*TASKS)
    )
    positive: str = declared(
        "",
        "Label of the positive class; default: the second label in sorted order.",
        metavar="LABEL",
    )
    drop: tuple[str, ...] = declared((), "Columns of the file to ignore.", TEXTS, metavar="COLUMNS")
    keep_column: tuple[str, ...] = declared(
        (),
        "Columns to keep although they only number the rows (1, 2, 3, ..., or ids).",
        TEXTS,
        metavar="COLUMNS",
    )
    decimal: str = declared(
        "",
        "Decimal mark in CSV files: a point (the default) or a comma, as in 1.234,50.",
        MARK,
    )
    encoding: str = declared(
        "",
        "Encoding of CSV files and price lists that are not UTF-8, such as cp1252.",
        CODEC,
    )
    dates: bool = declared(
        False, "Read date columns (2024-02-01 14:15, 1.2.2024) as days since 1970-01-01."
    )
    index_base: int = declared(
        1, "Number of the first feature in SVMlight files.", whole_number(0, 1), usual="1"
    )
    unwritten: str = declared(
        "",
        "Value of cells omitted in an SVMlight file or a sparse matrix: zero (the default) or "
        "missing, as in XGBoost.",
        choice("zero", "missing"),
    )
    groups: tuple[str, ...] = declared(
        (),
        "Columns that one measurement yields, and its cost: a,b,c:5 or 'hist_*:5'.",
        TEXTS,
        long="group",
        metavar="COLUMNS:COST",
    )
    unit: str = declared("", "Unit of the costs of a file, such as ms.", metavar="WORD")
    cv: int = declared(
        0,
        "K-fold cross-validation of one file; queries are not split.",
        whole_number(2, 100),
        metavar="K",
    )
    share: tuple[float, ...] = declared(
        (), "Fractions of one file for validation and test; default: 0.2,0.2.", SHARES
    )

    prices_by_row: tuple[PriceColumn, ...] = ()  # of the cost file: its columns are no features

    def __post_init__(self) -> None:
        for described in options_of(type(self)).values():
            described.check(getattr(self, described.name))

    @classmethod
    def of(cls, stored: Mapping[str, Any], **changes: Any) -> Self:
        """Create options from stored JSON, with changes; ignore fields of other versions."""
        known = {k: v for k, v in stored.items() if k in options_of(cls) and v is not None}
        known = {k: tuple(v) if isinstance(v, list) else v for k, v in known.items()}
        return cls(**known | changes)

    def table(self) -> dict[str, Any]:
        """Return the values of these options, without other fields of a subclass."""
        return {name: getattr(self, name) for name in options_of(TableOptions)}

    @property
    def shares(self) -> tuple[float, ...]:
        """Fractions of rows for training, validation and test, () for the usual ones."""
        held = self.share * 2 if len(self.share) == 1 else self.share
        if self.cv and not held:
            held = (1 / self.cv, 1 / self.cv)
        return (1 - sum(held), *held) if held else ()

    def check_division(self, apart: Sequence[str]) -> None:
        """Raise UsageError for a division of one table that is none, or contradicts the options
        ``apart``, which divide it in another way."""
        dividing = [name for name in ("cv", "share") if getattr(self, name)]
        if not dividing:
            return
        if apart:
            others = ", ".join(option(name) for name in apart)
            raise UsageError(f"{option(dividing[0])} divides one file: leave out {others}")
        if self.share and (len(self.share) > 2 or sum(self.shares[1:]) >= 1):
            parts = "the parts of validation and test as 0.2,0.2, in all below 1"
            raise UsageError(f"{option('share')}: give {parts}")
        if self.cv == 2 and not self.share:
            raise UsageError(f"{option('cv')}: give at least 3, or {option('share')}")
        if self.cv and self.shares[2] > 1 / self.cv + 1e-9:
            raise UsageError(
                f"{option('cv')}: the test share is above 1/{self.cv}: test splits overlap"
            )


USUAL = TableOptions()
READING = ("label", "query", "drop", "decimal", "encoding", "dates")
"""Options that also read other tables of the same source."""
