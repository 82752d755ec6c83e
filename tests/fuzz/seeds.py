"""Sound inputs that fuzzing starts from."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from helpers.bad_input_cases import SOUND, SUITE, svm, table

SUITES = Path(__file__).parents[2] / "suites"
SHORT = 2500  # bytes; long files take their time and add nothing

DATASETS = """[clicks]
title = "Clicks"
file = "all.csv"
task = "binary"
label = "clicked"
split = [0.7, 0.15, 0.15]
[more-1]
file = "m.svm"
folds = 5
index_base = 0
task = "ranking"
"""
COSTS = [
    "name,cost\nTSH,22.78\nT 4,14.51\nc,0\n",
    "TSH:1\nT 4:2.5\nc:3\n",
    "1\n2\n3e2\n",
    '{"TSH": 1, "T 4": 2.5, "c": 0}',
    "[1, 2, 3.5]",
    '{"costs": {"TSH": 22.78, "T 4": 14.51}, "shared": [["TSH", "c"]], "derived": {"c": ["TSH"]}, '
    '"discounted": [{"members": ["TSH", "T 4"], "later": [2.5, 1]}], "split": 0.25, "tree": 0, '
    '"unit": "dollars"}',
]
SETTINGS = ["300", "[1, 2]", "{learner = 1}", '{learner = "gbrt", trees = 3}', "gbrt", "none"]
SETTINGS += ["0.1", "2020-01-01", "true", "1e999", "nan", "[[1, 2], [3]]", "'x'", "{trees = 3}"]
SVM = [svm(5, ids=True), "1 1:nan 3:1e-40 # c\n0 2:0x1 3:1e39\n", "0 0:1\n", "-1 1:+.5e1\n\n#\n2\n"]
TABLES = [table(6), "a;b\n1,5;2\n", 'a\tb\n"x\ty"\t1\n', 'a,"b ""c"""\n1,"2"\n,NA\n', "a,b\r1,2\r"]
TABLES += ["a,b\ntrue,1\nfalse,?\n", "a,b\n 1 ,-inf\n1e400,0x1\n", "\ufeffa\n1\n\n2"]


def models() -> list[bytes]:
    """Small models of each library that is there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nansum(X, axis=1)
    found: list[bytes] = []
    try:
        import xgboost
    except ImportError:
        return found
    import lightgbm
    from catboost import CatBoost

    for objective, label, more in (
        ("reg:squarederror", y, {}),
        ("binary:logistic", y > 0, {}),
        ("multi:softprob", np.digitize(y, [-1, 1]), {"num_class": 3}),
    ):
        params = {"max_depth": 2, "nthread": 1, "objective": objective, **more}
        booster = xgboost.train(params, xgboost.DMatrix(X, label), 2)
        found += [bytes(booster.save_raw(form)) for form in ("json", "ubj")]
    for objective, label, more in (("regression", y, {}), ("binary", y > 0, {})):
        params = {"objective": objective, "num_leaves": 4, "verbose": -1, "num_threads": 1, **more}
        made = lightgbm.train(params, lightgbm.Dataset(X, label), 2)
        found.append(made.model_to_string().partition("\nparameters:")[0].encode())
    for loss, label in (("RMSE", y), ("Logloss", y > 0), ("MultiClass", np.digitize(y, [-1, 1]))):
        options = {"loss_function": loss, "iterations": 2, "depth": 2, "verbose": False}
        cat = CatBoost({**options, "thread_count": 1, "allow_writing_files": False})
        cat.fit(X, label.astype(int) if loss != "RMSE" else label)
        path = Path("/tmp") / f"seed-{loss}.json"
        cat.save_model(str(path), format="json")
        found.append(path.read_bytes())
        path.unlink()
    return found


def parquets() -> list[bytes]:
    """Small files, one for each way in which values are stored."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"t": ["red", "blue", None, "red"] * 3, "x": [0.5, None, 2.0, 3.0] * 3}
    more = {"b": [True, None] * 6, "i": [*range(12)], "d": pa.array([b"ab"] * 12, pa.binary(2))}
    table = pa.table({**columns, **more})
    ways: list[dict[str, Any]] = [
        {},
        {"use_dictionary": False, "compression": "none"},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_BYTE_ARRAY"}},
        {"use_dictionary": False, "column_encoding": {"t": "DELTA_LENGTH_BYTE_ARRAY"}},
        {"compression": "zstd", "data_page_version": "2.0", "row_group_size": 5},
        {"compression": "gzip", "version": "1.0", "store_schema": False},
    ]
    notes = table.to_pandas()
    found = [*((table, way) for way in ways), (pa.Table.from_pandas(notes[notes["i"] > 3]), {})]
    files = []
    for one, way in found:
        file = io.BytesIO()
        pq.write_table(one, file, **way)
        files.append(file.getvalue())
    return files


def seeds(target: str) -> list[bytes]:
    """What a target is started with."""
    if target == "suite":
        shipped = [path.read_bytes() for path in sorted(SUITES.glob("*.toml"))]
        return [SUITE.encode(), *(text for text in shipped if len(text) < SHORT)]
    if target == "packed":
        return [gzip.compress(b"1 1:2\n", mtime=0), gzip.compress(b"a" * 999) * 2, b"\x1f\x8b"]
    if target == "model":
        return models()
    if target == "parquet":
        return parquets()
    if target == "ubj":
        short = [
            b"{i\x01aZi\x01b[$d#i\x01\0\0\0\0i\x01c[TFN]}",
            b"[$Z#l\0\0\0\x04",
            b"{$i#i\x01i\x01a\x05",
        ]
        return [*short, *(m for m in models() if m[1:2] in b"iUIlL$#")]
    known = {
        "svm": SVM,
        "table": TABLES,
        "costs": COSTS,
        "datasets": [DATASETS],
        "setting": SETTINGS,
    }
    return [text.encode() for text in known[target]]


__all__ = ["SOUND", "seeds"]
