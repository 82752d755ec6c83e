"""The shipped methods: one module or folder for each paper's method, each an entry point."""
