"""Other libraries as learners: what they train is imported and metered like our own trees.

One plugin for each library (``lightgbm``, ``xgboost``, ``catboost``, ``scikit``). None is imported
before a fit; a model's state holds arrays only, so predicting never needs the library (but for
scikit-learn's estimators that are not made of trees).
"""
