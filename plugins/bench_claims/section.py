"""A run's claims ledger: what its suite's papers say, and what the run measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_claims.claims import Verdict, read_claims, settle, tally
from bench_core.errors import UsageError, one_line

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.store import RunInfo


def verdicts(info: RunInfo, frame: pd.DataFrame) -> tuple[Verdict, ...]:
    """The claims that the suite made when it was run; none where this version cannot read one."""
    try:
        claims = read_claims(info.claims)
    except UsageError:
        return ()
    return tuple(settle(claim, info, frame) for claim in claims)


def summary(info: RunInfo, found: Sequence[Verdict]) -> str:
    """``holds: 3, does not hold: 1``, or nothing where the suite makes no claims."""
    if info.claims and not found:
        return "written for another version of bench, not read"
    return one_line(tally(found)) if found else ""
