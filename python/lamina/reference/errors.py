"""What the reference interpreter raises."""

from __future__ import annotations


class InterpreterError(Exception):
    """Base of the interpreter's errors.

    Attributes:
        message: what went wrong.
        location: MLIR location of the op, as text; None where no op is to blame.
    """

    def __init__(self, message: str, location: str | None = None) -> None:
        super().__init__(message if location is None else f"{location}: {message}")
        self.message = message
        self.location = location


class ProgramError(InterpreterError):
    """The program did what its op's description calls an error: an index out of range, a division by zero."""


class ArgumentError(InterpreterError):
    """The arrays passed to a function do not fit its arguments' types, sizes or symbol ranges."""


class InvalidModuleError(InterpreterError):
    """The module contradicts itself (a value's shape is not its type's), or holds an op with no rule here."""
