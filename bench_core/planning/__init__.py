"""From a request to a plan: suites, learners, data sets, metrics, and content keys."""
