"""Calls that address the storage of a tensor instead of its elements: as_strided.

A prim value has no storage, so such a call is imported only where the storage is known to hold just the elements of a
dense tensor from its start; PyTorch runs all others, on tensors that lie as in eager.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Optional

import sympy
import torch
import torch.fx

from lamina.errors import CompileError

from .importer import REASON, WHOLE
from .locations import module_path, user_frame
from .results import layout
from .sizes import Size, product, to_sizes

aten = torch.ops.aten

_SCATTERS = (torch.ops.prims.as_strided_scatter.default, aten.as_strided_scatter.default)


def resolve_storage(graph_module: torch.fx.GraphModule) -> None:
    """Makes each as_strided one of a contiguous tensor that fills its storage, or notes why that cannot be done.

    Raises:
        CompileError: a write to elements that are none of the tensor's, which a functional graph loses.
    """
    for node in list(graph_module.graph.nodes):
        if node.op != "call_function" or REASON in node.meta:
            continue
        if node.target is aten.as_strided.default:
            node.meta[REASON] = _resolve(node)
        elif node.target in _SCATTERS:
            _check_write(node)


def _resolve(node: torch.fx.Node) -> Optional[str]:
    base, size, stride, offset = _arguments(node)
    root = _root(base)
    fake, view = root.meta["val"], base.meta["val"]
    if fake.dtype is not view.dtype:
        return "the storage holds elements of another dtype"
    if fake.storage_offset() != 0:
        return "the tensor does not start where its storage does"
    order, dense = layout(fake.shape, fake.stride())
    if not dense:
        return "the tensor's memory is not dense"
    start = view.storage_offset() if offset is None else offset
    if isinstance(start, torch.SymInt):
        return "the tensor starts at a place that is not constant"
    first, *rest = to_sizes(torch.fx.node.map_arg([start, *size, *stride], lambda n: n.meta["val"]))
    if not _within(first, rest[: len(size)], rest[len(size) :], product(to_sizes(fake.shape))):
        return "it may read memory beyond the tensor's elements"
    if root.op == "placeholder" and offset is not None:
        root.meta[WHOLE] = True
    if order != tuple(range(len(order))):
        with node.graph.inserting_before(node):
            ordered = node.graph.call_function(aten.permute.default, (root, list(order)))
        ordered.meta = {**node.meta, "val": fake.permute(order)}
        root = ordered
    node.args, node.kwargs = (root, size, stride, start), {}
    return None


def _arguments(node: torch.fx.Node) -> tuple[torch.fx.Node, Any, Any, Any]:
    values: dict[str, Any] = {**dict(zip(("self", "size", "stride", "storage_offset"), node.args)), **node.kwargs}
    return values["self"], values["size"], values["stride"], values.get("storage_offset")


def _root(node: torch.fx.Node) -> torch.fx.Node:
    """The tensor whose storage a node shares by views alone."""
    while node.op == "call_function":
        target = node.target
        if target is operator.getitem:
            target = node.args[0].target  # type: ignore[union-attr]
            source = node.args[0].args[0]  # type: ignore[union-attr]
        else:
            source = node.args[0] if node.args else None
        if not isinstance(target, torch._ops.OpOverload) or not target.is_view or not isinstance(source, torch.fx.Node):
            break
        node = source
    return node


def _within(first: Size, sizes: Sequence[Size], strides: Sequence[Size], count: Size) -> bool:
    """Whether all elements that are addressed are known to be among the first `count`."""
    if 0 in sizes:
        return True
    last: Any = first
    for size, stride in zip(sizes, strides):
        last = last + (size - 1) * stride
    room = sympy.expand(sympy.sympify(count - 1 - last))
    return bool(room.is_number and room >= 0)


def _check_write(node: torch.fx.Node) -> None:
    """Writes beyond the elements of a tensor are lost, as the graph returns these alone."""
    fake = node.args[0].meta["val"]  # type: ignore[union-attr]
    arguments: Any = node.args
    size, stride, offset = list(arguments[2]), list(arguments[3]), arguments[4]
    numbers = [*size, *stride, offset, *fake.shape, *fake.stride(), fake.storage_offset()]
    if all(isinstance(number, int) for number in numbers):
        extent = 1 + max(
            offset + sum((n - 1) * step for n, step in zip(size, stride)),
            fake.storage_offset() + sum((n - 1) * step for n, step in zip(fake.shape, fake.stride())),
        )
        own = torch.zeros(max(extent, 1), dtype=torch.bool)
        own.as_strided(fake.shape, fake.stride(), fake.storage_offset()).fill_(True)
        inside = 0 in size or bool(own.as_strided(size, stride, offset).all())
    else:
        inside = layout(fake.shape, fake.stride())[1] and fake.storage_offset() == 0
    if not inside:
        place = user_frame(node)
        raise CompileError(
            f"{node.target} writes to memory that is not the tensor's own",
            op=str(node.target),
            location=str(place) if place else None,
            hint="write to the tensor of which this one is a view.",
            module=module_path(node) or None,
        )
