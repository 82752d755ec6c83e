"""Fetching, unpacking and verifying the files of publishers."""
