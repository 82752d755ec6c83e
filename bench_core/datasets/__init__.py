"""Reading, splitting, preparing and finding data sets."""
