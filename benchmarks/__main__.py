"""`python -m benchmarks`."""

from .run import main

main(prog_name="python -m benchmarks")
