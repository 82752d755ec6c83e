"""The claims ledger as a plugin: the suite key ``[[claims]]`` and a section of reports."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from bench_core import UsageError, hookimpl
from bench_core.errors import blaming, one_line, require
from bench_core.protocols import Section

if TYPE_CHECKING:
    import pandas as pd

    from bench_claims.verdicts import Verdict
    from bench_core.protocols import SectionOf, SuiteKey
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

KEY = "claims"


@hookimpl
def bench_suite_keys() -> Mapping[str, SuiteKey]:
    """The suite key ``[[claims]]``."""
    return {KEY: check_claims}


@hookimpl
def bench_report_sections() -> Mapping[str, SectionOf]:
    """The verdicts on a run's claims."""
    return {KEY: section}


def check_claims(value: Any, datasets: Set[str], learners: Set[str]) -> None:
    """Raise UsageError for a claim that is invalid, or that the suite can never settle."""
    from bench_claims.claims import CONSTANT, CURVES, read_claims

    if not isinstance(value, list) or not all(isinstance(claim, Mapping) for claim in value):
        raise UsageError("expected [[claims]] tables")
    for claim in read_claims(value):
        own = [claim.dataset, *(x.dataset for x in claim.learners if x.dataset)]
        names = [name.partition("(")[0] for name in own]  # options follow the name
        with blaming(f"claim {claim.id}"):
            if claim.measure != "none":
                require("data set of this suite", names, datasets)
            if claim.measure in CURVES and CONSTANT not in learners:
                raise UsageError(f"measure {claim.measure} needs the baseline {CONSTANT}")
            require("learner of this suite", (one.learner for one in claim.learners), learners)


def verdicts(info: RunInfo, frame: pd.DataFrame, store: Store | None = None) -> tuple[Verdict, ...]:
    """Verdicts on the claims of the suite when it ran; none if this version cannot read one."""
    from bench_claims.claims import read_claims
    from bench_claims.verdicts import ABSENT, ELSEWHERE, settle, settle_elsewhere

    try:
        claims = read_claims(info.extra.get(KEY, ()))
    except UsageError:
        return ()
    results = []
    for claim in claims:
        verdict = settle(claim, info, frame, store)
        unsettled = verdict.word in (ABSENT, ELSEWHERE)
        others = settle_elsewhere(claim, info, frame, store) if unsettled else []
        results += others or [verdict]
    return tuple(results)


def section(info: RunInfo, frame: pd.DataFrame, store: Store | None = None) -> Section | None:
    """The section of the report on a run, or None where its suite makes no claims."""
    from bench_claims.verdicts import OTHER, tally

    if not info.extra.get(KEY):
        return None
    results = verdicts(info, frame, store)
    rows = []
    for v in results:
        says = f"{one_line(v.claim.says)}\n{one_line(v.claim.source)}"
        cells = map(one_line, (v.claim.published, v.shown, v.word, v.rests, v.how))
        name = f"{v.claim.id}-{v.data}" if v.word == OTHER else v.claim.id
        rows.append((f"claim-{name}", (says, *cells)))
    return Section(
        name=KEY,
        title="Claims of the papers",
        summary=tally(results) if results else "written for another version of bench, not read",
        hint=f"'bench claims {info.suite}' lists them",
        note="Figures are test-split values at points chosen on validation, with 95% intervals. "
        "Results on stand-ins never count.",
        columns=("claim", "published", "measured", "verdict", "rests on", "how it was measured"),
        rows=tuple(rows),
        marked=3,
    )
