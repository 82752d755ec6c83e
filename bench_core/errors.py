"""Errors that a user can mend: one line saying what, where and what to do."""


class BenchError(Exception):
    """Base of every error the command line shows as one line, with exit status 2."""


class InputError(BenchError):
    """Unusable input: the message names the file (and line), the fault and the remedy."""


class UsageError(BenchError):
    """An unknown name, a wrong parameter or a contradiction between options."""
