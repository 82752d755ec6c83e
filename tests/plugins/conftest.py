"""Fixtures of the tests of learners."""

from __future__ import annotations

import pytest
from fakes import FakeContext


@pytest.fixture
def make_context() -> type[FakeContext]:
    """``make_context(Task.BINARY, classes=2)``: a fit context in memory."""
    return FakeContext
