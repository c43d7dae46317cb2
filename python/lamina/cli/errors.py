"""The error of the driver's own checks."""


class UserError(Exception):
    """Something that the user gave is wrong; the message says what, where and what to do."""
