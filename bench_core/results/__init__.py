"""The store of results: records, writing, reading, export, and the choice of operating points."""
