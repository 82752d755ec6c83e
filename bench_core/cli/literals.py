"""Parameters as they are typed: TOML literals and whole commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.cli.options import STORE

if TYPE_CHECKING:
    from bench_core.plugins import Registry

_FLAGS = {
    "suite": "--suite",
    "data": "--data",
    "valid": "--valid",
    "test": "--test",
    "label": "--label",
    "query": "--query",
    "split": "--split",
    "task": "--task",
    "metrics": "--metric",
    "costs": "--costs",
    "profile": "--profile",
    "data_dir": "--data-dir",
    "plugins": "--plugin",
}


def toml_literal(value: Any) -> str:
    """A parameter's value as ``--set`` and suites spell it; no value is the word none."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{key} = {toml_literal(v)}" for key, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(toml_literal, value))}]"
    return str(value)


def run_command(
    request: Mapping[str, Any],
    dataset: str,
    learner: str,
    params: Mapping[str, Any],
    registry: Registry,
    store: Path,
) -> str:
    """The command that trains one learner at one setting on one data set of an earlier run."""
    words = ["bench", "run"]
    asked = dict(request)
    if asked.get("suite") and dataset:
        asked["data"] = (dataset.partition("(")[0],)  # options stand behind the name in results
    for field, flag in _FLAGS.items():
        value = asked.get(field)
        if value:
            words += [flag, ",".join(map(str, value)) if not isinstance(value, str) else value]
    if asked.get("index_base", 1) != 1:
        words += ["--index-base", str(asked["index_base"])]
    for field in ("seeds", "folds"):
        if asked.get(field):
            words += [f"--{field}", ",".join(map(str, asked[field]))]
    words += ["--learners", learner]
    for setting in asked.get("settings", ()):
        if setting.partition(".")[0].strip() in registry.datasets:
            words += ["--set", setting]
    given = _given(asked, learner, registry)
    for name, value in params.items():
        if name in given or not _is_default(learner, name, value, registry):
            words += ["--set", f"{learner}.{name}={toml_literal(value)}"]
    words += ["--store", str(store)] if store != STORE else []
    return shlex.join(words)


def _given(request: Mapping[str, Any], learner: str, registry: Registry) -> set[str]:
    """The parameters that the suite sets, and which a command must therefore set again."""
    from bench_core.planning.suites import find_suite

    if not request.get("suite"):
        return set()
    suite = find_suite(request["suite"], registry)
    tables = [suite.learners, *(profile.learners for profile in suite.profiles.values())]
    return {name for table in tables for name in table.get(learner, {})}


def _is_default(learner: str, name: str, value: Any, registry: Registry) -> bool:
    """Whether leaving the parameter out means the same; no for a learner not installed here."""
    from bench_core.parameters import as_json

    try:
        return bool(as_json(registry.learners[learner]())[name] == value)
    except (KeyError, TypeError, ValueError):  # unknown, or something has no default
        return False
