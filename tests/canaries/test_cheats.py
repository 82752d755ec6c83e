"""No cheat stands with a number that it does not deserve, but those that docs/trust.md names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import bench_core
from canaries.cheats import CHEATS

FEW = ("honest", "row-number", "twin-peek", "negative-bill", "tells-by-buying")


def rows_of(store: str) -> Mapping[str, Any]:
    """The rows of each cheat on what points are chosen by and what is reported."""
    frame = bench_core.load_run(store=store).frame()
    frame["how"] = [json.loads(params)["how"] for params in frame["params"]]
    return {str(how): rows[rows["split"] != "train"] for how, rows in frame.groupby("how")}


def run(home: Path, hows: Any) -> tuple[Any, Any]:
    """The rows after a run with the sampled audit, and after a full one."""
    store, plugins = str(home / "b.db"), ["canaries.cheats"]
    bench_core.run(
        data="canary",
        metrics=["accuracy", "auc"],
        store=store,
        plugins=plugins,
        learners={"cheat": {"how": [*hows]}},
        workers=2,
    )
    sampled = rows_of(store)
    bench_core.audit(store=store, plugins=plugins, workers=2)
    return sampled, rows_of(store)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from _rows(tmp_path_factory, FEW)


@pytest.fixture(scope="module")
def all_of_them(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from _rows(tmp_path_factory, CHEATS)


def _rows(factory: pytest.TempPathFactory, hows: Any) -> Iterator[Any]:
    home = factory.mktemp("cheats")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        yield run(home, hows)


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
    numbers = ["accuracy", "total_cost", "cost_p95", "cost_max"]
    same = sampled[numbers].to_numpy().tolist() == honest[numbers].to_numpy().tolist()
    return "harmless" if same else "beyond"


@pytest.mark.parametrize("how", FEW)
def test_a_few_cheats_have_the_word_that_they_must_have(how: str, few: Any) -> None:
    sampled, full = few
    assert word(sampled[how], full[how], sampled["honest"]) == CHEATS[how][0]


@pytest.mark.slow
@pytest.mark.parametrize("how", CHEATS)
def test_each_cheat_has_the_word_that_it_must_have(how: str, all_of_them: Any) -> None:
    sampled, full = all_of_them
    assert word(sampled[how], full[how], sampled["honest"]) == CHEATS[how][0]


@pytest.mark.slow
def test_a_refusal_says_why_in_one_line(all_of_them: Any) -> None:
    sampled, _ = all_of_them
    for how, (said, _) in CHEATS.items():
        if said in ("refused", "sample"):
            (reason,) = set(sampled[how]["error"])
            assert reason, how
            assert "\n" not in reason
