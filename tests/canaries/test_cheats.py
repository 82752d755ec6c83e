"""No cheat stands with a number that it does not deserve, but those that docs/trust.md names."""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import bench_core
from bench_core.errors import UsageError
from bench_core.execution import executors
from bench_core.execution.isolation import check_possible
from bench_core.leaderboard.standings import standings
from bench_core.results.budgets import Budget
from bench_core.results.records import MORE_ON_TEST
from bench_core.results.store import Store
from canaries.cheats import CHEATS, HINTS, IMPORTED, ISOLATED, PAGE, PAGES, segment

FEW = ("honest", "notes-in-module", "twin-notes", "negative-bill", "tells-by-buying")
MAY_BE = {"notes-in-faults": ("sample", "full")}  # what else is running may disturb its notes
FEW_ISOLATED = ("disk-labels", "notes-on-disk", "import-labels", "import-thread")


def need_namespaces() -> None:
    """Skip where this system does not allow --isolate."""
    try:
        check_possible()
    except UsageError as error:
        pytest.skip(str(error))


def rows_of(store: str) -> Mapping[str, Any]:
    """The rows of each cheat on what points are chosen by and what is reported."""
    frame = bench_core.load_run(store=store).frame()
    frame["how"] = [json.loads(params)["how"] for params in frame["params"]]
    return {str(how): rows[rows["split"] != "train"] for how, rows in frame.groupby("how")}


def run(home: Path, hows: Any, isolate: bool | None, full: bool) -> tuple[Any, Any]:
    """The rows after a run with the sampled audit, and after a ``full`` one if asked for."""
    store = str(home / "b.db")
    asked: dict[str, Any] = {"data": "canary", "metrics": ["accuracy", "auc"], "store": store}
    learners = {"cheat": {"how": [how for how in hows if how not in IMPORTED]}}
    plugins = ["canaries.cheats"]
    if importing := [how for how in hows if how in IMPORTED]:
        # there must be labels when the module is imported
        bench_core.plan(**asked, plugins=plugins, learners="cheat")
        learners["imported-cheat"] = {"how": importing}
        plugins.append("canaries.importing")
    bench_core.run(**asked, plugins=plugins, learners=learners, workers=2, isolate=isolate)
    sampled = rows_of(store)
    if full:
        how: Any = {"workers": 2, "executor": "local", "isolate": isolate}
        bench_core.audit(store=store, plugins=plugins, **how)
    return sampled, rows_of(store)


RUN = """import pickle, sys
from pathlib import Path
from canaries.test_cheats import run
home = Path(sys.argv[1])
(home / "rows").write_bytes(pickle.dumps(run(home, sys.argv[2:], None, True)))
"""


def run_apart(home: Path, hows: Any, isolate: None, full: bool) -> Any:
    """The same in a process of its own, which what is imported there may change."""
    subprocess.run([sys.executable, "-c", RUN, str(home), *hows], check=True)
    return pickle.loads((home / "rows").read_bytes())


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from _rows(tmp_path_factory, FEW)


@pytest.fixture(scope="module")
def all_of_them(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    need_namespaces()  # without them many rows would be marked instead
    yield from _rows(tmp_path_factory, CHEATS)


@pytest.fixture(scope="module")
def few_isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from _rows(tmp_path_factory, FEW_ISOLATED, isolate=True, full=False)


@pytest.fixture(scope="module")
def all_isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from _rows(tmp_path_factory, [*CHEATS, *IMPORTED], isolate=True)


BUDGETS = [Budget(b + 0.0, kind) for kind in ("mean", "p95") for b in range(1, 7)]


def within_budgets(home: Path, hows: Any, isolate: bool | None, full: bool) -> Any:
    """By cheat whether its rows are marked, and its rows of test with its place at ``BUDGETS``."""
    run(home, hows, isolate, full=False)
    kept = Store(home / "b.db")
    frame, found = kept.frame(), {}
    for how in hows:
        own = frame[[json.loads(params)["how"] == how for params in frame["params"]]]
        each = standings(kept.info(), kept, "canary", own, BUDGETS)
        marked = {MORE_ON_TEST in str(marks).split(", ") for marks in own["marks"]}
        found[how] = marked, own[own["split"] == "test"], [at.rows[0] for at in each]
    return found


@pytest.fixture(scope="module")
def within(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    hows = ["honest", "train-on-valid", *(how for how in CHEATS if CHEATS[how][0] == "charged")]
    yield from _rows(tmp_path_factory, hows, runs=within_budgets)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from _rows(tmp_path_factory, ["honest", *IMPORTED], runs=run_apart)


def _rows(
    factory: pytest.TempPathFactory,
    hows: Any,
    isolate: bool | None = None,
    full: bool = True,
    runs: Callable[..., Any] = run,
) -> Iterator[Any]:
    if isolate:
        need_namespaces()
    home = factory.mktemp("cheats")
    for folder in ("cache", "temporary", "start"):
        (home / folder).mkdir()
    # where a private process sees them: not below a folder for temporary files
    with TemporaryDirectory(dir=Path.home()) as files, pytest.MonkeyPatch.context() as patch:
        if hasattr(os, "mkfifo"):
            os.mkfifo(Path(files, "pipe"))
        for name in ("pages", "faults"):
            with Path(files, name).open("wb") as file:
                file.truncate(PAGE * PAGES)
        for k in range(HINTS):
            Path(files, f"hint-{k}").touch()
        patch.chdir(home / "start")
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        patch.setenv("CANARY", secrets.token_hex(8))
        patch.setenv("CANARY_HOME", str(home / "start"))
        patch.setenv("CANARY_FILES", files)
        patch.setenv("TMPDIR", str(home / "temporary"))
        patch.setattr(executors, "UNSEEN_SECONDS", 0.3)
        try:
            yield runs(home, hows, isolate, full)
        finally:
            for place in Path("/dev/shm").glob(f"canary-{os.environ['CANARY']}"):
                place.unlink()
            if sys.platform.startswith("linux") and (number := segment(create=False)) >= 0:
                ctypes.CDLL(None).shmctl(number, 0, None)  # IPC_RMID


def word(sampled: Any, full: Any, honest: Any) -> str:
    """What became of a cheat."""
    if set(sampled["status"]) != {"ok"}:
        return "refused"
    if set(sampled["audit"]) == {"failed"}:
        assert set(full["audit"]) == {"failed"}  # whatever the sample refuses full refuses
        return "sample"
    assert set(sampled["audit"]) == {"sampled"}
    if set(full["audit"]) == {"failed"}:
        return "full"
    assert set(full["audit"]) == {"verified"}
    if all(MORE_ON_TEST in str(marks).split(", ") for marks in full["marks"]):
        return "charged"
    numbers = ["accuracy", "total_cost", "cost_p95", "cost_max"]
    same = sampled[numbers].to_numpy().tolist() == honest[numbers].to_numpy().tolist()
    return "harmless" if same else "stands"


def expected(how: str, isolated: bool = False) -> str:
    """One that counts no trees has the honest numbers here, where trees cost nothing; where they
    do its row is marked (``tests/core/execution/test_hosted.py``)."""
    if how in IMPORTED:
        return IMPORTED[how][isolated]
    said = ISOLATED.get(how, CHEATS[how][0]) if isolated else CHEATS[how][0]
    return {"beyond": "stands", "marked": "harmless"}.get(said, said)


@pytest.mark.parametrize("how", FEW)
def test_a_few_cheats_have_the_word_that_they_must_have(how: str, few: Any) -> None:
    sampled, full = few
    assert word(sampled[how], full[how], sampled["honest"]) == expected(how)


def test_who_buys_less_for_validation_rows_has_what_its_rows_on_test_cost(within: Any) -> None:
    marked = [how for how, (marks, _, _) in within.items() if marks == {True}]
    assert marked == ["cheap-on-valid", "even-on-valid"]
    for _, rows, each in within.values():
        for budget, one in zip(BUDGETS, each, strict=True):
            paid = rows["total_cost" if budget.kind == "mean" else "cost_p95"]
            assert one.tier == int(paid.min() <= budget.amount)
            assert not one.tier or one.quality in set(rows["accuracy"][paid <= budget.amount])
    _, _, each = within["cheap-on-valid"]  # a row costs 1 on validation, and from 4 on on test
    assert [one.tier for one in each] == 2 * [0, 0, 0, 1, 1, 1]
    _, _, each = within["even-on-valid"]  # 95% of rows cost 2 or more on validation, 3 on test
    assert [one.tier for one in each[6:]] == [0, 0, 1, 1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("how", CHEATS)
def test_each_cheat_has_the_word_that_it_must_have(how: str, all_of_them: Any) -> None:
    sampled, full = all_of_them
    assert word(sampled[how], full[how], sampled["honest"]) in {expected(how), *MAY_BE.get(how, ())}


@pytest.mark.parametrize("how", FEW_ISOLATED)
def test_a_few_cheats_stand_no_more_under_isolate(how: str, few_isolated: Any) -> None:
    sampled, _ = few_isolated
    word = expected(how, True)
    assert set(sampled[how]["status"]) == ({"failed"} if word == "refused" else {"ok"})
    audits = {"refused": {""}, "sample": {"failed"}, "harmless": {"sampled"}}
    assert set(sampled[how]["audit"]) == audits[word]
    assert sampled[how]["accuracy"].max() < 1 or word != "harmless"


@pytest.mark.slow
@pytest.mark.parametrize("how", [*CHEATS, *IMPORTED])
def test_each_cheat_has_its_word_under_isolate(how: str, all_isolated: Any) -> None:
    sampled, full = all_isolated
    found = word(sampled[how], full[how], sampled["honest"])
    assert found in {expected(how, True), *MAY_BE.get(how, ())}


@pytest.mark.slow
@pytest.mark.parametrize("how", IMPORTED)
def test_what_importing_does_has_its_word(how: str, imported: Any) -> None:
    sampled, full = imported
    assert word(sampled[how], full[how], sampled["honest"]) == expected(how)


@pytest.mark.slow
def test_the_place_in_the_block_breaks_no_ties(all_of_them: Any) -> None:
    """Accuracy does not see it: the area under the curve would rise."""
    honest, cheat = (all_of_them[0][how]["auc"].tolist() for how in ("signs", "breaks-ties"))
    assert cheat == honest


@pytest.mark.slow
def test_training_that_is_put_off_until_loading_counts_as_training(all_of_them: Any) -> None:
    assert all_of_them[0]["slow-load"]["fit_seconds"].min() > 0.5


@pytest.mark.slow
def test_who_stops_the_clock_of_its_fit_is_timed_by_another(all_of_them: Any) -> None:
    assert all_of_them[0]["stopped-clock"]["fit_seconds"].min() > 0.5


@pytest.mark.slow
def test_a_refusal_says_why_in_one_line(all_of_them: Any) -> None:
    sampled, _ = all_of_them
    for how, (said, _) in CHEATS.items():
        if said in ("refused", "sample"):
            (reason,) = set(sampled[how]["error"])
            assert reason, how
            assert "\n" not in reason


def test_no_more_cheats_stand_than_the_page_on_trust_lists() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "trust.md").read_text(encoding="utf-8")
    stand = [how for how in (*CHEATS, *IMPORTED) if expected(how) == "stands"]
    assert [how for how in stand if f"`{how}`" not in page] == []
    still = {how for how in stand if expected(how, isolated=True) == "stands"}
    assert still == {"train-on-valid", "notes-in-faults"}
    assert len({*stand} - still) <= 3
