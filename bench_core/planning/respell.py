"""Learners' names as the registry spells them, wherever a request or a suite names one.

``package:name`` tells learners of one name apart; where one package alone has it, the name does.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench_core.errors import blaming
from bench_core.planning.request import RunRequest
from bench_core.planning.suites import Suite
from bench_core.plugins import Registry


def respelt(request: RunRequest, suite: Suite, registry: Registry) -> tuple[RunRequest, Suite]:
    """Both with registered spellings. UsageError for a name that several packages have, begun by
    where it stands; a name that nobody has is left as it is."""

    def names(given: Any) -> tuple[Any, ...]:
        return tuple(registry.learner_name(x) if isinstance(x, str) else x for x in given)

    def keys(tables: Mapping[str, Any]) -> dict[str, Any]:
        return dict(zip(names(tables), tables.values(), strict=True))

    with blaming("--learners"):
        request = replace(request, learners=names(request.learners))
    with blaming("--reference"):
        request = replace(request, reference=registry.learner_name(request.reference))
    if not suite.place:
        return request, suite
    with blaming(suite.place):
        return request, replace(
            suite,
            learners=keys(suite.learners),
            baselines=names(suite.baselines),
            reference=registry.learner_name(suite.reference),
            on={name: keys(tables) for name, tables in suite.on.items()},
            profiles={
                name: replace(profile, learners=keys(profile.learners))
                for name, profile in suite.profiles.items()
            },
        )
