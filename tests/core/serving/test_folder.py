"""What a folder holds comes back as it was or is refused; LightGBM reads its text."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.compiled_c import write_c
from helpers.kit import refused
from helpers.program_cases import PROGRAMS, folder_of
from helpers.random_trees import stump

from bench_core import price_list
from bench_core.encoding import ColumnEncoding
from bench_core.serving import (
    END,
    Folder,
    Predictor,
    Program,
    Step,
    load,
    write_folder,
)
from bench_core.serving.folder import _sum, program_from, program_state

PRICES = price_list(np.array([1.0, 2.0]), split=0.5, unit="ms")


def program():
    trees = stump(1, 1.0, 2.0, 0.5, features=2)
    one = Step(np.zeros(1, np.int64), np.ones(1), np.ones(1, bool), np.zeros(1), then=END)
    return Program(1, [one], trees, np.ones(2))


@pytest.fixture
def folder(tmp_path):
    about = {"task": "regression"}
    write_folder(tmp_path / "model", Folder(program(), PRICES, ("cheap", "dear"), about))
    return tmp_path / "model"


def test_a_loaded_model_serves(folder):
    model = load(folder)
    assert model.features == ("dear",)
    answer = model.predict(lambda names: [0.75])
    assert (answer.score, answer.spent) == (2.0, 2.5)


@pytest.mark.parametrize("rows", [[], (), {}, np.array([]), np.zeros((0, 2)), pd.DataFrame()])
def test_no_rows_get_no_answers(rows):
    columns = ColumnEncoding("dear", ("Ulm", "Bonn"))
    plain = Folder(program(), PRICES, ("cheap", "dear"), {})
    text = replace(plain, encodings=(ColumnEncoding("cheap"), columns))
    for content in (plain, text):
        found = Predictor(content).predict_rows(rows)
        sizes = [len(a) for a in (found.scores, found.spent, found.step, found.capped)]
        assert (sizes, found.bought.shape) == ([0] * 4, (0, 2))


def test_a_program_survives_as_arrays():
    arrays, index = program_state(program())
    again, _ = program_state(program_from(arrays, json.loads(json.dumps(index))))
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert all(arrays[name].dtype == again[name].dtype for name in arrays)


def test_an_older_export_is_replaced(folder):
    (folder / "stray.npy").write_bytes(b"old")
    write_folder(folder, Folder(program(), PRICES, ("cheap", "dear"), {}))
    assert not (folder / "stray.npy").exists()


def changed(folder, **values):
    index = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(index | values))


@pytest.mark.parametrize("lost", ["costs", "names", "about", "columns"])
def test_an_index_of_which_a_part_was_never_there_is_refused(folder, lost):
    index = json.loads((folder / "model.json").read_text())
    del index[lost], index["sum"]
    (folder / "model.json").write_text(json.dumps(index | {"sum": _sum(folder, index)}))
    refused(f"not a model that can be read (KeyError: '{lost}'); export it again", load, folder)


def test_a_changed_or_lost_part_is_refused(folder):
    values = np.load(folder / "trees.value.npy")
    np.save(folder / "trees.value.npy", values + 1)
    refused("changed after the export", load, folder)
    (folder / "trees.value.npy").unlink()
    refused("changed after the export", load, folder)
    np.save(folder / "trees.value.npy", values)
    load(folder)
    changed(folder, names=["dear", "cheap"])
    refused("changed after the export", load, folder)


MISFITS = {
    "a way back": ("trees.right", 0, 0),
    "a way out": ("trees.left", 0, 3),
    "no threshold": ("trees.threshold", 0, np.nan),
    "a feature beyond the last": ("trees.feature", 0, 2),
    "an output beyond the last": ("trees.output", 0, 1),
    "vectors that are not there": ("trees.output", 0, -1),
    "a cut that is not the end": ("trees.start", 1, 2),
    "a tree that is not there": ("steps.trees", 0, 1),
    "a negative price of splits": ("multiplier", 0, -1.0),
    "a value too many": ("trees.value", None, 0.0),
    "a weight too many": ("steps.weights", None, 0.0),
    "a weight of no column": ("steps.columns.weight", None, 0.0),
}


def crafted(folder, **values):
    """An index with other values and the sum that goes with them."""
    index = json.loads((folder / "model.json").read_text()) | values
    del index["sum"]
    (folder / "model.json").write_text(json.dumps(index | {"sum": _sum(folder, index)}))


@pytest.mark.parametrize("what", MISFITS)
def test_arrays_that_no_row_can_be_walked_through_are_refused(folder, what):
    name, place, value = MISFITS[what]
    array = np.load(folder / f"{name}.npy")
    if place is None:
        array = np.append(array, value)
    else:
        array[place] = value
    np.save(folder / f"{name}.npy", array)
    crafted(folder)
    refused("not a model that can be read", load, folder)


@pytest.mark.parametrize(("name", "value"), [("needed", 9), ("start", 1)])
def test_costs_of_other_sensors_are_refused(folder, name, value):
    costs = json.loads((folder / "model.json").read_text())["costs"]
    costs["state"][name]["array"][0] = value
    crafted(folder, costs=costs)
    refused("not a model that can be read", load, folder)


def test_names_are_as_many_as_the_model_has_features(folder):
    crafted(folder, names=["cheap"])
    refused("differ in their features", load, folder)


def test_json_that_is_too_deep_is_refused(folder):
    (folder / "model.json").write_text("[" * 100_000 + "]" * 100_000)
    refused("not an exported model (model.json: not the model.json of an export", load, folder)


def test_another_version_is_named(folder):
    changed(folder, version=2)
    refused("format ('budget-bench model', 2), this version reads 7", load, folder)


@pytest.mark.parametrize("text", ["{}", "[]", "not json"])
def test_a_foreign_folder_is_refused(folder, text):
    (folder / "model.json").write_text(text)
    refused("export it with 'bench model export'", load, folder)


def test_an_empty_folder_is_refused(tmp_path):
    refused("not an exported model (model.json: no such file", load, tmp_path)
    write_c(tmp_path / "c", folder_of(PROGRAMS["chain"]))
    refused("an export in the format 'c', which cannot be opened here", load, tmp_path / "c")


def test_loading_needs_numpy_alone_and_serving_numba(folder):
    code = (
        "import sys; from bench_core.serving import load\n"
        f"model = load({str(folder)!r})\n"
        "assert not {'numba', 'scipy'} & {*sys.modules}\n"
        "assert model.predict(lambda names: [1.0]).score == 2.0\n"
        "heavy = {'pandas', 'sklearn', 'click', 'rich', 'pluggy'} & {*sys.modules}\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
