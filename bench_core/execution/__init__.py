"""Execution of jobs, in this process or in workers that can be killed."""
