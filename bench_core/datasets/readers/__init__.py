"""Readers of data files, plain or packed."""

from bench_core._io.text import read_beginning, read_bytes, read_text

__all__ = ["read_beginning", "read_bytes", "read_text"]
