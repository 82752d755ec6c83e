"""``bench claims``: what papers say, and what was measured here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options

if TYPE_CHECKING:
    from bench_core.claims import Verdict
    from bench_core.cli.tables import Table
    from bench_core.registry import Registry
    from bench_core.store import RunInfo, Store

SOME_FAIL = 1


@click.command(
    "claims",
    short_help="Compare papers' claims with what was measured.",
    epilog="""\b
Examples:
  bench run --suite adapt && bench claims adapt
  bench claims                      every claim of every suite
  bench claims -o claims.txt""",
)
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="BENCH_DATA",
    show_envvar=True,
    metavar="FOLDER",
    help="Where to look for a publisher's files.",
)
@options.store_option
@options.output_option
@options.common_options
def command(
    suites: tuple[str, ...],
    data_dir: Path | None,
    store: Path,
    output: Path | None,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> int:
    """Show each claim of SUITE (default: of all), the published and the measured figure.

    Measured is the last run of the suite in the store. Results on stand-ins never count. The exit
    status is 1 where a claim does not hold.
    """
    from bench_core.claims import FAILS
    from bench_core.cli.tables import deliver

    registry = options.registry(plugins)
    names = suites or tuple(sorted(registry.suites()))
    verdicts = {name: suite_verdicts(registry, name, store, data_dir) for name in names}
    deliver(ledger(verdicts), output)
    failed = any(v.word == FAILS for found in verdicts.values() for v in found)
    return SOME_FAIL if failed else 0


def suite_verdicts(
    registry: Registry, name: str, store: Path, data_dir: Path | None
) -> list[Verdict]:
    """The claims of one suite on its last run."""
    from bench_core.claims import read_claims
    from bench_core.store import Store
    from bench_core.suites import find_suite

    suite = find_suite(name, registry)
    claims = read_claims(suite.claims)
    kept = Store(store) if claims and store.is_file() else None
    run = _last(kept, suite.name) if kept else None
    frame = kept.frame(run.run) if kept and run else None
    return [_verdict(registry, claim, run, frame, suite, data_dir) for claim in claims]


def _last(store: Store, suite: str) -> RunInfo | None:
    """Its last run that has finished rows."""
    return next((r for r in store.runs() if r.suite == suite and r.counts.get("ok")), None)


def _verdict(
    registry: Registry, claim: Any, run: RunInfo | None, frame: Any, suite: Any, data_dir: Any
) -> Verdict:
    from bench_core.claims import ABSENT, STAND_IN, UNMEASURED, UNRUN, Verdict, judge

    if claim.measure == "none":
        return Verdict(claim, UNMEASURED, how=claim.why)
    if run is not None:
        metric = registry.metric(claim.metric or _primary(run, claim.dataset, suite))
        found = judge(claim, frame, metric)
        if found.word not in (UNRUN, STAND_IN):
            return found
    elif _there(registry, claim.dataset, data_dir):
        return Verdict(claim, UNRUN, how=f"bench run --suite {suite.name}")
    if not _there(registry, claim.dataset, data_dir):
        return Verdict(claim, ABSENT, how=f"bench show {claim.dataset}")
    return found


def _primary(run: RunInfo, dataset: str, suite: Any) -> str:
    for use in run.datasets:
        if dataset in (use["name"], use.get("shown")):
            return str(use["metrics"][0])
    return str(suite.metrics[0])


def _there(registry: Registry, name: str, data_dir: Path | None) -> bool:
    from bench_core.formats.publisher import is_there
    from bench_core.formats.source import DataFolder

    if name not in registry.datasets:
        return False
    dataset = registry.dataset(name)()
    return not dataset.files or is_there(dataset, DataFolder(data_dir))


def ledger(verdicts: dict[str, list[Verdict]]) -> Table:
    """One row for each claim."""
    from bench_core.claims import FAILS, HOLDS
    from bench_core.cli.tables import Column, Table

    styles = {HOLDS: "green", FAILS: "red"}
    rows, row_styles = [], []
    for suite, found in verdicts.items():
        for v in found:
            measured = "-" if v.measured != v.measured else f"{v.measured:.4g}"
            shown = (
                suite,
                v.claim.says,
                v.claim.source,
                v.claim.published,
                measured,
                v.word,
                v.how,
            )
            rows.append(shown)
            row_styles.append(styles.get(v.word, "dim"))
    columns = (
        Column("suite", style="bold"),
        Column("claim", fold=True),
        Column("source", fold=True),
        Column("published", fold=True),
        Column("measured", right=True),
        Column("verdict", fold=True),
        Column("how", fold=True),
    )
    return Table("", columns, rows, row_styles)
