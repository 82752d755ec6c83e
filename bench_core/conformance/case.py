"""A check of one plugin, with what it expects and how to fix what breaks it.

A check is a function that returns where the plugin keeps a promise and raises where it does not.
The first part of its docstring is the promise, the paragraph that begins with "Remedy:" says how to
fix a plugin that breaks it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bench_core.errors import BenchError, one_line
from bench_core.execution.contract import ContractError
from bench_core.execution.failures import fault_of
from bench_core.results.store_files import StateError

Check = Callable[..., None]

# without these no other check of the same plugin on the same task means anything
FIRST = ("check_members", "check_contract", "check_splits", "check_values", "check_bills")


class ConformanceError(AssertionError):
    """A plugin breaks a promise; the message says what was seen."""


def expect(holds: Any, seen: str) -> None:
    """Raise ConformanceError with what was seen, unless the promise holds."""
    if not holds:
        raise ConformanceError(seen)


def checks_of(module: ModuleType) -> list[Check]:
    """The checks that a module defines: its functions ``check_...``, in their order there."""
    return [check for name, check in vars(module).items() if name.startswith("check_")]


def promise_of(check: Check) -> tuple[str, str]:
    """The promise of a check, and its remedy."""
    expected, _, remedy = (check.__doc__ or "").partition("Remedy:")
    return one_line(expected), one_line(remedy)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A check with the plugin and what else it is given; ``on`` names the task, if there is one."""

    subject: str
    check: Check
    arguments: tuple[Any, ...]
    on: str = ""

    @property
    def name(self) -> str:
        """As ``check_state (binary)``."""
        return f"{self.check.__name__} ({self.on})" if self.on else self.check.__name__

    def fault(self) -> str:
        """Three lines: what was seen, what was expected, how to fix it; "" where it holds."""
        try:
            self.check(*self.arguments)
        except (ConformanceError, ContractError, StateError, BenchError) as error:
            seen = str(error)
        except Exception as error:  # of the plugin: with the place of the fault
            seen = fault_of(error) or f"{type(error).__name__}: {error}"
        else:
            return ""
        expected, remedy = promise_of(self.check)
        return f"{self.name}: {one_line(seen)}\n  expected: {expected}\n  to fix: {remedy}"

    def __call__(self) -> None:
        """Run it; ConformanceError with those lines where the promise is broken."""
        if fault := self.fault():
            raise ConformanceError(f"{self.subject}: {fault}")


def examine(cases: Iterable[Case]) -> Iterator[tuple[Case, str]]:
    """Each case with its fault. Where one of ``FIRST`` fails, the cases after it of the same plugin
    and task are left out."""
    # plugin and task
    given_up: set[tuple[str, str]] = set()
    for case in cases:
        if (case.subject, case.on) not in given_up:
            fault = case.fault()
            if fault and case.check.__name__ in FIRST:
                given_up.add((case.subject, case.on))
            yield case, fault


def run_all(cases: Iterable[Case]) -> None:
    """Run cases; ConformanceError with the lines of each that fails."""
    if faults := [fault for _, fault in examine(cases) if fault]:
        raise ConformanceError("\n".join(faults))
