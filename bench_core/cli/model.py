"""``bench model``: take a model of a run home, look at it, and check what it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import InputError, UsageError, unknown
from bench_core.terminal.tables import Table, console, show
from bench_core.terminal.wording import cost, count, quality, settings, stand_in_notice, times

if TYPE_CHECKING:
    from bench_core.arrays import FloatArray
    from bench_core.data import Examples
    from bench_core.datasets.user_data import Part
    from bench_core.results.budgets import Budget
    from bench_core.serving import Folder, Predictor

DIFFERS = 1
_CHECKED = ("metric", "test", "unit")
_SHOWN = (*_CHECKED, "learner", "point", "dataset", "task", "everything", "reference", "stand_in")
"""Parts of a model's ``about`` that are shown and checked."""
_SAME = 1e-9


@click.group(
    "model",
    short_help="Export a model that asks for features, show it, check it.",
    epilog="""\b
Examples:
  bench model export --budget 60 -o model/               of the best learner within the budget
  bench model export 3 --learner cegb --budget 60 --budget-kind p95 -o model/
  bench model export --budget 60 --format c -o model-c/
  bench model show model/
  bench model check model/ --data today.svm

\b
In Python: bench_core.serving.load("model/").predict(acquire); see docs/serving.md.""",
)
def command() -> None:
    """A fitted model at one operating point as a folder of arrays and JSON."""


_folder = click.argument("folder", type=click.Path(path_type=Path, file_okay=False))


@command.command("export", short_help="Write the model of a run at a chosen point.")
@options.run_argument
@click.option("--learner", default="", metavar="NAME", help="Of the run.  [default: the best]")
@options.budget_options(several=False)
@click.option("--quality", type=float, metavar="Q", help="The cheapest that reaches it instead.")
@click.option("-d", "--data", "dataset", default="", metavar="NAME", help="Data set of the run.")
@click.option("--seed", type=int, metavar="N", help="Of which repeat.  [default: the first]")
@click.option("--fold", type=int, metavar="N", help="Of which repeat.  [default: the first]")
@click.option("-m", "--metric", default="", metavar="NAME", help="Judge by this metric of the run.")
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Where to; a model that is there is replaced.",
)
@click.option(
    *("--format", "written"),
    type=click.Choice(["folder", "c", "lightgbm"]),
    default="folder",
    show_default=True,
    help="For Python; bench_model.h and .c, C99; LightGBM's model.txt, without prices.",
)
@options.store_option
@options.plugins_option
@options.debug_option
def export_command(
    run: str,
    budget: Budget | None,
    dataset: str,
    metric: str,
    output: Path,
    written: str,
    store: Path,
    plugins: tuple[str, ...],
    **given: Any,
) -> None:
    """Export the best model of RUN, chosen on validation, into a folder."""
    from bench_core.leaderboard.assembly import primary_metric
    from bench_core.leaderboard.reports import finished
    from bench_core.results.store import Store
    from bench_core.serving import Predictor
    from bench_core.serving.export import Wish, export

    if budget is not None and given["quality"] is not None:
        raise UsageError("--budget and --quality: give one of them")
    _check_place(output)
    info, frame = finished(store, run)
    options.registry(plugins)  # their classes can be found
    name = _dataset(dataset, list(dict.fromkeys(map(str, frame["dataset"]))))
    wish = Wish(dataset=name, budget=budget, **given)
    folder = export(Store(store), info, frame, primary_metric(info, name, metric), wish)
    if budget is not None and budget.kind == "cap":
        folder = _under_cap(folder)
    _write(output, folder, written)
    console().out("\n".join([f"wrote {output}", *summary(Predictor(folder))]), highlight=False)


def _under_cap(folder: Folder) -> Folder:
    """With the figures of the model as it serves, which keeps the cap while it asks."""
    from bench_core.datasets.cache import open_prepared
    from bench_core.serving import Predictor

    splits, model = open_prepared(folder.about["provenance"]["data"]), Predictor(folder)
    valid, test = (replayed(model, part) for part in (splits.valid, splits.test))
    own = {"valid": {"quality": valid["quality"], "cost": valid["total_cost"]}, "test": test}
    return replace(folder, about={**folder.about, **own})


def _write(output: Path, folder: Folder, written: str) -> None:
    if written == "c":
        from bench_core.serving.c_source import write_c as write
    elif written == "lightgbm":
        from bench_core.serving.lightgbm_text import write_lightgbm as write
    else:
        from bench_core.serving.folder import write_folder as write
    write(output, folder)


def _check_place(output: Path) -> None:
    """Refuse a folder that holds something else."""
    ours = ("model.json", "bench_model.c", "model.txt")
    if output.is_dir() and any(output.iterdir()) and not any((output / n).is_file() for n in ours):
        raise UsageError(f"{output}: holds something else; name an empty or a new folder")


def _dataset(wanted: str, known: list[str]) -> str:
    if wanted and wanted not in known:
        raise UsageError(unknown("data set of this run", wanted, known))
    if not wanted and len(known) > 1:
        raise UsageError(f"the run has {', '.join(known)}: choose one with --data")
    return wanted or known[0]


@command.command("show", short_help="What a model needs, costs and saves.")
@_folder
@options.debug_option
def show_command(folder: Path) -> None:
    """Show what the model in FOLDER may ask for, what it costs and what it saves."""
    model, screen = _loaded(folder, *_SHOWN), console()
    table = sensors_table(model)
    show(table, screen)
    screen.out("\n".join(summary(model)), highlight=False)


def _loaded(folder: Path, *wanted: str) -> Predictor:
    """The model in a folder. Raises InputError where its ``about``, in which a caller of
    ``write_folder`` may write anything, lacks what is wanted."""
    from bench_core.serving import load

    model = load(folder)
    for name in wanted:
        if name not in model.about:
            raise InputError(
                f"{folder}: its 'about' in model.json has no {name}, as 'bench model export' "
                "writes it: export the model, or serve it by bench_core.serving"
            )
    return model


def summary(model: Predictor) -> list[str]:
    """A model and its figures, in a few lines."""
    about, metric = model.about, model.about["metric"]
    test, unit = about["test"], about["unit"]
    point = settings(about["point"]) or "its only point"
    lines = [
        f"{about['learner']} at {point}, trained on {about['dataset']} ({about['task']})",
        f"{metric} {quality(test['quality'])} on test at {cost(test['total_cost'])} {unit} per row "
        f"(95% of rows: {cost(test['cost_p95'])}, most: {cost(test['cost_max'])}; "
        f"all features: {cost(about['everything'])})",
        *_beside_reference(about),
        f"asks for at most {count(len(model.features), 'feature')} of {len(model.names)}",
    ]
    if about["stand_in"]:
        lines.append(stand_in_notice(about["dataset"], ""))
    return lines


def _beside_reference(about: Mapping[str, Any]) -> list[str]:
    best, own = about["reference"], about["test"]["total_cost"]
    if best is None or best["learner"] == about["learner"] or not own > 0:
        return []
    name = f"{best['learner']} at its best"
    return [
        f"{name} costs {times(best['cost'] / own)} that "
        f"({about['metric']} {quality(best['quality'])} at {cost(best['cost'])})"
    ]


def sensors_table(model: Predictor) -> Table:
    """The sensors that a model may buy: their features that it reads, and their prices."""
    from bench_core.costs.model import SensorPrices

    prices = model.costs if isinstance(model.costs, SensorPrices) else None
    prices = getattr(model.costs, "prices", prices)
    used: dict[int, list[str]] = {}
    for j in model.program.features.tolist():
        for s in model.costs.sensors_of(j).tolist():
            used.setdefault(s, []).append(model.names[j])
    rows = []
    for s, names in sorted(used.items()):
        price = cost(float(prices.sensor[s])) if isinstance(prices, SensorPrices) else ""
        rows.append([str(s), ", ".join(names), price])
    titles = ("sensor", "features that it reads", f"price ({model.costs.unit})")
    return Table(
        titles, rows, titles[0], titles[2:], (titles[1],), title="what the model may ask for"
    )


@command.command("check", short_help="Replay a model over data.")
@_folder
@click.option(
    *("-d", "--data"),
    type=options.FILE,
    metavar="FILE",
    help="Rows to replay.  [default: the test rows that it was exported with]",
)
@options.request_option("label")
@options.request_option("query")
@options.request_option("index_base")
@options.debug_option
def check_command(folder: Path, data: Path | None, label: str, query: str, index_base: int) -> int:
    """Replay the model in FOLDER row by row: quality and cost next to those of the export.

    Exit status 1 if the figures of the rows that it was exported with are not the same.
    """
    own = ("provenance",) if data is None else ("task", "classes")
    model = _loaded(folder, *_CHECKED, *own)
    if data is None:
        rows = _test_rows(model.about["provenance"])
    else:
        rows = _rows_of(data, model, {"label": label, "query": query}, index_base)
    again = replayed(model, rows)
    metric = model.about["metric"]
    kept = ("quality", "total_cost", "cost_max")
    exported, found = ([figures[name] for name in kept] for figures in (model.about["test"], again))
    titles = ("figure", "exported", "replayed")
    names = (metric, f"mean cost ({model.about['unit']})", "largest cost")
    worded = (quality, cost, cost)
    lines = [
        [name, word(a), word(b)]
        for name, word, a, b in zip(names, worded, exported, found, strict=True)
    ]
    title = f"{folder}: {count(len(rows), 'row')} of {data or 'the test split'}"
    show(Table(titles, lines, "figure", titles[1:], title=title), console())
    if data is not None:
        return 0
    same = all(abs(a - b) <= _SAME * max(1.0, abs(a)) for a, b in zip(exported, found, strict=True))
    console().out("the same as when exported" if same else "NOT the same as when exported")
    return 0 if same else DIFFERS


def replayed(model: Predictor, rows: Examples) -> dict[str, float]:
    """Quality on rows, and what they cost: on average, 95% of them, and at most."""
    from bench_core.costs.bill import summarise_cost
    from bench_core.metrics import parse_metric

    answers = model.predict_rows(rows.X, rows.queries)
    metric = parse_metric(model.about["metric"], options.registry().metrics)
    judged = metric.values(answers.scores, rows.y, rows.groups, rows.multiplicity)
    cost = summarise_cost(answers.spent, rows.multiplicity)
    figures = {"total_cost": cost.average, "cost_p95": cost.p95, "cost_max": cost.maximum}
    return {"quality": judged.mean, **figures}


def _test_rows(provenance: Mapping[str, Any]) -> Examples:
    from bench_core.datasets.cache import open_prepared

    try:
        return open_prepared(provenance["data"]).test
    except (InputError, OSError) as error:
        raise InputError(
            "the rows that it was exported with are not on this machine; give others by --data FILE"
        ) from error


def _rows_of(path: Path, model: Predictor, columns: dict[str, str], index_base: int) -> Examples:
    """A file's rows with the columns of the model."""
    import numpy as np

    from bench_core.data import Examples
    from bench_core.datasets.user_files import read_part

    part = read_part(path, {**columns, "split": ""}, index_base, "")
    y = _numbers(part, model.about)
    X = np.zeros((len(part), len(model.names)), dtype=np.float32)
    place = {name: j for j, name in enumerate(model.names)}
    for j, name in enumerate(part.names):
        if (own := j if part.numbered else place.get(name)) is not None and own < X.shape[1]:
            X[:, own] = part.X[:, j]
    if not part.numbered and (lost := [n for n in model.features if n not in part.names]):
        raise InputError(f"{path}: no column {lost[0]!r}, which the model may ask for")
    queries = part.queries if model.about["task"] == "ranking" else None
    return Examples(X, y, queries)


def _numbers(part: Part, about: Mapping[str, Any]) -> FloatArray:
    """Labels as the numbers that the model was trained on: classes in the order of their labels."""
    import numpy as np

    values, places = np.unique(part.labels, return_inverse=True)
    classes = int(about["classes"])
    if classes and len(values) == classes:
        return places.astype(np.float64)
    text = part.labels.dtype.kind != "f"
    if text and not classes:
        raise InputError(f"{part.place(0)}: label {str(part.labels[0])!r} is text; give numbers")
    if text or (classes and not np.isin(values, np.arange(classes)).all()):
        raise InputError(
            f"{part.place(0)}: {len(values)} of {classes} classes, which are numbered in the order "
            "of all their labels; give rows of each class, or numbers from 0"
        )
    return part.labels.astype(np.float64)
