"""Puts this folder on the path, so that tests can import its shared modules."""


def pytest_make_parametrize_id(config, val, argname):
    """Functions and data structures are told apart by number: their text holds addresses, which differ between workers."""
    return None if isinstance(val, str | int | float | bool) or not callable(val) and "0x" not in repr(val) else argname
