"""The shipped data sets: one module or folder for each family, each an entry point."""
