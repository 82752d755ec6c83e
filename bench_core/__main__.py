"""``python -m bench_core`` is the ``bench`` command."""

from bench_core.cli import main

if __name__ == "__main__":
    main()
