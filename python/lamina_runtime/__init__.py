"""What a compiled program needs to run: pure Python on top of torch, with no compiler."""

__version__ = "0.1.0"
