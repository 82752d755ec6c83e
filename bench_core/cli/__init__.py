"""The command line: ``bench VERB``; ``app`` names the module of each verb."""

from bench_core.cli.app import main

__all__ = ["main"]
