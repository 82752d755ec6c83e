"""The command line in a folder of its own."""

from helpers.cli_fixtures import bench, elsewhere, material, shell

__all__ = ["bench", "elsewhere", "material", "shell"]
