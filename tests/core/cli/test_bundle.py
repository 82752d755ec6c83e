"""``bench bundle``, and ``bench run`` of what it writes."""

import json
import re
import zipfile
from pathlib import Path

import pytest
from helpers.commands import QUICK

OWN = (*QUICK, "--costs", "costs.csv", "--learners", "toy")


@pytest.fixture
def bundled(ran, bench):
    ran(*OWN).ok()
    return bench("bundle", "-o", "run.zip", "-p", "mine", "--with-data")


@pytest.fixture
def moved(bundled, tmp_path_factory, monkeypatch):
    """The bundle alone, in another folder."""
    assert bundled.status == 0, bundled.err
    folder = tmp_path_factory.mktemp("elsewhere")
    Path("run.zip").rename(folder / "run.zip")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BENCH_CACHE", str(folder / "cache"))
    return folder


def members(path="run.zip"):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, **changed):
    kept = members(path) | {name.replace("_", "."): text for name, text in changed.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)


def test_a_bundle_repeats_the_run_in_another_folder_to_the_digit(moved, bench):
    ended = bench("run", "run.zip", "-p", "mine").ok()
    rows = members()["results.csv"].decode().count("\n") - 1
    assert ended.err.endswith(f"all {rows} rows of the results have the same digits\n")
    assert "2 jobs to do" in ended.err  # nothing was taken over
    assert (moved / "run" / "results" / "bench.db").exists()
    assert re.search("^toy ", ended.out, flags=re.M)
    assert "bench best --store run/results/bench.db" in ended.err


def test_it_holds_files_versions_results_and_commands(bundled):
    held = members()
    assert {*held} == {
        *("README.md", "run.json", "results.csv", "features.csv", "board.html"),
        *("costs.csv", "data.csv", "mine.py"),
    }
    assert held["mine.py"] == Path("mine.py").read_bytes()
    page = held["README.md"].decode()
    assert "bench run run.zip -p mine" in page
    assert re.search(r"bench run .*--data data\.csv .*--costs costs\.csv", page)
    assert re.search(r"numpy \d", json.loads(held["run.json"])["versions"])


def test_a_changed_result_is_named(moved, bench):
    lines = members()["results.csv"].decode().splitlines()
    other = re.sub(r",valid,ok,,[\d.]+,", ",valid,ok,,0.125,", lines[1])
    assert other != lines[1]
    rewritten("run.zip", results_csv="\n".join([lines[0], other, *lines[2:]]) + "\n")
    ended = bench("run", "run.zip", "-p", "mine")
    assert ended.status == 1
    assert "accuracy 0.125 then, " in ended.err
    assert f"1 of {len(lines) - 1} rows of the results differ" in ended.err


def test_its_modules_run_only_if_they_are_named(moved, bench):
    bench("run", "run.zip").refused("add -p mine|run/")


def test_own_data_are_left_out_and_then_asked_for(ran, bench, tmp_path_factory, monkeypatch):
    ran(*OWN)
    ended = bench("bundle", "-o", "run.zip", "-p", "mine")
    assert "not included: data.csv; --with-data adds your data" in ended.err
    assert "data.csv" not in members()
    folder, data = tmp_path_factory.mktemp("elsewhere"), Path("data.csv").read_bytes()
    Path("run.zip").rename(folder / "run.zip")
    monkeypatch.chdir(folder)
    bench("run", "run.zip", "-p", "mine").refused(
        "does not include data.csv: put your file at run/data.csv"
    )
    (folder / "run" / "data.csv").write_bytes(data)
    assert "have the same digits" in bench("run", "run.zip", "-p", "mine").err


def test_a_run_that_would_be_another_now_is_refused(ran, bench):
    ran(*OWN)
    Path("costs.csv").write_text("a,11\nb,5\nc,1\n")
    bench("bundle", "-o", "run.zip", "-p", "mine").refused("1 of 1 trials would be others now")
    assert not Path("run.zip").exists()


def test_options_that_the_bundle_decides_are_refused(moved, bench):
    refused = bench("run", "run.zip", "-p", "mine", "--seeds", "3")
    assert (refused.status, "--seeds: run.zip decides it" in refused.err) == (2, True)


def test_a_file_of_the_same_name_is_not_overwritten(moved, bench):
    (moved / "run").mkdir()
    (moved / "run" / "costs.csv").write_text("a,1\n")
    bench("run", "run.zip", "-p", "mine").refused("run/costs.csv is not the file of run.zip")
    assert (moved / "run" / "costs.csv").read_text() == "a,1\n"


def test_files_from_other_folders_move_into_the_bundle(ran, bench, material, tmp_path_factory):
    far = tmp_path_factory.mktemp("far")
    Path("costs.csv").rename(far / "costs.csv")
    words = (*QUICK, "--costs", str(far / "costs.csv"), "--learners", "toy")
    bench("run", *words).ok()
    bench("bundle", "-o", "run.zip", "-p", "mine").ok()
    assert json.loads(members()["run.json"])["request"]["costs"] == "costs.csv"
    assert "costs.csv" in members()


@pytest.mark.parametrize("name", ["mine.py", "results.csv", "features.csv"])
def test_two_files_of_one_name_are_refused(ran, bench, material, tmp_path_factory, name):
    far = tmp_path_factory.mktemp("far")
    Path("costs.csv").rename(far / name)
    bench("run", *QUICK, "--costs", str(far / name), "--learners", "toy").ok()
    bench("bundle", "-o", "run.zip", "-p", "mine").refused(
        f"have one name in a bundle, {name}; rename one of them"
    )
    assert not Path("run.zip").exists()
