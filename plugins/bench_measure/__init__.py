"""Measuring what feature extractors cost, as a cost file."""
