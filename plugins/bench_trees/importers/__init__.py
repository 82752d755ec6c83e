"""Other libraries' tree models as flat ensembles: plain text, bytes and arrays in, arrays out.

    files.read_model(data)             bytes of a file: any of the formats below, or XGBoost's UBJ
    lightgbm.from_lightgbm(text)       a LightGBM model's text (model_to_string)
    xgboost.from_xgboost(document)     an XGBoost model's JSON, parsed
    catboost.from_catboost(document)   a CatBoost model's JSON, parsed
    scikit.from_scikit(estimator)      a fitted scikit-learn tree, forest or boosting

Files are read by parsers of our own, so no peer need be installed and a broken or hostile file
is one line (``imported.ModelError``), never a crash of foreign code.
"""
