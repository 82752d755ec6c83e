"""The built-in plugins: one module or folder for each paper's method and each data-set family.

``staged`` is the model form most learners share, ``boosted`` what the boosted ones share.
"""
