"""``bench claims``: papers' claims and the measured figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.terminal.tables import Table, deliver

if TYPE_CHECKING:
    from bench_claims.claims import Claim
    from bench_claims.verdicts import Verdict
    from bench_core.plugins import Registry
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

SOME_FAIL = 1
LONG = 3.0  # seconds after which a line says what takes so long


@click.command(
    "claims",
    short_help="Compare papers' claims with measured figures.",
    epilog="""\b
Examples:
  bench run --suite adapt && bench claims adapt
  bench claims                      measured claims, and which others can be run
  bench claims 3                    the claims of run 3's suite, by run 3 alone
  bench claims -o claims.csv        (as CSV; any other name: as on the screen)""",
)
@click.argument("suites", nargs=-1, metavar="[SUITE or RUN]...")
@options.data_dir_option
@options.store_option
@options.output_option
@options.few_options
def command(
    suites: tuple[str, ...],
    data_dir: str,
    store: Path,
    output: Path | None,
    plugins: Sequence[str],
) -> int:
    """Show each claim of SUITE, the published and the measured figure.

    Without SUITE: the measured claims of all suites, and how to measure others.

    The figure comes from the suite's finished run that settles the claim: a run without --set and
    --costs if there is one, then the largest profile and the latest run. In place of SUITE, the
    number of a run (or 'last') takes the figures from that run only, finished or not. Results on
    stand-ins never count. The exit status is 1 if a claim does not hold.
    """
    from bench_claims.verdicts import ABSENT, FAILS, UNMEASURED, UNRUN, tally

    registry = options.registry(plugins, data_dir)
    names = suites or tuple(sorted(registry.suite_files))
    verdicts: dict[str, list[Verdict]] = {}
    with options.noted_after(LONG, f"comparing claims with the runs in {store}"):
        for name in names:
            if name.isdigit() or name == "last":
                suite, group = run_verdicts(store, name)
            else:
                suite, group = name, suite_verdicts(registry, name, store, data_dir)
            verdicts.setdefault(suite, []).extend(group)
    every = [v for group in verdicts.values() for v in group]
    if output is not None:
        options.note(tally(every))
    idle = () if suites or output is not None else (ABSENT, UNRUN, UNMEASURED)
    shown = {name: [v for v in group if v.word not in idle] for name, group in verdicts.items()}
    title = tally(every)
    if any(shown.values()):
        deliver(replace(ledger(shown), title=title), output)
        title = ""
    if idle:
        deliver(replace(to_measure(verdicts), title=title), None)
    return SOME_FAIL if any(v.word == FAILS for v in every) else 0


def run_verdicts(store: Path, number: str) -> tuple[str, list[Verdict]]:
    """The suite of a run, and the verdicts of that run on the suite's claims."""
    from bench_claims.plugin import KEY, verdicts
    from bench_core.leaderboard.reports import finished
    from bench_core.results.store import Store

    kept = Store(store)
    info, frame = finished(kept, number)
    if not info.extra.get(KEY):
        raise UsageError(f"run {number} ({info.run}) has no claims: its suite names none")
    return info.suite, [*verdicts(info, frame, kept)]


def suite_verdicts(registry: Registry, name: str, store: Path, data_dir: str) -> list[Verdict]:
    """The claims of one suite on its finished runs in the store, by preference of the runs.

    Runs without the user's settings and prices come first, then the largest profile, the suite's
    repeats, and the most recent run.
    """
    from bench_claims.claims import read_claims
    from bench_claims.plugin import KEY
    from bench_core.planning.request import PROFILES
    from bench_core.planning.suites import find_suite
    from bench_core.results.store import Store

    def place(run: RunInfo) -> tuple[bool, int, bool]:
        asked = {option for option, value in run.request.items() if value}
        size = PROFILES.index(run.profile) if run.profile in PROFILES else -1
        own, repeats = asked & {"settings", "costs"}, asked & {"seeds", "folds"}
        return bool(own), -size, bool(repeats)

    suite = find_suite(name, registry)
    claims, runs = read_claims(suite.extra.get(KEY, ())), []
    if claims and store.is_file():
        kept = Store(store)
        done = [run for run in kept.runs() if run.counts.get("ok") and run.state == "finished"]
        runs = [(run, cache(partial(kept.frame, run.run)), kept) for run in sorted(done, key=place)]
    return [v for claim in claims for v in _verdicts(registry, claim, runs, suite.name, data_dir)]


def _verdicts(
    registry: Registry,
    claim: Claim,
    runs: Sequence[tuple[RunInfo, Callable[[], Any], Store]],
    suite: str,
    data_dir: str,
) -> list[Verdict]:
    """The verdict of the suite's first run that settles the claim. Without one, the results on each
    other data set, of the first run that has it; otherwise the reason for no verdict."""
    from bench_claims.verdicts import (
        ABSENT,
        DECIDED,
        SMALL,
        UNMEASURED,
        UNRUN,
        Verdict,
        settle,
        settle_elsewhere,
    )
    from bench_core.datasets.data_folder import DataFolder
    from bench_core.datasets.publishers import is_there

    if claim.measure == "none":
        return [Verdict(claim, UNMEASURED, how=claim.why)]
    unsettled: dict[str, Verdict] = {}  # the first by word
    others: dict[str, Verdict] = {}  # by data set
    name = claim.dataset.partition("(")[0]
    for info, frame, kept in runs:
        if info.suite == suite and any(
            use.name == claim.dataset or use.stand_in_for == name for use in info.datasets
        ):
            verdict = settle(claim, info, frame(), kept)
            if verdict.word in DECIDED:
                return [verdict]
            unsettled.setdefault(verdict.word, verdict)
        for verdict in settle_elsewhere(claim, info, frame(), kept) if claim.anywhere else ():
            others.setdefault(verdict.data, verdict)
    there = name in registry.datasets and (
        not registry.about_dataset(name).files
        or is_there(registry.dataset(name)(), DataFolder(data_dir))
    )
    if others and SMALL not in unsettled:
        return [*others.values()]
    if SMALL in unsettled or not there:
        return [unsettled.get(SMALL) or Verdict(claim, ABSENT, how=f"bench show {name}")]
    return [unsettled.get(UNRUN) or Verdict(claim, UNRUN, how=f"bench run --suite {suite}")]


def to_measure(verdicts: dict[str, list[Verdict]]) -> Table:
    """One row for each suite with claims that were not measured: how many can be run, and the
    absent data sets of the others."""
    from bench_claims.verdicts import ABSENT, UNRUN

    rows = []
    for suite, found in verdicts.items():
        words = [v.word for v in found]
        absent = [v.claim.dataset.partition("(")[0] for v in found if v.word == ABSENT]
        if UNRUN in words or absent:
            number = f"{words.count(UNRUN)} of {len(words)}"
            rows.append((suite, number, ", ".join(dict.fromkeys(absent))))
    footer = (
        "To measure the runnable claims: bench run --suite SUITE. 'bench show NAME' says where a "
        "data set's files come from, 'bench claims SUITE' lists a suite's claims.",
    )
    titles = ("suite", "runnable", "data absent")
    return Table(titles, rows, "suite", ("runnable",), ("data absent",), footer=footer)


def ledger(verdicts: dict[str, list[Verdict]]) -> Table:
    """One row for each claim, its paper first; measured claims come first."""
    from bench_claims.verdicts import FAILS, HOLDS, WORDS

    styles = {HOLDS: "green", FAILS: "red"}
    entries = [(suite, v, v.claim) for suite, some in verdicts.items() for v in some]
    entries.sort(key=lambda entry: WORDS.index(entry[1].word))  # stable: in the suites' order
    rows = [
        (c.source, c.says, c.published, v.shown, v.word, v.rests, v.how, suite)
        for suite, v, c in entries
    ]
    row_styles = [styles.get(v.word, "dim") for _, v, _ in entries]
    titles = ("source", "claim", "published", "measured", "verdict", "rests on", "how", "suite")
    fold = ("source", "claim", "published", "verdict", "rests on", "how")
    return Table(titles, rows, "source", ("measured",), fold, row_styles=row_styles)
