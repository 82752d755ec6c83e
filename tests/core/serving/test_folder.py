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


def written(folder, content):
    (folder / "model.json").write_text(content)


def index_of(folder):
    return json.loads((folder / "model.json").read_text())


def changed(folder, **values):
    written(folder, json.dumps(index_of(folder) | values))


def crafted(folder, *lost, **values):
    """Write an index without some parts and with other values, and the sum that goes with it."""
    index = {k: v for k, v in (index_of(folder) | values).items() if k not in (*lost, "sum")}
    written(folder, json.dumps(index | {"sum": _sum(folder, index)}))


def other_costs(folder, name, value):
    costs = index_of(folder)["costs"]
    costs["state"][name]["array"][0] = value
    crafted(folder, costs=costs)


UNREAD = "not a model that can be read"
REFUSED = [
    *((crafted, part, f"{UNREAD} (KeyError: '{part}'); export it again")
      for part in ("costs", "names", "about", "columns")),
    (lambda folder: crafted(folder, names=["cheap"]), "differ in their features"),
    (lambda folder: changed(folder, version=2), "('budget-bench model', 2), this version reads 7"),
    (other_costs, "needed", 9, UNREAD),
    (other_costs, "start", 1, UNREAD),
    *((written, text, "export it with 'bench model export'") for text in ("{}", "[]", "not json")),
    (written, "[" * 100_000 + "]" * 100_000, "(model.json: not the model.json of an export"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_an_index_of_another_form_or_content_is_refused(folder, case):
    change, *given, words = case
    change(folder, *given)
    refused(words, load, folder)


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
