"""Puts this folder on the path, so that tests can import its shared modules."""
