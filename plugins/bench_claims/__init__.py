"""The claims of papers, and the verdicts of runs on them."""
