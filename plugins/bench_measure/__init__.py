"""Measuring the costs of feature extractors, as a cost file."""
