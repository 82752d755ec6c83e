"""A table of calls of two services: each row's prices stand in two columns."""

import numpy as np
import pandas as pd

N = 300
COSTS = {
    "costs": {
        "big": {"column": "big_price", "features": ["big_*"], "requires": ["small"]},
        "small": {"column": "small_price", "features": ["small_*"], "when": "quoted"},
        "words": 0,
        "age": 2,
    },
    "unit": "USD",
}


def table(changes=()):
    rng = np.random.default_rng(0)
    answer = rng.choice(list("ABC"), N)
    frame = pd.DataFrame({
        "words": rng.integers(1, 40, N), "age": rng.random(N).round(3),
        "small_answer": np.where(rng.random(N) < 0.6, answer, "A"),
        "small_price": rng.random(N).round(4),
        "big_answer": answer, "big_sure": rng.random(N).round(3),
        "big_price": (10 * rng.random(N)).round(4), "label": answer,
        "split": np.array(["train", "valid", "test"])[np.arange(N) // 100],
    })  # fmt: skip
    for column, row, value in changes:
        frame[column] = frame[column].astype(object)
        frame.loc[row, column] = value
    return frame
