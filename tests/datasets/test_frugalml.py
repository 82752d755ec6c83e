"""Answers of paid services, in the publisher's layout."""

import numpy as np
import pytest
from bench_datasets.frugalml import FerPlus, RafDb, Waimai
from helpers.kit import all_cells, refused
from helpers.kit import prepared_set as prepared

from bench_core import Task
from bench_core.errors import InputError


def test_halves_are_those_of_the_published_figures(real_data):
    # published within .001: the free service's accuracy on the test half of seeds 1, 5, 10, 50, 100
    published = (0.6085, 0.5996, 0.5978, 0.6050, 0.6008)
    for fold, wanted in enumerate(published):
        splits = prepared(RafDb(), real_data, fold=fold)
        assert len(splits.test) == 7670
        free = splits.feature_names.index("GitHub(CNN).label")
        right = float((splits.test.X[:, free] == splits.test.y).mean())
        assert right == pytest.approx(wanted, abs=1e-3)


@pytest.mark.parametrize("data", [RafDb(), FerPlus(), Waimai()], ids=lambda d: d.name)
def test_every_row_is_used_once(data, real_data):
    X = all_cells(prepared(data, real_data, fold=2))
    folder = real_data / "frugalml" / data.home
    found = sorted(np.sort(X[:, j]).tolist() for j in (1, 3, 5, 7))
    wanted = [np.loadtxt(file).astype(np.float32) for file in folder.glob("*_Confidence.txt")]
    assert found == sorted(np.sort(each).tolist() for each in wanted)


def test_a_service_is_one_sensor_of_two_columns_at_its_list_price(real_data):
    prices = prepared(Waimai(), real_data).prices
    assert prices.sensor.tolist() == [2.5, 3.5, 0.75, 0.001]
    assert [int(j) for k in range(8) for j in prices.sensors_of(k)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert prices.unit == "dollars per 10000 calls"


def written(folder, service="1\n0\n1\n0\n"):
    home = folder / Waimai.home
    home.mkdir()
    rows = "".join(f"{k},S{k},{k + 1},2\n" for k in (0, 3, 4, 100))
    (home / "meta.csv").write_text(f"Index,Name,Cost,labels\n{rows}")
    (home / "Model0_TrueLabel.txt").write_text("0\n1\n1\n0\n")
    for k in (0, 3, 4, 100):
        (home / f"Model{k}_PredictedLabel.txt").write_text("1\n0\n1\n0\n" if k else service)
        (home / f"Model{k}_Confidence.txt").write_text("0.5\n0.25\n1\n0.125\n")


def test_the_publishers_permutation_decides_the_halves(tmp_path):
    written(tmp_path)
    splits = prepared(Waimai(), tmp_path, fold=2)
    order = [2, 0, 3, 1]  # numpy.random.seed(10), permutation(4)
    y = np.array([0.0, 1.0, 1.0, 0.0])
    assert splits.test.y.tolist() == y[order[2:]].tolist()
    assert np.concatenate([splits.train.y, splits.valid.y]).tolist() == y[order[:2]].tolist()
    assert splits.prices.sensor.tolist() == [1, 4, 5, 101]
    assert splits.task is Task.BINARY


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ("1\n0\n1\n", "3 rows where the publisher's file has 4"),
        ("1\n0\n2\n0\n", "PredictedLabel.txt, line 3: label 2 is not one of [0, 1]"),
    ],
)
def test_a_damaged_file_is_refused(service, said, tmp_path):
    written(tmp_path, service)
    refused(said, prepared, Waimai(), tmp_path, error=InputError)
