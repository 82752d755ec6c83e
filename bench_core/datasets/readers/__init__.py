"""Readers of data and cost files, and the prepared-data cache."""
