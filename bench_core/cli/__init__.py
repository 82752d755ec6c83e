"""The command line: ``bench VERB``; ``app`` names the module of each verb.

Nothing else lives here: the module of a verb (``list``, ``plan``) becomes a name of this package.
"""

from bench_core.cli.app import main

__all__ = ["main"]
