"""``bench model``: export a model of a run, show it, check it and watch its spending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.outputs import check_replaced, guarded
from bench_core.cli.store import csv_of
from bench_core.datasets.table_options import READING, USUAL, TableOptions
from bench_core.errors import InputError, UsageError, one_line, require
from bench_core.terminal.tables import Table, console, show, write_bytes
from bench_core.terminal.wording import cost, count, quality, run_line, stand_in_notice

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.data import Examples
    from bench_core.leaderboard.board import ClassRows
    from bench_core.results.budgets import Limit
    from bench_core.serving import Predictor
    from bench_core.serving.row_state import Answers
    from bench_core.splits import Splits

DIFFERS = 1
_SAME = 1e-9  # relative
_SHOWN = 20  # figures of a log


@click.group("model")
def model_command() -> None:
    """Export a model for serving, show it, check it or watch its spending.

    An exported model is a folder of arrays and JSON: a fitted model at one operating point. It asks
    for the features that it needs.

    Examples:
      bench model export -o model/                 the cheapest with 99% of the reference's quality
      bench model export --keep 95% -o model/
      bench model export --budget 60 -o model/     the best learner within the budget
      bench model export --budget inf -o model/    the best at any cost
      bench model export 3 --learner cegb --budget 60 --budget-kind cap -o model/
      bench model export --budget 60 --format c -o model-c/
      bench model show model/
      bench model check model/ --data today.svm
      bench model watch model/ log.csv

    In Python: bench_core.serving.load("model/").predict(acquire); see docs/guide/serving.md.
    """


_folder = click.argument("folder", type=click.Path(path_type=Path, file_okay=False))


@model_command.command("export", short_help="Write a run's model at a chosen operating point.")
@options.run_argument
@click.option(
    "--learner", default="", metavar="NAME", help="Learner of the run.  [default: the best]"
)
@options.limit_options(several=False)
@click.option("-d", "--data", "dataset", default="", metavar="NAME", help="Data set of the run.")
@click.option("--seed", type=int, metavar="N", help="Seed of the repeat.  [default: the first]")
@click.option("--fold", type=int, metavar="N", help="Fold of the repeat.  [default: the first]")
@click.option("-m", "--metric", default="", metavar="NAME", help="Metric of the run to choose by.")
@click.option(
    *("-o", "--output"),
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Folder to write; an older model there is replaced.",
)
@click.option(
    *("--format", "written"),
    default="folder",
    show_default=True,
    metavar="NAME",
    help="Format: folder, for Python; c (C99), mlflow, or a plugin's ('bench list exports').",
)
@options.store_option
@options.plugins_option
@options.debug_option
def export_command(
    run: str,
    dataset: str,
    metric: str,
    output: Path,
    written: str,
    store: Path,
    plugins: tuple[str, ...],
    limit: Limit | None,
    learner: str,
    seed: int | None,
    fold: int | None,
) -> None:
    """Export a model of RUN, chosen on validation, into a folder.

    By default it is the model of the board's conclusion, which is sure to keep 99% of the
    reference's quality; if no saving is measured, the best at any cost.
    """
    from bench_core.leaderboard.export import export
    from bench_core.leaderboard.reports import finished
    from bench_core.leaderboard.selection import Choice
    from bench_core.results.store import Store
    from bench_core.serving import Predictor
    from bench_core.serving.folder import check_folder, write_as

    check_folder(output)
    check_replaced(output)
    registry = options.registry(plugins)  # makes their classes importable
    write = registry.export(written)
    info, frame = finished(store, run)
    names = list(dict.fromkeys(map(str, frame["dataset"])))
    require("data set of this run", [dataset] if dataset else (), names)
    if not dataset and len(names) > 1:
        raise UsageError(f"the run has {', '.join(names)}: choose one with --data")
    dataset = dataset or names[0]
    choice = Choice(info, Store(store), frame, dataset, metric)
    require("learner of this run", [learner] if learner else (), {*choice.frame["learner"]})
    answers, answer = choice.answer(limit, learner)
    entry = getattr(registry.datasets.get(dataset), "data", None)  # of datasets.toml
    made: Any = {"seed": seed, "fold": fold, "best": choice.best, "table": entry}
    with options.noted_after(3.0, "still exporting: the first export on a machine compiles code"):
        folder = export(Store(store), info, answer, registry.metrics, **made)
    where = f"{output}{replaced(output)}, {answer.words}"
    remark = write_as(output, folder, written, write)
    lines = [answers.reason] if answers.reason else []
    lines += [
        f"wrote {where}",
        run_line(info),
        *summary(Predictor(folder)),
    ]
    lines += [remark] if remark else []
    console().out("\n".join(lines), highlight=False)


def replaced(folder: Path) -> str:
    """Return whose model a folder has that is to be replaced, in words."""
    from bench_core.serving import load

    try:
        about = load(folder).about
        return f" in place of {about['learner']}'s model at {cost(about['test']['cost'])} per row"
    except (InputError, KeyError, TypeError):
        return ""


@model_command.command("show", short_help="Show a model's features, cost and saving.")
@_folder
@options.debug_option
def show_command(folder: Path) -> None:
    """Show the features, cost and saving of the model in FOLDER."""
    model, screen = _loaded(folder), console()
    show(sensors_table(model), screen)
    screen.out("\n".join(summary(model)), highlight=False)


def _loaded(folder: Path) -> Predictor:
    """Load the model in a folder. Raises InputError if ``bench model export`` did not write its
    ``about``: a caller of ``write_folder`` may write anything."""
    from bench_core.serving import load

    model = load(folder)
    if "metric" not in model.about:
        raise InputError(
            f"{folder}: its 'about' in model.json has no metric, as 'bench model export' "
            "writes it: export the model, or serve it by bench_core.serving"
        )
    return model


def summary(model: Predictor) -> list[str]:
    """Return a few lines on a model and its figures."""
    from bench_core.leaderboard.board import ClassRows, Setting

    about, metric, best = model.about, model.about["metric"], model.about["reference"]
    valid, unit = about.get("valid"), _unit(model)
    where, test = "test", about["test"]
    reached = f"{quality(valid['quality'])} on validation, " if valid else ""
    if test is None:  # of an estimator
        where, test, reached = "validation", about["valid"], ""
    paid = test["cost"]
    point = about["point"]
    at = Setting(point, {}, frozenset(), 1, 1).short if point else "its only point"
    lines = [
        f"{about['learner']} at {at}, on {about['dataset']} ({about['task']})",
        f"{metric} {reached}{quality(test['quality'])} on {where} at {cost(paid)}{unit} per row "
        f"(most: {cost(test['cost_max'])}; all features: {cost(about['everything'])})",
    ]
    if best is not None and best["learner"] != about["learner"]:
        lines.append(
            f"{best['learner']} at its best: {metric} {quality(best['quality'])} at "
            f"{cost(best['cost'])}"
        )
    lines += rare_class_of(model, [ClassRows(*of_class) for of_class in about.get("found", ())])
    columns = count(len(model.features), "column")
    lines.append(f"asks for at most {columns} of {len(model.names)}; {model.meaning}")
    if model.error_costs is not None:
        lines.append("it answers with the class of least expected cost (Predictor.labels)")
    if least := model.least_cap:
        lines.append(f"every answer costs at least {cost(least)}{unit}{_with_less(model)}")
    return [*lines, stand_in_notice(about["dataset"], "")] if about["stand_in"] else lines


def rare_class_of(
    model: Predictor, classes: Sequence[ClassRows], noun: str = "test row"
) -> list[str]:
    """Return the sentence on a rare class of which a model answers few rows right, or another
    number than the reference, if there is one."""
    from bench_core.leaderboard.rare_class import rare_class

    best = model.about["reference"] or {"learner": ""}
    line = rare_class(classes, model.about["learner"], best["learner"], noun=noun)
    return [line] if line else []


def _unit(model: Predictor) -> str:
    """Return the unit of costs to follow a number, "" if prices name none; a number of features if
    each costs 1."""
    from bench_core.costs.model import counts_features, unit_named

    if counts_features(model.costs, len(model.names)):
        return " features"
    unit = unit_named(model.about["unit"])
    return unit and f" {unit}"


def _with_less(model: Predictor) -> str:
    """Return the answer of a row whose cap allows no purchase, in words; "" if there is none."""
    from bench_core.data import Task

    nothing = getattr(model.program, "nothing", None)
    if nothing is None or model.about["task"] == Task.CHOICE:
        return ""
    if not model.classes:
        return "; with less you get the best constant"
    (label,) = model.labels(nothing if len(nothing) == 1 else nothing[None])
    common = ", the most frequent class" if model.error_costs is None else ""
    return f"; with less you get '{one_line(str(label))}'{common}"


def sensors_table(model: Predictor) -> Table:
    """Return the sensors that a model may buy, with the columns that it reads and prices."""
    from bench_core.costs.by_row import ByRow
    from bench_core.costs.model import SensorPrices, unit_named

    costs = model.costs.base if isinstance(model.costs, ByRow) else model.costs  # at the means
    prices = costs.sensor if isinstance(costs, SensorPrices) else None
    rows = [
        [str(s), ", ".join(names), "" if prices is None else cost(float(prices[s]))]
        for s, names in sorted(model.sensors.items())
    ]
    unit = unit_named(model.costs.unit)
    titles = ("sensor", "columns read", f"price ({unit})" if unit else "price")
    title = "features that the model may ask for"
    return Table(titles, rows, titles[0], titles[2:], (titles[1],), title=title)


@model_command.command("check", short_help="Replay a model over data.")
@_folder
@click.option(
    *("-d", "--data"),
    type=options.FILE,
    metavar="FILE",
    help="Rows to replay.  [default: the test rows of its run]",
)
@options.together(*map(options.request_option, (*READING, "index_base", "unwritten")))
@click.option(
    *("-o", "--output"),
    type=options.FILE,
    metavar="FILE",
    help="Write a line for each row, as CSV: its label, answer, scores and cost.",
)
@options.debug_option
@guarded("output")
def check_command(folder: Path, data: Path | None, output: Path | None, **arguments: Any) -> int:
    """Replay the model in FOLDER row by row and compare quality and cost with the export's.

    Of classes the right answers are counted.

    A table is read as the run's, unless options differ. Without --data, the exit status is 1 if a
    figure differs from the export's. Under a cap the cost may be lower.
    """
    import numpy as np

    from bench_core.data import Task
    from bench_core.leaderboard.export import answers_of, figures
    from bench_core.results.budgets import CAP

    model = _loaded(folder)
    rows = _splits_of(model).test if data is None else _rows_of(data, model, arguments)
    exported = model.about["test"] or model.about["valid"]
    answers = answers_of(model, rows)
    replay = figures(model, rows, answers, options.registry().metrics)
    shown = {
        "quality": (model.about["metric"], quality),
        "cost": (f"mean cost,{_unit(model)}".rstrip(","), cost),
        "cost_max": ("largest cost", cost),
    }
    lines = [[name, word(exported[f]), word(replay[f])] for f, (name, word) in shown.items()]
    titles = ("figure", "exported", "replayed")
    title = f"{folder}: {count(len(rows), 'row')} of {data or 'the test split'}"
    show(Table(titles, lines, "figure", titles[1:], title=title), console())
    if model.classes and model.about["task"] != Task.CHOICE:
        _show_classes(model, rows, answers, of_run=data is None)
    if output is not None:
        write_bytes(output, csv_of(_row_by_row(model, rows, answers)))
        options.note(f"wrote {output}")
    if data is not None:
        if (known := _rows_of_the_run(rows, model)) * 2 >= len(rows):
            options.note(
                f"note: {known} of {len(rows)} rows equal training or validation rows of the run "
                "in the columns that the model may ask for: new rows may reach less"
            )
        return 0
    capped = (model.about["budget"] or {}).get("kind") == CAP  # costs are the run's upper bounds
    same = all(
        np.isclose(replay[f], exported[f], rtol=_SAME, atol=_SAME, equal_nan=True)  # may be NaN
        or (capped and f != "quality" and replay[f] < exported[f])
        for f in shown
    )
    console().out("the same as when exported" if same else "NOT the same as when exported")
    return 0 if same else DIFFERS


def _show_classes(model: Predictor, rows: Examples, answers: Answers, of_run: bool) -> None:
    """Show the rows of each class that a classifier answers right, of many classes those that it
    knows worst; ``of_run``: they are the test rows of the run, of which the reference's are known.
    """
    import numpy as np

    from bench_core.leaderboard.board import ClassRows
    from bench_core.leaderboard.export import right_answers

    right = right_answers(model, rows, answers).tolist()
    sizes = np.bincount(rows.y.astype(int), minlength=len(right)).tolist()
    names = map(str, model.classes)
    of_class = [ClassRows(*line) for line in zip(names, sizes, right, strict=True)]
    if of_run:
        known = {group[0]: group[3:] for group in model.about.get("found", ())}
        of_class = [ClassRows(c.label, c.rows, c.model, *known.get(c.label, ())) for c in of_class]
    there = [group for group in of_class if group.rows]
    worst = sorted(there, key=lambda group: group.model / group.rows)[:_SHOWN]
    lines = [
        [group.label, str(group.rows), f"{group.model:.0f}"] for group in there if group in worst
    ]
    titles = ("class", "rows", "right")
    show(Table(titles, lines, "class", titles[1:], titles[:1]), console())
    if len(there) > _SHOWN:
        options.note(f"note: not shown: {len(there) - _SHOWN} classes of more right answers")
    for line in rare_class_of(model, of_class, "test row" if of_run else "row"):
        console().out(line, highlight=False)


def _row_by_row(model: Predictor, rows: Examples, answers: Answers) -> pd.DataFrame:
    """Return the label, answer, scores and cost of each row; of a choice, the label is the quality
    of the answer that is returned."""
    import numpy as np
    import pandas as pd

    from bench_core.data import Task

    scores, labels, n = answers.scores, rows.y, len(rows)
    columns: dict[str, Any] = {"row": np.arange(1, n + 1)}
    if rows.queries is not None:
        columns["query"] = np.repeat(np.arange(1, len(rows.queries) + 1), rows.queries.sizes)
    if rows.multiplicity is not None:
        columns["copies"] = rows.multiplicity
    if not model.classes:
        columns |= {"label": labels, "answer": scores}
    else:
        answered = model.labels(scores)
        if model.about["task"] == Task.CHOICE:
            label: Any = labels[np.arange(n), [*map(model.classes.index, answered)]]
        else:
            label = pd.Categorical(np.array(model.classes)[labels.astype(int)])
        columns |= {"label": label, "answer": pd.Categorical(answered)}
        if scores.ndim == 1:
            columns["score"] = scores
        else:
            names = (f"score {name}" for name in model.classes)
            columns |= zip(names, scores.T, strict=True)
    return pd.DataFrame(columns | {"spent": answers.spent})


def _splits_of(model: Predictor) -> Splits:
    from bench_core._io.files import from_cache
    from bench_core.datasets.cache import open_prepared

    try:
        return open_prepared(from_cache(model.about["provenance"]["data"]))
    except (InputError, OSError, KeyError) as error:
        raise InputError(
            "the test rows of the export are not on this machine; give rows by --data FILE"
        ) from error


def _rows_of_the_run(rows: Examples, model: Predictor) -> int:
    """Count the rows that equal a training or validation row of the run, 0 if those are gone."""
    import numpy as np

    try:
        splits = _splits_of(model)
    except InputError:
        return 0
    columns = ~np.isnan(rows.X).all(axis=0)  # others were not read

    def cells(part: Examples) -> list[bytes]:
        table = np.nan_to_num(np.column_stack([part.X[:, columns], part.y]), nan=np.inf) + 0.0
        return [row.tobytes() for row in table]

    known = {*cells(splits.train), *cells(splits.valid)}
    return sum(row in known for row in cells(rows)) if columns.any() else 0


def _rows_of(path: Path, model: Predictor, table_options: Mapping[str, Any]) -> Examples:
    """Read a file's rows with the model's columns, and its labels as the training numbers."""
    import numpy as np
    import pandas as pd

    from bench_core.data import Examples
    from bench_core.datasets.user_data import TablePart, class_name, read_parts
    from bench_core.datasets.user_files import is_table, read_part, side_table
    from bench_core.serving.row_prices import prices_in

    if model.encodings and not is_table(path):
        raise InputError(f"{path}: SVMlight; the model needs a table with its columns")
    of_run = model.about.get("table", {}) if is_table(path) else {}
    changes = {k: v for k, v in table_options.items() if v != getattr(USUAL, k)}
    read = read_part(path, TableOptions.of(of_run, **changes))
    order: Any = slice(None)
    if isinstance(read, TablePart):
        rows = read_parts({"test": replace(read, columns=())})["test"]
        if lost := [name for name in model.features if name not in read.table.names]:
            raise InputError(f"{path}: no column {lost[0]!r}, which the model may ask for")
        text = {encoding.name for encoding in model.encodings if encoding.texts}
        columns = {name: read.table.column(name) for name in model.features}
        cells = {k: c.cells() if k in text else c.numbers() for k, c in columns.items()}
        X = model.table_features({"": rows.labels, **cells})  # labels count rows without cells
        if read.query is not None:  # the labels are in the order of queries
            order = np.argsort(pd.factorize(read.query.texts())[0], kind="stable")
            X = X[order]
    else:
        rows = read
        X = np.full((len(rows), len(model.names)), rows.unwritten, dtype=np.float32)
        width = min(rows.frame.shape[1], X.shape[1])
        X[:, :width] = rows.frame.to_numpy()[:, :width]
    y: Any = rows.labels
    if classes := [*map(str, model.classes)]:
        names = [*map(class_name, y)]
        if {*classes} == {"False", "True"}:  # of an array; a file's words are read as 0 and 1
            names = [{"0": "False", "1": "True"}.get(name, name) for name in names]
        for row, name in enumerate(names):
            if name not in classes:
                what = f"label {name!r} is not a class of the model: {', '.join(classes)}"
                raise InputError(f"{rows.place(row)}: {what}")
        y = np.array([*map(classes.index, names)])
    elif y.dtype.kind != "f":
        raise InputError(f"{rows.place(0)}: label {y[0]!r} is text; the model needs numbers")
    queries, paid = rows.queries if model.about["task"] == "ranking" else None, None
    if columns_of_prices := model.price_columns:
        table = read.table if isinstance(read, TablePart) else side_table(path, len(rows))
        there = [name for name in columns_of_prices if name in table.names]
        if lost := [name for name in columns_of_prices if name not in there]:
            options.note(f"note: no column {lost[0]!r}: its sensor has the mean price")
        # as in a run, an empty price means that nothing was bought
        known = {name: np.nan_to_num(table.column(name).numbers())[order] for name in there}
        paid = prices_in(known, columns_of_prices)
    return Examples(X, y.astype(np.float64), queries, price_columns=paid)


@model_command.command("watch", short_help="Compare the spending in a service's log.")
@_folder
@click.argument("log", type=options.FILE)
@options.debug_option
def watch_command(folder: Path, log: Path) -> int:
    """Compare the spending in LOG with what was expected when the model in FOLDER was exported.

    LOG is CSV or Parquet with a row for each answer, such as 'answer.log()' in Python: a column
    'spent'; 'bought', names of columns separated by blanks, or a column of 0 and 1 for each of
    them; 'capped', 0 or 1. The last two may be missing. The exit status is 1 if a mean changed by
    more than 3 standard errors, and by more than 5% (of the cost, or of the rows).
    """
    from bench_core.cli.spending_log import figures_of

    model = _loaded(folder)
    answers, (first, *others) = figures_of(log, model, folder)
    others.sort(key=lambda figure: -abs(figure.logged - figure.expected))
    spent = f"mean cost,{_unit(model)}".rstrip(","), cost(first.expected), cost(first.logged)
    rows = [[*spent, "ALARM" * first.alarm]]
    for name, expected, logged, alarm in others:
        rows.append([name, f"{expected:.1%}", f"{logged:.1%}", "ALARM" * alarm])
    titles = ("figure", "export", "log", "alarm")
    title = f"{count(answers, 'answer')} in {log}, next to {folder}"
    show(Table(titles, rows[:_SHOWN], titles[0], titles[1:3], titles[:1], title=title), console())
    if len(rows) > _SHOWN:
        options.note(f"note: not shown: {len(rows) - _SHOWN} shares that changed less")
    alarms = sum(figure.alarm for figure in (first, *others))
    console().out(f"ALARM: {count(alarms, 'figure')} changed" if alarms else "as expected")
    return DIFFERS if alarms else 0
