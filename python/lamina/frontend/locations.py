"""MLIR locations of FX nodes: the user's file and line, the module path and the FX node's name."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import types
from collections.abc import Iterator
from typing import NamedTuple, Optional

import mlir.ir as ir
import torch
import torch.fx

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.*)$')
_LAMINA = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# What the program itself calls while it is captured.
_CALLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "user_kernels.py")
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


class Frame(NamedTuple):
    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@functools.cache
def _is_library(file: str) -> bool:
    path = file.replace(os.sep, "/")
    return "/transformers/" in path or "/site-packages/" in path


@functools.lru_cache(maxsize=4096)
def _user_frame(trace: str) -> Optional[Frame]:
    frames: list[Frame] = []
    for text in trace.splitlines():
        match = _FRAME.match(text)
        if match and match["file"] == _CALLED:
            continue
        if match and match["file"].startswith(_LAMINA):
            frames.clear()  # what called the compiler is not the program
        elif match and not match["file"].startswith((_TORCH, "<")):
            frames.append(Frame(match["file"], int(match["line"]), match["function"]))
    for frame in reversed(frames):
        if not _is_library(frame.file):
            return frame
    return frames[-1] if frames else None


class _Anchors:
    """Says that every frame outside torch is worth recording."""

    def __contains__(self, frame: tuple[str, str]) -> bool:
        return not frame[0].startswith(_TORCH)


@contextlib.contextmanager
def recorded_lines() -> Iterator[None]:
    """Has torch.export record the lines of functions that forward methods call, and not those of the methods alone."""
    import torch.fx.proxy as proxy

    if not hasattr(proxy, "_STACK_TRACE_ANCHORS"):
        yield
        return
    anchors = proxy._STACK_TRACE_ANCHORS
    proxy._STACK_TRACE_ANCHORS = _Anchors()  # type: ignore[assignment]
    try:
        yield
    finally:
        proxy._STACK_TRACE_ANCHORS = anchors


def last_user_frame(trace: Optional[types.TracebackType]) -> Optional[Frame]:
    """The innermost frame of a traceback in the user's own code."""
    found = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith((_TORCH, _LAMINA, "<")) and not _is_library(code.co_filename):
            found = Frame(code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return found


def user_frame(node: torch.fx.Node) -> Optional[Frame]:
    """The innermost frame in the user's own code; if there is none, the innermost outside torch."""
    trace = node.meta.get("stack_trace")
    return _user_frame(trace) if trace else None


def module_path(node: torch.fx.Node) -> str:
    """The innermost nn.Module that the node comes from, such as ``transformer.h.0.mlp``; empty at top level."""
    stack = node.meta.get("nn_module_stack")
    return _plain_path(next(reversed(stack.values()))[0]) if stack else ""


@functools.lru_cache(maxsize=4096)
def _plain_path(path: str) -> str:
    """A module path without Dynamo's ways of writing one."""
    return re.sub(
        r"L\['self'\]\.?|_modules\['([^']+)'\]\.?|^self\.?", lambda m: (m[1] or "") + ("." if m[1] else ""), path
    ).strip(".")


class Locations:
    """Makes the locations of nodes in one context."""

    def __init__(self, context: ir.Context):
        self.context = context
        self._places: dict[tuple[Optional[Frame], str], ir.Location] = {}

    def of(self, node: torch.fx.Node) -> ir.Location:
        """The location of a node: its name, fused with the module path, at the user's line."""
        key = user_frame(node), module_path(node)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._place(*key)
        return ir.Location.name(node.name, place, self.context)

    def _place(self, frame: Optional[Frame], path: str) -> ir.Location:
        unknown = ir.Location.unknown(self.context)
        place = ir.Location.file(frame.file, frame.line, 0, self.context) if frame else unknown
        return ir.Location.name(path, place, self.context) if path else place
