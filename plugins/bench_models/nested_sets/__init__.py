"""Nested sets of features: an order of purchases, and a booster on each set.

    subsets     boosted trees on any subset of the features, binned once
    held_out    one division of the rows, fits on held-out rows, one early stopping
    purchases   what can be bought next, and which features are readable then
    routes      boosters on nested sets as a fitted model, with exits between them

A row of multiplicity m is divided and weighted like m rows.
"""
