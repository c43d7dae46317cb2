"""The error that users see when a program cannot be compiled."""

from __future__ import annotations


class CompileError(RuntimeError):
    """A program that Lamina cannot compile.

    Attributes:
        message: what is wrong, in one sentence.
        op: the ATen operator, e.g. ``aten.nonzero.default``, or None.
        location: ``file:line`` of the user's own code, or None.
        hint: what to do about it, or None.
    """

    def __init__(self, message: str, op: str | None = None, location: str | None = None, hint: str | None = None):
        self.message = message
        self.op = op
        self.location = location
        self.hint = hint
        text = message
        if op and op not in message:
            text += f"\n  op: {op}"
        if location:
            text += f"\n  at: {location}"
        if hint:
            text += f"\n  {hint}"
        super().__init__(text)
