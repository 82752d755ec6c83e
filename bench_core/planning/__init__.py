"""Plans of runs: suites, learners, data sets, metrics, and content keys."""
