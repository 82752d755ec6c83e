"""Helpers shared by several test modules: toys, fakes, cases and references."""
