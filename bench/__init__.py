"""Benchmarks. `python -m bench` runs all of them and prints one table."""
