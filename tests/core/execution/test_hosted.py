"""A stranger's model lives in a process of its own, and nothing else changes."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers.odd_model import Odd

from bench_core import Features, Queries, price_list
from bench_core.api import plan
from bench_core.execution import hosted as host
from bench_core.execution import trial
from bench_core.execution.contract import ContractError, HostedError, plain_marks
from bench_core.execution.hosted import Hosted
from bench_core.execution.trial import OWN_COUNT, run_fit, run_trial
from bench_core.results.records import NOT_PRIVATE, Status
from bench_core.results.store_files import save_model


def hosted(folder: Path, how: str) -> Hosted:
    save_model(folder / "m.npz", Odd(how, np.asfortranarray([[1.0, 2.0], [3.0, 4.0]])))
    return Hosted(folder / "m.npz", named=[Odd.__module__])


def test_what_it_answers_arrives_as_it_was(tmp_path: Path) -> None:
    block = Features(np.array([[1, 2], [3, 4]], np.float32), Queries(np.array([0, 2])))
    with hosted(tmp_path, "well") as model:
        assert (model.independent_rows, model.concurrent, model.marks) == (True, False, ("odd",))
        for _ in range(2):
            next(iter(model.predict_path(block)))  # left in the middle
            found = list(model.predict_path(block))
            assert [p.point for p in found] == [{"k": 0}, {"k": 1}, {"k": 2}]
            assert found[2].scores.tolist() == [4.0, 6.0]
            bill = found[2].bills["model"]
            assert (bill.splits.tolist(), float(bill.trees)) == ([0.0, 1.0], 3.0)  # type: ignore[union-attr]
            assert bill.acquired.bits.tolist() == [[0]]
    assert block.X.tolist() == [[1, 2], [3, 4]]
    assert model.load_seconds > 0
    assert model.peak_rss_mb > 1


@pytest.mark.parametrize(
    ("how", "status", "line"),
    [
        ("exit", Status.CRASHED, "its process ended with status 3"),
        ("raise", Status.FAILED, "ValueError: no way (odd_model.py:"),
        ("memory", Status.OUT_OF_MEMORY, "out of memory: enough"),
        ("load", Status.FAILED, "RuntimeError: cannot load"),
    ],
)
def test_what_goes_wrong_there_is_reported_here(
    how: str, status: Status, line: str, tmp_path: Path
) -> None:
    block = Features(np.zeros((2, 2), np.float32))
    with pytest.raises(HostedError) as caught, hosted(tmp_path, how) as model:
        list(model.predict_path(block))
    assert caught.value.status == status
    assert str(caught.value).startswith(line)


def test_a_breach_of_the_contract_there_is_one_here(tmp_path: Path) -> None:
    refused = pytest.raises(ContractError, match="scores are complex128: they must be real")
    with hosted(tmp_path, "complex") as model, refused:
        list(model.predict_path(Features(np.zeros((2, 2), np.float32))))


def test_a_trial_gives_the_same_rows_wherever_the_model_lives(home: Path) -> None:
    p = plan(
        plugins=("helpers.toys",),
        data="toy-rank",
        learners="toy-prefix",
        settings="toy-prefix.tradeoff=0.5",
        caps=[3.0],
    )
    spec = p.trials[0]
    assert (spec.origin, p.fits[0].origin) == ("helpers", "helpers")
    run_fit(p.fits[0])
    here, there = (run_trial(spec, apart=apart) for apart in (False, True))
    assert here.rows == there.rows
    for one, two in zip(here.values, there.values, strict=True):
        assert np.array_equal(one.metric, two.metric)
        assert np.array_equal(one.bought, two.bought)
    # beside its judge a stranger's model is not audited, whatever the audit finds
    assert (here.audit, there.audit) == ("declared", "sampled")
    assert run_trial(replace(spec, audit="full"), apart=True).audit == "verified"


def test_only_what_is_bench_through_and_through_lives_where_labels_are(home: Path) -> None:
    own = plan(data="toy-rank", plugins=("helpers.toys",), learners="constant")
    assert [one.origin for one in own.trials] == [""]
    over = "early-exit.base=toy-prefix"
    mixed = plan(data="toy-rank", plugins=("helpers.toys",), learners="early-exit", settings=over)
    assert [one.origin for one in mixed.trials] == ["helpers"]


@pytest.mark.parametrize(
    "mark",
    ["\x1b[31mred", "<b>x</b>", "=1", "-1", "a, b", "a&b|c_d", "", "x" * 25, "Best", "not-failed"],
)
def test_marks_are_a_few_plain_words(mark: str) -> None:
    assert plain_marks(["diverged", "not converged"]) == ("diverged", "not converged")
    with pytest.raises(ContractError, match="is not plain"):
        plain_marks(["diverged", mark])
    with pytest.raises(ContractError, match="more than 5 marks"):
        plain_marks(itertools.repeat("odd"))


@pytest.mark.parametrize(("origin", "seeds"), [("mine", 3), ("", 1)])
def test_what_a_strangers_audit_looks_at_cannot_be_foreseen(
    origin: str, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(trial, "replay", lambda *_, seed, **more: given.append(seed))
    monkeypatch.setattr(trial, "_loaded", lambda *_: None)
    spec: Any = SimpleNamespace(audit="sample", origin=origin, key="k", accounting="", caps=())
    nothing: Any = SimpleNamespace(test=None, costs=None, classes=0)
    for _ in range(3):
        trial._audited(spec, nothing, object(), nothing, True)
    assert len(set(given)) == seeds
    assert ("k" in given) == (origin == "")


@pytest.mark.parametrize(
    ("origin", "tree", "marks"),
    [("mine", 0.1, (OWN_COUNT,)), ("mine", 0.0, ()), ("", 0.1, ())],
)
def test_a_strangers_own_count_of_evaluations_is_marked_where_they_cost(
    origin: str, tree: float, marks: tuple[str, ...]
) -> None:
    spec: Any = SimpleNamespace(origin=origin)
    splits: Any = SimpleNamespace(costs=price_list(np.ones(2), tree=tree))
    assert trial._marks(spec, splits, object()) == marks


NO_NAMESPACES = """import bench_core._io.namespaces as n

def refuse(*given, **more):
    raise OSError(1, "not permitted")

n.confine = refuse
"""


def test_where_no_process_can_be_private_a_model_has_another_and_a_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    first, begins, rest = host._START.partition("from ")
    monkeypatch.setattr(host, "_START", f"{first}exec({NO_NAMESPACES!r}); {begins}{rest}")
    monkeypatch.setattr(host, "_impossible", [])
    splits: Any = SimpleNamespace(costs=price_list(np.ones(2)))
    for _ in range(2):
        with hosted(tmp_path, "well") as model:
            assert not model.private
            marks = trial._marks(SimpleNamespace(origin="mine"), splits, model)  # type: ignore[arg-type]
            assert marks == ("odd", NOT_PRIVATE)
        assert capfd.readouterr().err == ""  # the command says so, once
