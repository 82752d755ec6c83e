"""Cost models, bills and cost files: everything that turns purchases into money."""
