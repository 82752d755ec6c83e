from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bench_core.pytest_plugin import MARK, pytest_generate_tests


def generated(*names: str, **options: Any) -> tuple[list[Any], list[str]]:
    """The values and ids of ``promise`` for a test with that marker, or without one."""
    mark = getattr(pytest.mark, MARK)(*names, **options).mark if names else None
    found: list[Any] = []
    test: Any = SimpleNamespace(
        fixturenames=["promise"],
        definition=SimpleNamespace(nodeid="test_it", get_closest_marker={MARK: mark}.get),
        parametrize=lambda name, cases, ids: found.extend((cases, ids)),
    )
    pytest_generate_tests(test)
    cases, ids = found
    return cases, ids


def test_the_fixture_gives_a_test_for_each_promise() -> None:
    cases, ids = generated("csv")
    assert ids == [f"report csv: check_{what}" for what in ("members", "written", "frame")]
    for promise in cases:
        promise()


def test_settings_are_those_of_the_command() -> None:
    cases, _ = generated("per-query", settings=['per-query.per_query=["2"]'])
    assert cases[0].arguments[0].name == "per-query"


def test_a_test_without_the_marker_and_an_unknown_name_are_refused_in_one_line() -> None:
    with pytest.raises(pytest.UsageError, match=r"write @pytest\.mark\.bench_check"):
        generated()
    with pytest.raises(pytest.UsageError, match="nothere"):
        generated("nothere")
