"""The command line in a folder of its own."""

from helpers.cli_fixtures import bench, elsewhere, shell

__all__ = ["bench", "elsewhere", "shell"]
