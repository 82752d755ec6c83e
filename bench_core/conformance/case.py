"""Checks of one plugin, with the expected behaviour and the remedy.

A check is a function that raises if the plugin breaks a promise. The first part of its docstring is
the promise. The paragraph that begins with "Remedy:" explains how to fix the plugin.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bench_core.errors import BenchError, one_line
from bench_core.execution.contract import ContractError, fault_of
from bench_core.results.store_files import StateError

Check = Callable[..., None]

# if one of these fails, other checks of the same plugin and task are meaningless
FIRST = ("check_members", "check_contract", "check_splits", "check_values", "check_bills")


class ConformanceError(AssertionError):
    """A plugin breaks a promise; the message describes the observed behaviour."""


def expect(holds: Any, seen: str) -> None:
    """Raise ConformanceError with the observation ``seen`` unless the promise ``holds``."""
    if not holds:
        raise ConformanceError(seen)


def checks_of(module: ModuleType) -> list[Check]:
    """Return the checks defined in a module, its functions ``check_...``, in order."""
    return [check for name, check in vars(module).items() if name.startswith("check_")]


def promise_of(check: Check) -> tuple[str, str]:
    """Return the promise of a check, and its remedy."""
    expected, _, remedy = (check.__doc__ or "").partition("Remedy:")
    return one_line(expected), one_line(remedy)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A check with the plugin and other arguments; ``on`` names the task, if any."""

    subject: str
    check: Check
    arguments: tuple[Any, ...]
    on: str = ""

    @property
    def name(self) -> str:
        """Name such as ``check_state (binary)``."""
        return f"{self.check.__name__} ({self.on})" if self.on else self.check.__name__

    def __str__(self) -> str:
        """Name with the plugin, for ids of tests."""
        return f"{self.subject.partition(' (')[0]}: {self.name}"

    def fault(self) -> str:
        """Return three lines (observed, expected, remedy), or "" if the check passes."""
        try:
            self.check(*self.arguments)
        except (ConformanceError, ContractError, StateError, BenchError) as error:
            seen = str(error)
        except Exception as error:  # raised by the plugin: add its location
            seen = fault_of(error) or f"{type(error).__name__}: {error}"
        else:
            return ""
        expected, remedy = promise_of(self.check)
        return f"{self.name}: {one_line(seen)}\n  expected: {expected}\n  to fix: {remedy}"

    def __call__(self) -> None:
        """Run the check; raise ConformanceError with these lines if it fails."""
        if fault := self.fault():
            raise ConformanceError(f"{self.subject}: {fault}")


def examine(cases: Iterable[Case]) -> Iterator[tuple[Case, str]]:
    """Yield each case with its fault. If one of ``FIRST`` fails, later cases on that plugin and
    task are skipped."""
    # plugin and task
    given_up: set[tuple[str, str]] = set()
    for case in cases:
        if (case.subject, case.on) not in given_up:
            fault = case.fault()
            if fault and case.check.__name__ in FIRST:
                given_up.add((case.subject, case.on))
            yield case, fault


def run_all(cases: Iterable[Case]) -> None:
    """Run cases; raise ConformanceError with the lines of all that fail."""
    if faults := [fault for _, fault in examine(cases) if fault]:
        raise ConformanceError("\n".join(faults))
