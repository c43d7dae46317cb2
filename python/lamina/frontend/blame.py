"""Whose fault it is that a call of ATen cannot be imported: eager PyTorch's own error is the answer for a wrong program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional, cast

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import unset_fake_temporarily

from .locations import module_path, user_frame


def raise_what_eager_raises(node: torch.fx.Node) -> None:
    """Runs one call of a graph on tensors of its operands' sizes and dtypes; raises what it raises, naming the line.

    FakeTensors check less than the kernels do: not the dtypes of a product, for example. This is for calls that could not be
    imported. What fails for zeros (a divisor) or for ones (an index) alone is no fault of the program.
    """
    if node.op != "call_function":
        return
    error: Optional[Exception] = None
    with unset_fake_temporarily(), torch.no_grad():
        for fill in (1, 0):
            try:
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), functools.partial(_value, fill=fill))
            except Exception:  # sizes that nobody knows
                return
            try:
                cast(Callable[..., Any], node.target)(*args, **kwargs)
                return
            except Exception as raised:
                error = raised
    assert error is not None, "both calls raised"
    place, module = user_frame(node), module_path(node)
    note = f"raised by {node.target} at {place or 'an unknown line'}" + (f", module {module}" if module else "")
    if hasattr(error, "add_note"):  # from Python 3.11
        error.add_note(note)
    error.lamina_note = note  # type: ignore[attr-defined]
    raise error.with_traceback(None)


def eager_note(error: BaseException) -> Optional[str]:
    """Where the program is wrong, if the error is one that eager raises."""
    return getattr(error, "lamina_note", None)


def _value(node: torch.fx.Node, fill: int) -> Any:
    return pytree.tree_map(lambda value: _real(value, fill), node.meta["val"])


def _real(value: Any, fill: int = 0) -> Any:
    if isinstance(value, torch.Tensor):
        sizes, strides = ([int(_real(n)) for n in numbers] for numbers in (value.shape, value.stride()))
        return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device).fill_(fill)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value.node.require_hint()
    return value
