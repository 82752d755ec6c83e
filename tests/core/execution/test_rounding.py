"""How far rounding may move scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench_core.execution.rounding import slack


@pytest.mark.parametrize("scores", [np.zeros(4), np.zeros((2, 3)), np.ones(1)])
def test_there_is_slack_for_any_scores(scores: Any) -> None:
    assert np.isfinite(slack(scores)).all()
