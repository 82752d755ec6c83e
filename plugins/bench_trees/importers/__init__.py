"""Other libraries' tree models as flat ensembles: plain text, bytes and arrays in, arrays out.

    read_model(data)         bytes of a file: any of the formats below, or XGBoost's UBJ
    from_lightgbm(text)      a LightGBM model's text (model_to_string)
    from_xgboost(document)   an XGBoost model's JSON, parsed
    from_catboost(document)  a CatBoost model's JSON, parsed
    from_scikit(estimator)   a fitted scikit-learn tree, forest or boosting

Files are read by our own parsers. No peer need be installed. A broken or hostile file raises a
one-line ``ModelError`` and never crashes foreign code.
"""

from bench_trees.importers.catboost import from_catboost
from bench_trees.importers.files import read_model
from bench_trees.importers.imported import Imported, ModelError
from bench_trees.importers.lightgbm import from_lightgbm
from bench_trees.importers.scikit import from_scikit
from bench_trees.importers.xgboost import from_xgboost

__all__ = [
    "Imported",
    "ModelError",
    "from_catboost",
    "from_lightgbm",
    "from_scikit",
    "from_xgboost",
    "read_model",
]
