"""Results store: records, writing, reading, export, and choice of operating points."""
