"""The claims of papers, and the verdict that a run gives on each."""
