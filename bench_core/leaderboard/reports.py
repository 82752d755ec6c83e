"""Reports on a run: the choice of the plugin's format for a file, its arguments, and the paragraph
on methods for a paper."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.contracts import name_of
from bench_core.errors import BenchError, UsageError, one_line
from bench_core.execution.contract import fault_of
from bench_core.leaderboard.draws import drawn_by_seed, uses_of
from bench_core.option_fields import chosen
from bench_core.parameters import flat, parameters
from bench_core.parameters import plain as plain_value
from bench_core.planning.request import command, shell_line
from bench_core.plugins import OURS
from bench_core.protocols import Section
from bench_core.results.store import Store
from bench_core.results.store_files import store_path
from bench_core.splits import SPLITS
from bench_core.statistics import CONFIDENCE, JOINT_LEVEL
from bench_core.terminal.tables import check_output
from bench_core.terminal.wording import count, listed, percent

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.plugins import Registry
    from bench_core.protocols import Report
    from bench_core.results.budgets import Budget
    from bench_core.results.records import DatasetUse, RunInfo


def finished(
    store: Store | str | Path, run: str, data: Sequence[str] = (), learners: Sequence[str] = ()
) -> tuple[RunInfo, pd.DataFrame]:
    """Return a run and its finished rows, of these data sets and learners only. Raises UsageError
    if there are none."""
    kept = store if isinstance(store, Store) else Store(store)
    info = kept.info(run)
    frame = kept.frame(run, compact=True)
    if frame.empty:
        again = command(info.request) or "the same call of bench_core.run"
        remedy = "wait for the first" if info.state == "running" else again
        raise UsageError(
            f"run {info.run} in {kept.path} is {info.state}: 0 of {count(info.planned, 'trial')} "
            f"done; {remedy}{' continues it' * (info.state == 'interrupted')}"
        )
    if data:
        names = dict.fromkeys(map(str, frame["dataset"]))
        data = chosen(f"data set of run {info.number}", data, names)
        frame = frame[frame["dataset"].isin(data)]
        uses = tuple(use for use in info.datasets if use.name in data)
        info = replace(info, datasets=uses)
    if learners:
        names = dict.fromkeys(map(str, frame["learner"]))
        learners = chosen(f"learner of run {info.number}", learners, names)
        frame = frame[frame["learner"].isin(learners)]
    return info, frame


def report_for(registry: Registry, output: Path | None) -> Report:
    """Return the report that writes files like ``output``, or shows boards on the terminal.

    Raises UsageError for a file that cannot be written, and for an unknown suffix.
    """
    check_output(output)
    suffix = output.suffix.lower() if output is not None else ""
    reports = reversed([*registry.reports.values()])  # the first of a suffix wins
    by_suffix = {s: report for report in reports for s in report.suffixes}
    if suffix not in by_suffix or (output is not None and not suffix and str(output) != "-"):
        words = ", ".join(sorted(filter(None, by_suffix))) or "none: no report is installed"
        raise UsageError(
            f"{output or 'the terminal'}: no report has the suffix {suffix!r}; known: {words} "
            "('bench export' writes tables)"
        )
    return by_suffix[suffix]


@dataclass(frozen=True)
class ReportRequest:
    """A report on a run, written to a file or shown on the terminal."""

    store: str | Path
    run: str
    output: Path | None = None
    data: Sequence[str] = ()  # all data sets if empty
    learners: Sequence[str] = ()  # all learners if empty
    budgets: Sequence[Budget] = ()  # instead of the suite's
    columns: Sequence[str] = ()  # of tables for people and papers
    against: str = ""  # a learner: p-values of differences to it
    keep: float = 0  # share of the reference's quality to keep, 0: the run's
    noted: bool = False  # the reader has seen the notes on the data

    def command(self, info: RunInfo) -> str:
        """Return the command that writes the report again."""
        flags = {
            "data": ",".join(self.data),
            "learners": ",".join(self.learners),
            "budget": ",".join(map(str, self.budgets)),
            "columns": ",".join(self.columns),
            "against": self.against,
            "keep": f"{self.keep:.12g}" if self.keep else "",
            "output": self.output.name if self.output else "",
            "store": "" if Path(self.store) == store_path() else str(self.store),
        }
        words = [word for flag, value in flags.items() if value for word in (f"--{flag}", value)]
        words += [word for name in info.request.get("plugins", ()) for word in ("-p", name)]
        return shell_line(["bench", "report", info.run, *words])


def write_report(
    registry: Registry, request: ReportRequest, warn: Callable[[str], None] = lambda line: None
) -> None:
    """Write the report of a run; ``warn`` gets a line for each section of a plugin that fails."""
    if request.learners and request.against:
        request = replace(request, learners=[*dict.fromkeys([*request.learners, request.against])])
    report, store = report_for(registry, request.output), Store(request.store)
    with store.held():
        info, frame = finished(store, request.run, request.data, request.learners)
        info = info.keeping(request.keep)
        if request.budgets:  # as if the suite had named these alone
            budgets = tuple(map(str, request.budgets))
            uses = tuple(replace(use, budgets=budgets, caps=()) for use in info.datasets)
            info = replace(info, datasets=uses)
        arguments = {
            "sections": list(_sections(registry, info, frame, store, warn)),
            "store": store,
            "registry": registry,
            "made_by": replace(request, store=store.path).command(info),
            **{name: getattr(request, name) for name in ("noted", "columns", "against")},
        }
        for name in ("columns", "against"):
            capable = [one for one in registry.reports.values() if accepted(one.write, {name: ()})]
            if arguments[name] and report not in capable:
                known = {suffix for one in capable for suffix in one.suffixes if suffix}
                words = ", ".join(sorted(known))
                raise UsageError(
                    f"{request.output}: --{name} is for the terminal and files {words}"
                )
        report.write(info, frame, request.output, **accepted(report.write, arguments))


def accepted(of: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that a report or section accepts; it need not accept all."""
    takes = signature(of).parameters
    every = any(one.kind is Parameter.VAR_KEYWORD for one in takes.values())
    return {name: value for name, value in arguments.items() if every or name in takes}


def _sections(
    registry: Registry,
    info: RunInfo,
    frame: pd.DataFrame,
    store: Store,
    warn: Callable[[str], None],
) -> Iterator[Section]:
    """Return the sections of plugins. A section that fails gives a warning and is skipped."""
    for name, section_of in registry.sections.items():
        try:
            section = section_of(info, frame, **accepted(section_of, {"store": store}))
            if not isinstance(section, Section | None):
                raise TypeError(f"a section is a Section or None, not {section!r}")
        except BenchError:
            raise
        except Exception as error:
            fault = fault_of(error) or f"{type(error).__name__}: {error}"
            # a failing section must not hide the board
            warn(f"warning: no section {name!r}: {one_line(fault)}; --debug shows more")
        else:
            if section is not None:
                yield section


def paragraph(
    info: RunInfo,
    frame: pd.DataFrame,
    against: str = "",
    made_by: str = "",
    plain: Callable[[str], str] = one_line,
    code: Callable[[str], str] = one_line,
    registry: Registry | None = None,
) -> str:
    """Describe versions, data, splits, seeds, configurations and figures in full sentences, with
    p-values ``against`` a learner if given, and the commands that repeat the run and its report
    (``made_by``). ``plain`` and ``code`` format text and commands. A learner that ``registry`` does
    not have is described by its source and all its parameters."""
    facts = _facts(info, frame, against, registry)
    lines = [plain(text.format(**facts)) for need, text in METHODS.items() if facts[need]]
    commands = {"The run is repeated by": command(info.request), "its report by": made_by}
    repeated = [f"{plain(words)}: {code(line)}" for words, line in commands.items() if line]
    return " ".join([*lines, *([f"{', '.join(repeated)}."] if repeated else [])])


METHODS = {
    "version": "Experiments were run with Budget Bench {version}{machines}.",
    "data": "{data}",
    "trained": "Learners were trained with {trained}.",
    "rows": "Each seed draws its own rows of {rows}. Training and test rows that several seeds "
    "share make intervals over repeats too narrow (Nadeau and Bengio, 2003).",
    "training": "Each seed draws its own training and validation rows of {training}, not its test "
    "rows.",
    "same": "All seeds have the same rows of {same}.",
    "tried": "Configurations tried of each learner, with parameters that were varied or set: "
    "{tried}.",
    "drawn": "These are the learner's default and a quasi-random sequence over the ranges that it "
    "declares.",
    "metric": "The operating point and the configuration were chosen on validation data by "
    "{metric}; all figures are from test data, means over repeats.",
    "audits": "Cost is the mean price per row of what was bought and evaluated{accounting}; bills "
    "were audited by replaying predictions with unpaid values replaced (settings: {audits}).",
    "reference": "A saving is {reference}'s cost divided by the learner's, both at the cheapest "
    f"point that is sure to keep {{keep}} of {{reference}}'s best quality, by a one-sided "
    f"{CONFIDENCE} bound of the paired difference on validation, joint at {JOINT_LEVEL:.0%} for "
    "the points of a learner.",
    "apart": "Intervals ({apart}) and ties are from Student's distribution, paired over repeats "
    "with test rows of their own, each with its own choice of the point on validation.",
    "intervals": "Intervals ({intervals}) and ties are from a paired bootstrap over queries, "
    "groups or rows that repeats the choice of the point on validation in every resample{student}.",
    "against": "A p is for no difference to {against}, two-sided and by the same method, of best "
    "qualities unless a budget is named, adjusted by Holm's method over the learners of its "
    "column.",
}
"""The sentences of the paragraph, by the fact that each needs."""


def _facts(
    info: RunInfo, frame: pd.DataFrame, against: str, registry: Registry | None
) -> dict[str, Any]:
    """Return the facts that the sentences name."""
    from bench_core import __version__

    machines = set()
    for machine, versions in frame[["machine", "versions"]].drop_duplicates().astype(str).values:
        numbered = [v for v in versions.split(", ") if v[-1:].isdigit() and v[0].islower()]
        more = [v for v in numbered if v not in machine and not v.startswith("python ")]
        machines |= {", ".join([machine, *more])} if machine not in ("", "nan") else set()
    folds, seeds = (sorted(set(frame[key].astype(int))) for key in ("fold", "seed"))
    repeats = len(folds) * len(seeds)
    over = f" on {_numbers('fold', folds)}" if folds != [0] else ""  # 0 if there are no folds
    datasets = {use.name: uses_of(info, use.name) for use in info.datasets}
    drawn = {name: drawn_by_seed(uses) for name, uses in datasets.items()}
    settings = frame.loc[frame["status"] == "ok"].drop_duplicates(["dataset", "learner", "params"])
    audits = settings["audit"].astype(object).replace("", "declared").value_counts().sort_index()
    rows, training, same = (
        [name for name, kind in drawn.items() if kind == one] for one in ("rows", "training", "")
    )
    # the last half of a fingerprint is that of the test rows
    apart = repeats > 1 and all(
        len({use.fingerprint[-32:] for use in uses}) == len(uses) > 1 for uses in datasets.values()
    )
    references = {use.reference for use in info.datasets} & {*map(str, frame["learner"].unique())}
    return {
        "version": __version__,
        "machines": f" ({'; '.join(sorted(machines))})" if machines else "",
        "data": " ".join(_data(name, uses[0]) for name, uses in datasets.items()),
        "trained": f"{_numbers('seed', seeds)}{over} ({count(repeats, 'repeat')})",
        "rows": listed(rows),
        "training": listed(training),
        "same": listed(sorted(same)) if len(seeds) > 1 else "",
        "tried": "; ".join(_configurations(frame, registry)),
        "drawn": info.request.get("configs"),
        "metric": info.metrics[0],
        "accounting": "" if info.accounting == "path" else f" (accounting {info.accounting})",
        "audits": ", ".join(f"{n} {word}" for word, n in audits.items()) or "none",
        "reference": references.pop()
        if len(references) == 1
        else "the reference" * any(references),
        "apart": CONFIDENCE if apart else "",
        "intervals": "" if apart else CONFIDENCE,
        "student": ", and from Student's distribution over repeats" if repeats > 1 else "",
        "keep": percent(info.keep),
        "against": against,
    }


def _data(name: str, use: DatasetUse) -> str:
    rows, queries = (
        "/".join(str(of.get(split, 0)) for split in SPLITS) for of in (use.rows, use.queries)
    )
    ranked = f" ({queries} {use.units('test')[1]})" if queries != "0/0/0" else ""
    generated = ", a generated stand-in" if use.stand_in else ""
    unit = f" {use.unit}" if use.unit not in ("", "cost", None) else ""
    prices = "1 each" if use.counted else f"{use.price_of_everything:.6g}{unit} in all"
    return (
        f"Data set {name} ({use.task}{generated}) has {rows} rows{ranked} for training, "
        f"validation and test and {count(use.features, 'feature')}, which cost {prices}."
    )


def _numbers(noun: str, values: Sequence[int]) -> str:
    return f"{noun}{'' if len(values) == 1 else 's'} {', '.join(map(str, values))}"


def _configurations(frame: pd.DataFrame, registry: Registry | None) -> Iterator[str]:
    """Yield each learner's version, or source if it does not come with this package, with its
    number of configurations, and the parameters that were varied or set."""
    classes = registry.learners if registry else {}
    for name, rows in frame.groupby("learner", sort=True, observed=True):
        version, code = (str(rows[key].iloc[0]) for key in ("learner_version", "code"))
        ours = registry and name in classes and registry.origin["learner", str(name)].origin == OURS
        source = "" if ours else f"source {code or 'unknown'}"
        tried = [json.loads(text) for text in rows["params"].astype(str).unique()]
        values: dict[str, dict[str, Any]] = {}  # by parameter, distinct ones by text
        for params in tried:
            for parameter, value in flat(params).items():
                values.setdefault(parameter, {})[str(value)] = value
        changed = {
            parameter for params in tried for parameter in _changed(params, str(name), classes)
        }
        words = [
            parameter + _values([*of.values()])
            for parameter, of in values.items()
            if len(of) > 1 or parameter in changed
        ]
        about = f"{name} ({', '.join(filter(None, [version, source]))}) {len(tried)}"
        yield f"{about}: {', '.join(words)}" if words else about


def _changed(
    params: Mapping[str, Any], learner: str, classes: Mapping[str, type], of: str = ""
) -> Iterator[str]:
    """Yield the names of parameters that are not at the default of the learner's class."""
    usual = {p.name: plain_value(p.default, p) for p in parameters(classes.get(learner, object))}
    for name, value in params.items():
        if isinstance(value, Mapping):
            inner = dict(value)
            base = inner.pop("learner", "")
            if base not in (usual.get(name), name_of(usual.get(name))):
                yield of + name
            yield from _changed(inner, base, classes, f"{of}{name}.")
        elif name not in usual or usual[name] != value:
            yield of + name


def _values(values: Sequence[Any]) -> str:
    """Return ``=1`` for one value of a parameter, `` in {1, 2}`` for several."""
    numbers = len(values) > 1 and all(isinstance(value, int | float) for value in values)
    words = [
        f"{value:g}" if isinstance(value, float) else "none" if value is None else str(value)
        for value in (sorted(values) if numbers else values)
    ]
    shown = words if len(words) < 10 else [words[0], "...", words[-1]]
    return f"={words[0]}" if len(words) == 1 else f" in {{{', '.join(shown)}}}"
