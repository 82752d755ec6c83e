"""Compiled code: bit packing, partition, penalties and traversal."""
