"""Model files, recognised by their content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bench_trees.importers import ubjson
from bench_trees.importers.catboost import from_catboost
from bench_trees.importers.imported import Imported, ModelError
from bench_trees.importers.lightgbm import from_lightgbm
from bench_trees.importers.xgboost import from_xgboost

KNOWN = "LightGBM's text, XGBoost's JSON or UBJ, CatBoost's JSON"

_REMEDIES = {
    b"CBM1": "CatBoost's binary form: write it by save_model('model.json', format='json')",
    b"binf": "XGBoost's old binary form: load it and write it by save_model('model.json')",
    b"bs64": "XGBoost's old binary form: load it and write it by save_model('model.json')",
    b"\x80": "a pickle, which may run any program: write it by the library's own save_model",
    b"PK": "an archive, not a model",
}


def read_model(data: bytes) -> Imported:
    """The model in a file's bytes; ModelError in one line where there is none to be read."""
    for start, remedy in _REMEDIES.items():
        if data.startswith(start):
            raise ModelError(f"it is {remedy}")
    if data.lstrip()[:4] == b"tree":
        return from_lightgbm(_text(data).lstrip())
    if ubjson.looks_like(data):
        return _from_document(ubjson.parse(data))
    if data.lstrip()[:1] == b"{":
        return _from_document(_json(data))
    raise ModelError(f"it is none of {KNOWN}")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ModelError("it is not text throughout") from None


def _json(data: bytes) -> Any:
    try:
        return json.loads(_text(data))
    except RecursionError:
        raise ModelError("its JSON is nested too deeply") from None
    except ValueError as error:
        raise ModelError(f"its JSON is broken ({error})") from None


def _from_document(document: Any) -> Imported:
    if isinstance(document, Mapping):
        if "learner" in document:
            return from_xgboost(document)
        if "features_info" in document:
            return from_catboost(document)
        if "tree_info" in document:
            raise ModelError(
                "it is LightGBM's JSON dump: write the text by save_model('model.txt')"
            )
    raise ModelError(f"it is none of {KNOWN}")
