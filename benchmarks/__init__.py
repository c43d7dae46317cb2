"""Benchmarks of Lamina beside its peers; `python -m benchmarks --help`."""
