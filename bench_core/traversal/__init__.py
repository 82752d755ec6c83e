"""Trees walked by 64 rows at once: what the tree engine and exported models both compile.

Arrays in and out: nothing here imports more of the benchmark.
"""
