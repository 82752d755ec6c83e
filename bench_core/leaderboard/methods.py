"""The paragraph of a paper that says how a run was carried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE
from bench_core.planning.invocation import command
from bench_core.splits import SPLITS
from bench_core.statistics.comparison import LEVEL
from bench_core.terminal.wording import count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo


def paragraph(info: RunInfo, frame: pd.DataFrame) -> str:
    """Versions, data, splits, seeds, configurations and what figures are, in whole sentences."""
    return " ".join(one_line(line) for line in _sentences(info, frame) if line)


def _sentences(info: RunInfo, frame: pd.DataFrame) -> Iterator[str]:
    from bench_core import __version__

    machines = "; ".join(sorted(set(frame["machine"].dropna().astype(str)) - {""}))
    yield f"Experiments were run with Budget Bench {__version__}{machines and f' ({machines})'}."
    for name in dict.fromkeys(str(use["name"]) for use in info.datasets):
        yield _data(name, [use for use in info.datasets if use["name"] == name])
    folds, seeds = (sorted(set(frame[key].astype(int))) for key in ("fold", "seed"))
    yield (
        f"Learners were trained with {_numbers('seed', seeds)} on {_numbers('fold', folds)}, "
        f"{count(len(folds) * len(seeds), 'repeat')} in all."
    )
    yield f"Configurations tried of each learner: {_configurations(frame)}."
    if info.request.get("configs"):
        yield (
            "These are the learner's default and a quasi-random sequence over the ranges that it "
            "declares."
        )
    yield (
        f"The operating point and the configuration were chosen on validation data by "
        f"{info.metrics[0]}; all figures are from test data, means over repeats."
    )
    yield (
        f"Cost is the mean price per row of what was bought and evaluated (accounting "
        f"{info.accounting}); bills were audited by replaying predictions with unpaid values "
        f"replaced ({_audits(frame)})."
    )
    if info.reference:
        yield (
            f"A saving is what {info.reference} pays for {SHARE:.0%} of its best quality over what "
            f"the learner pays for it, between two operating points in proportion."
        )
    yield (
        f"Intervals ({LEVEL:.0%}) and ties are from a paired bootstrap over queries or rows that "
        "repeats the choice of the point on validation in every resample"
        + (
            ", and from Student's distribution over repeats."
            if len(folds) * len(seeds) > 1
            else "."
        )
    )
    yield f"The run is repeated by: {command(info.request)}."


def _data(name: str, uses: Sequence[Mapping[str, Any]]) -> str:
    use = uses[0]
    sizes = "/".join(str(use["rows"].get(split, 0)) for split in SPLITS)
    queries = "/".join(str((use.get("queries") or {}).get(split, 0)) for split in SPLITS)
    ranked = f" ({queries} queries)" if queries != "0/0/0" else ""
    generated = ", a generated stand-in" if use["stand_in"] else ""
    unit = f" {use['unit']}" if use.get("unit") not in ("", "cost", None) else ""
    return (
        f"Data set {name} ({use['task']}{generated}) has {sizes} rows{ranked} for training, "
        f"validation and test and {count(int(use['features']), 'feature')}, which cost "
        f"{use['price_of_everything']:.6g}{unit} in all."
    )


def _numbers(noun: str, values: Sequence[int]) -> str:
    return f"{noun}{'' if len(values) == 1 else 's'} {', '.join(map(str, values))}"


def _configurations(frame: pd.DataFrame) -> str:
    tried = frame.groupby("learner", sort=True, observed=True)["params"].nunique()
    versions = frame.drop_duplicates("learner").set_index("learner")["learner_version"].astype(str)
    return ", ".join(f"{name} ({versions[name]}) {n}" for name, n in tried.items())


def _audits(frame: pd.DataFrame) -> str:
    words = frame.loc[frame["status"] == "ok"].drop_duplicates(["dataset", "learner", "params"])
    counts = words["audit"].astype(object).replace("", "declared").value_counts().sort_index()
    return ", ".join(f"{n} {word}" for word, n in counts.items()) or "none"
