"""What the frontend's tests share: compiling by the reference target, and comparing with eager."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils._pytree as pytree

import lamina
from lamina.frontend.dynamo import backend


def torch_compile(
    function: Callable[..., Any], fallback: str = "error", freeze: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """torch.compile with the lamina backend and the reference target."""
    options = {"target": "reference", "fallback": fallback, "freeze": freeze}
    return torch.compile(function, backend=functools.partial(backend, options=options), **kwargs)


def compile_and_compare(model: Callable[..., Any], *args: Any, calls: list[tuple] | None = None, **options: Any) -> Any:
    """Compiles ahead of time and compares with eager: results, strides, what is written, and what aliases what.

    Args:
        model: module or function.
        args: example arguments.
        calls: argument tuples to call with; the example ones if None.
        options: of lamina.compile.

    Returns:
        The compiled program.
    """
    eager = copy.deepcopy(model)
    program = lamina.compile(model, copy.deepcopy(args), target="reference", **options)
    for call in calls or [args]:
        mine, theirs = copy.deepcopy(call), copy.deepcopy(call)
        with torch.no_grad():
            expected = eager(*theirs)
        got = program(*mine)
        compare(got, expected)
        compare(mine, theirs)
        assert aliases(got, mine) == aliases(expected, theirs)
        if isinstance(model, torch.nn.Module):
            compare(dict(model.named_buffers()), dict(eager.named_buffers()))
    return program


def compare(got: Any, expected: Any, strides: bool = True, **tolerance: Any) -> None:
    """Asserts that two structures have the same values, dtypes, shapes and strides."""
    got_leaves, got_spec = pytree.tree_flatten(got)
    leaves, spec = pytree.tree_flatten(expected)
    assert got_spec == spec
    for mine, theirs in zip(got_leaves, leaves, strict=True):
        if isinstance(theirs, torch.Tensor):
            torch.testing.assert_close(
                mine, theirs.detach(), equal_nan=True, check_stride=strides and theirs.numel() > 1, **tolerance
            )
        else:
            assert type(mine) is type(theirs) and mine == theirs


def aliases(results: Any, arguments: Any) -> list[list[int]]:
    """For each tensor among the results, the other tensors that share its memory."""
    tensors = [t for t in pytree.tree_leaves((results, arguments)) if isinstance(t, torch.Tensor)]
    memory = [t.untyped_storage().data_ptr() if t.numel() else -k - 1 for k, t in enumerate(tensors)]
    return [[k for k, other in enumerate(memory) if other == mine] for mine in memory]
