"""Running jobs: inline in this process, or in workers that can be killed."""
