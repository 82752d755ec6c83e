"""Other libraries' tree models as flat ensembles: plain text, bytes and arrays in, arrays out.

    read_model(data)          bytes of a file: LightGBM text, XGBoost JSON or UBJ, CatBoost JSON
    from_lightgbm(text)       a LightGBM model's text (model_to_string)
    from_xgboost(document)    an XGBoost model's JSON, parsed
    from_catboost(document)   a CatBoost model's JSON, parsed
    from_scikit(estimator)    a fitted scikit-learn tree, forest or boosting

Files are read by parsers of our own, so no peer need be installed and a broken or hostile file
is one line (``ModelError``), never a crash of foreign code.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Imported": "imported",
    "ModelError": "imported",
    "from_catboost": "catboost",
    "from_lightgbm": "lightgbm",
    "from_scikit": "scikit",
    "from_xgboost": "xgboost",
    "read_model": "files",
}

__all__ = [
    "Imported",
    "ModelError",
    "from_catboost",
    "from_lightgbm",
    "from_scikit",
    "from_xgboost",
    "read_model",
]

if TYPE_CHECKING:
    from bench_trees.importers.catboost import from_catboost
    from bench_trees.importers.files import read_model
    from bench_trees.importers.imported import Imported, ModelError
    from bench_trees.importers.lightgbm import from_lightgbm
    from bench_trees.importers.scikit import from_scikit
    from bench_trees.importers.xgboost import from_xgboost


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bench_trees.importers' has no attribute {name!r}")
    return getattr(import_module(f"bench_trees.importers.{_HOMES[name]}"), name)
