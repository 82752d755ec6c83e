"""Cost models, bills and cost files."""
