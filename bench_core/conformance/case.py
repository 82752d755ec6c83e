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

FIRST = ("check_members", "check_contract", "check_splits", "check_values", "check_bills")
"""Checks without which no other one of the same plugin on the same task means anything."""

_REMEDY = "Remedy:"


class ConformanceError(AssertionError):
    """A plugin breaks a promise; the message says what was seen. ``fix`` takes the place of the
    check's own remedy."""

    def __init__(self, seen: str, fix: str = "") -> None:
        super().__init__(seen)
        self.fix = fix


def checks_of(module: ModuleType) -> list[Check]:
    """The checks that a module defines: its functions ``check_...``, in their order there."""
    return [check for name, check in vars(module).items() if name.startswith("check_")]


def promise_of(check: Check) -> tuple[str, str]:
    """The promise of a check, and its remedy."""
    expected, _, remedy = (check.__doc__ or "").partition(_REMEDY)
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
        except Exception as error:
            expected, remedy = promise_of(self.check)
            fix = getattr(error, "fix", "") or remedy
            seen = f"{self.name}: {one_line(_seen(error))}"
            return f"{seen}\n  expected: {expected}\n  to fix: {fix}"
        return ""

    def __call__(self) -> None:
        """Run it; ConformanceError with those lines where the promise is broken."""
        if fault := self.fault():
            raise ConformanceError(f"{self.subject}: {fault}") from None


def examine(cases: Iterable[Case]) -> Iterator[tuple[Case, str]]:
    """Each case with its fault. Where one of ``FIRST`` fails, the cases after it of the same plugin
    and task are left out."""
    given_up: set[tuple[str, str]] = set()
    for case in cases:
        where = case.subject, case.on
        if where in given_up:
            continue
        fault = case.fault()
        if fault and case.check.__name__ in FIRST:
            given_up.add(where)
        yield case, fault


def run_all(cases: Iterable[Case]) -> None:
    """Run cases; ConformanceError with the lines of each that fails."""
    faults = [fault for _, fault in examine(cases) if fault]
    if faults:
        raise ConformanceError("\n".join(faults))


def _seen(error: Exception) -> str:
    """The error of a check, or of the plugin under it with the place of the fault."""
    if isinstance(error, ConformanceError | ContractError | StateError | BenchError):
        return str(error)
    return fault_of(error) or f"{type(error).__name__}: {error}"
