"""The error that users see when a program cannot be compiled."""

from __future__ import annotations

import re
from typing import NamedTuple, Optional


class CompileError(RuntimeError):
    """A program that Lamina cannot compile.

    Attributes:
        message: what is wrong, in one sentence.
        op: the ATen operator, e.g. ``aten.nonzero.default``, or the FX node's name, or None.
        location: ``file:line`` of the user's own code, or None.
        hint: what to do about it, or None.
        module: path of the nn.Module that the operator is in, e.g. ``layers.3.mlp``, or None.
        details: the compiler's own diagnostics, or None.
    """

    def __init__(
        self,
        message: str,
        op: Optional[str] = None,
        location: Optional[str] = None,
        hint: Optional[str] = None,
        module: Optional[str] = None,
        details: Optional[str] = None,
    ):
        self.message = message
        self.op = op
        self.location = location
        self.hint = hint
        self.module = module
        self.details = details
        subject = op if op and op not in message else ""
        if module:
            subject += (" " if subject else "in ") + (f"(module {module})" if subject else f"module {module}")
        text = ": ".join(part for part in (location, subject, message) if part)
        if hint:
            text += f"\n  what to do: {hint}"
        if details:
            text += "\n  diagnostics:" + "".join(f"\n    {line}" for line in details.splitlines())
        super().__init__(text)

    @staticmethod
    def from_diagnostics(diagnostics: str, summary: str) -> CompileError:
        """The error of a pass that failed.

        Args:
            diagnostics: MLIR's, with their locations as MLIR prints them.
            summary: what was being done.
        """
        place = find_place(diagnostics)
        first = _message(diagnostics)
        return CompileError(
            f"{summary}: {first}",
            op=place.op,
            location=place.location,
            hint="This is a limit of Lamina; rewrite the line, or let PyTorch run the program.",
            module=place.module,
            details=diagnostics if diagnostics.strip() != first else None,
        )

    @staticmethod
    def from_source(diagnostics: str) -> CompileError:
        """The error of MLIR text that does not parse or verify, at its place in the text."""
        place = _PLAIN.search(diagnostics)
        location = re.search(r'"([^"]+)":(\d+):(\d+)', place[0]) if place else None
        first = _message(diagnostics)
        return CompileError(
            first,
            location=f"{location[1]}:{location[2]}:{location[3]}" if location else None,
            details=diagnostics if len(diagnostics.splitlines()) > 1 else None,
        )

    @staticmethod
    def from_crash(message: str, phase: str) -> CompilerCrash:
        """The error of a compiler that failed an assertion on the way to a phase."""
        place = find_place(message)
        return CompilerCrash(
            f"the compiler crashed on the way to the phase {phase!r}",
            op=place.op,
            location=place.location,
            hint="This is a bug in Lamina; the program and this message are worth a report.",
            module=place.module,
            details=message,
        )


class CompilerCrash(CompileError):
    """A compiler that failed an assertion, or died; the process that called it lives on."""


class SettingError(ValueError):
    """An environment variable has a value that is not allowed; the message names both, and what is allowed."""


class Place(NamedTuple):
    """Where in the user's program something is: an FX node, the path of its module, and file:line."""

    op: Optional[str] = None
    module: Optional[str] = None
    location: Optional[str] = None


_FILE = r'"(?P<file>[^"]+)":(?P<line>\d+):\d+'
# As frontend/locations.py makes them: the node's name around the module's path, if any, around the line.
_NESTED = re.compile(rf'"(?P<op>[^"]+)"\((?:"(?P<module>[^"]+)"\()?{_FILE}')
_PLAIN = re.compile(rf"loc\((?:fused(?:<[^>]*>)?\[)?{_FILE}")
_SEVERITY = re.compile(r"(?:^|: )error: (.*)")


def find_place(diagnostics: str) -> Place:
    """The first place of the user's program in MLIR's diagnostics."""
    match = _NESTED.search(diagnostics)
    if match:
        return Place(match["op"], match["module"], f"{match['file']}:{match['line']}")
    match = _PLAIN.search(diagnostics)
    return Place(location=f"{match['file']}:{match['line']}") if match else Place()


def _message(diagnostics: str) -> str:
    """The first error's text."""
    for line in diagnostics.splitlines():
        if match := _SEVERITY.search(line):
            return match[1]
    return diagnostics.strip().splitlines()[0] if diagnostics.strip() else "no reason was given"
