"""Faults of installed distributions stay theirs."""

import pytest

from bench_core import UsageError
from bench_core._io.entry_points import EndedError, contained


def test_what_would_end_the_program_is_contained_and_what_is_said_to_users_stays() -> None:
    for error in (SystemExit(3), GeneratorExit()):
        with pytest.raises(EndedError) as ended, contained():
            raise error
        assert ended.value.error is error
    for stays in (UsageError("as it was"), KeyboardInterrupt("as it was")):
        with pytest.raises(type(stays), match="as it was"), contained():
            raise stays
