"""Every hook is documented and used; every registered thing keeps its contract."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from helpers.guide import GUIDE

from bench_core import UsageError, hookspecs
from bench_core.plugins import Registry, load_registry


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_registry()


def hooks() -> list[str]:
    return [n for n in vars(hookspecs) if n.startswith("bench_")]


@pytest.mark.parametrize("hook", hooks())
def test_every_hook_has_a_line_of_documentation(hook: str) -> None:
    doc = inspect.getdoc(getattr(hookspecs, hook))
    assert doc
    assert "\n" not in doc


@pytest.mark.parametrize("hook", hooks())
def test_every_hook_is_in_the_guide(hook: str) -> None:
    assert hook in GUIDE.read_text(encoding="utf-8")


def test_every_built_in_plugin_loads(registry: Registry) -> None:
    assert [(p.name, p.error) for p in registry.plugins if p.error] == []


def test_the_first_learners_data_sets_and_suites_are_there(registry: Registry) -> None:
    assert {"gbrt", "miser", "cegb", "cronus", "cronus-init", "cronus-single"} <= set(
        registry.learners
    )
    assert {"yahoo", "yahoo-sim", "letters", "forest", "thyroid", "breast-cancer", "digits"} <= set(
        registry.datasets
    )
    assert {"quickstart", "yahoo", "letters", "forest", "thyroid"} <= set(registry.suite_files)
    assert {"ndcg@5", "precision@5", "accuracy", "mse"} <= set(registry.metrics)


def test_every_learner_documents_every_parameter(registry: Registry) -> None:
    missing = [
        f"{name}.{field.name}"
        for name, learner in registry.learners.items()
        for field in dataclasses.fields(learner)  # type: ignore[arg-type]
        if not field.metadata.get("doc")
    ]
    assert missing == []


def test_an_unknown_name_suggests_the_nearest(registry: Registry) -> None:
    with pytest.raises(UsageError, match="unknown learner 'misre': did you mean miser"):
        registry.learner("misre")


def test_a_module_that_does_not_import_says_what_to_give() -> None:
    with pytest.raises(UsageError, match="-p no_such_module: cannot load it"):
        load_registry(["no_such_module"])
