"""Data sets of a request: a suite's, with stand-ins, registered ones, or a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench_core.contracts import dataset_of
from bench_core.costs.error_costs import error_columns
from bench_core.datasets.data_folder import local_path
from bench_core.datasets.table_options import TableOptions
from bench_core.datasets.user_arrays import InMemory
from bench_core.errors import InputError, UsageError, blaming, option, unknown
from bench_core.option_fields import options_of
from bench_core.parameters import as_json, expand, parameters
from bench_core.planning.plan import Notify
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_learners import Override
from bench_core.planning.suites import Suite
from bench_core.plugins import Registry
from bench_core.protocols import Source


@dataclass(frozen=True, slots=True)
class ChosenDataset:
    """Data set of a run."""

    label: str  # its name in all results
    dataset: Any
    replaces: str = ""  # name of the replaced one


def choose_datasets(
    request: RunRequest,
    suite: Suite,
    registry: Registry,
    source: Source,
    settings: Sequence[Override],
    notify: Notify,
) -> tuple[list[ChosenDataset], tuple[str, ...]]:
    """Return the data sets of a request, with stand-ins for missing licensed data.

    In a suite with several data sets, those with missing files are skipped and returned second.
    """
    if not suite.name:
        return _own_data(request, registry, settings), ()
    _refuse_file_options(request, "with a suite")
    with blaming(f"{suite.place}, key 'datasets'"):
        files_of = {e.name: registry.about_dataset(e.name).files for e in suite.datasets}
    stand_ins: dict[str, list[str]] = {name: [] for name in files_of}
    for name in sorted(registry.datasets):
        stand_ins.setdefault(registry.about_dataset(name).stand_in_for, []).append(name)
    names = [*files_of, *(name for of in files_of for name in stand_ins[of])]
    for name in request.data:
        if name not in names:
            place = f"{option('data')} with suite {suite.name} restricts it"
            raise UsageError(f"{place}: {unknown('data set', name, names)}")
    chosen: list[ChosenDataset] = []
    absent: dict[str, tuple[str, ...]] = {}
    for entry in suite.datasets:
        files, others = files_of[entry.name], stand_ins[entry.name]
        wanted = [name for name in others if name in request.data]
        if request.data and not wanted and entry.name not in request.data:
            continue
        if not wanted and others and suite.stand_ins and files and not source.has(files[0]):
            if request.strict_data:
                missing = _missing({entry.name: files}, source)
                raise InputError(f"{option('strict_data', True)}: no stand-ins, and {missing}")
            wanted = others
            notify(
                f"{files[0]} of {entry.name} was not found; generated data ({wanted[0]}) is "
                "used instead",
                True,
            )
        cls = registry.dataset(wanted[0] if wanted else entry.name)
        shared = {p.name for p in parameters(cls)}  # a stand-in ignores other options
        options = {k: v for k, v in entry.options.items() if k in shared or not wanted}
        own = [s for s in settings if s.owner in (entry.name, cls.name)]
        label, dataset = _instance(
            cls, options, own, registry, f"{suite.place}, data set {entry.name}"
        )
        optional = len(suite.datasets) > 1 and not request.data and not request.strict_data
        if optional and not dataset_of(dataset).complete(source):
            absent[entry.name] = tuple(dataset_of(dataset).files)
        else:
            chosen.append(ChosenDataset(label, dataset, entry.name if wanted else ""))
    if absent:
        line = _missing(absent, source)
        if not chosen:
            raise InputError(f"suite {suite.name} has no data to run on, {line}")
        notify(f"skipped data sets, as {line}", True)
    return chosen, tuple(absent)


def _missing(absent: Mapping[str, Sequence[str]], source: Source) -> str:
    """Describe missing files by data set, and their folder."""
    files = ", ".join(f"{name} ({names[0]})" for name, names in absent.items())
    name = next(iter(absent)) if len(absent) == 1 else "NAME"
    help = f"'bench show {name}' and 'bench data fetch {name}' help"
    return f"their files are not in {source.folder}: {files}; put them there, {help}"


def _own_data(
    request: RunRequest, registry: Registry, settings: Sequence[Override]
) -> list[ChosenDataset]:
    """Return registered data sets, instances, or one file."""
    from bench_core.datasets.user_files import FileData

    chosen, files = [], []
    of_errors = error_columns(request.error_costs, request.encoding)
    for entry in request.data:
        if not isinstance(entry, str):
            chosen.append(ChosenDataset(_label(entry, registry), entry))
        elif cls := registry.datasets.get(entry):
            overrides = [setting for setting in settings if setting.owner == entry]
            label, dataset = _instance(cls, {}, overrides, registry, entry)
            if of_errors and isinstance(dataset, FileData):  # of datasets.toml
                dataset = replace(dataset, prices_by_row=of_errors)
            chosen.append(ChosenDataset(label, dataset))
        else:
            files.append(entry)
    in_memory = chosen and all(isinstance(one.dataset, InMemory) for one in chosen)
    if not files and not in_memory:
        places = [getattr(one.dataset, "place", "") for one in chosen]  # in datasets.toml
        _refuse_file_options(request, "with a registered data set", max(places, default=""))
    for name in files:
        if not local_path(name).exists():
            what = registry.unknown("data set or file", name, registry.datasets)
            if Path(name).suffix or len(Path(name).parts) > 1:
                what = f"no such file in {Path.cwd()}; check the name"
            raise UsageError(f"{option('data', name)}: {what}")
    if len(files) > 1 or (files and chosen):
        raise UsageError(
            f"{option('data')}: {', '.join(map(str, request.data))}: give one file (with "
            f"{option('valid')} and {option('test')}), or registered data sets"
        )
    if files:
        from bench_core.costs.cost_file import price_columns_of

        by_row = (*price_columns_of(request.costs, request.encoding), *of_errors)
        paths = files[0], request.valid, request.test
        dataset = FileData(*paths, **request.table(), prices_by_row=by_row)
        chosen.append(ChosenDataset(dataset.name, dataset))
    if not chosen:
        suite, data = option("suite", like="NAME"), option("data", like="NAME_OR_FILE")
        raise UsageError(f"nothing to run: give {suite} or {data}")
    return chosen


def file_options(request: RunRequest) -> list[str]:
    """Return the given options of a request that apply only to files."""
    known, names = options_of(RunRequest), ("valid", "test", *options_of(TableOptions))
    return [name for name in names if getattr(request, name) != known[name].default]


def _refuse_file_options(request: RunRequest, why: str, place: str = "") -> None:
    """Raise UsageError for options of files; ``place``: a table of ``datasets.toml``."""
    for name in file_options(request):
        belongs = f"it belongs to {option('data', like='FILE')}"
        if place:
            belongs = f"write its key into {place} (docs/guide/data.md lists keys)"
        raise UsageError(f"{option(name)} has no meaning {why}: {belongs}")


def _instance(
    cls: Any,
    options: Mapping[str, Any],
    settings: Sequence[Override],
    registry: Registry,
    where: str,
) -> tuple[str, Any]:
    """Return the label of a data set with its options, and the data set.

    Options in ``places`` of the class locate its files and do not enter the label.
    """
    for setting in settings:
        options = setting.applied(options)
    made = expand(cls, options, registry, where)
    if len(made) != 1:
        raise UsageError(f"{where}: an option of a data set takes one value, not a grid")
    return _labelled(cls, options), made[0]


def _label(dataset: Any, registry: Registry) -> str:
    """Name in results of a data set given as an instance."""
    if registry.datasets.get(dataset.name, type(dataset)) is not type(dataset):
        raise UsageError(f"{dataset.name!r} is the name of a registered data set: choose another")
    usual = {p.name: p.default for p in parameters(type(dataset))}
    changed = {k: v for k, v in as_json(dataset).items() if getattr(dataset, k) != usual[k]}
    return _labelled(dataset, changed)


def _labelled(dataset: Any, options: Mapping[str, Any]) -> str:
    places = dataset_of(dataset).places
    inside = ",".join(f"{k}={v}" for k, v in sorted(options.items()) if k not in places)
    return f"{dataset.name}({inside})" if inside else str(dataset.name)
