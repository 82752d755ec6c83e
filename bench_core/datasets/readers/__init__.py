"""Readers of data files; whole files as bytes or text, plain or packed."""

from bench_core._io.text import read_beginning, read_bytes, read_text

__all__ = ["read_beginning", "read_bytes", "read_text"]
