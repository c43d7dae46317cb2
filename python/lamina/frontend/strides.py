"""The strides that eager PyTorch gives to a graph's tensors, where its FakeTensors say others.

Views of FakeTensors are computed by code of their own, which may give a dimension of size 1 another stride than eager does;
the strides of all other dimensions agree. Such a dimension's stride says nothing about memory, but a program may still
read it, and an operator may hand it on to its result. PyTorch promises nothing of it: an elementwise operator of a tensor
that is contiguous but for such a stride gives another one on each device, and there the FakeTensor's is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Optional, cast

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch._subclasses import FakeTensorMode

from lamina.logging import get_logger

log = get_logger("frontend")

Strides = tuple[Any, ...]


class EagerStrides:
    """Eager's strides of the tensors of one graph, found on the first question in one walk over the nodes.

    Views are taken anew of meta tensors, which have eager's strides; other operators run anew only where an operand's strides
    were not the FakeTensor's. Tensors whose sizes are not all known keep the strides of their FakeTensors.

    Args:
        graph: of ATen calls; every node has a FakeTensor in ``meta["val"]``.
    """

    def __init__(self, graph: torch.fx.Graph):
        self._graph = graph
        self._corrected: Optional[dict[torch.fx.Node, Strides]] = None

    def of(self, node: torch.fx.Node, captured: Optional[Sequence[Any]] = None) -> Strides:
        """The strides of a node that is a strided tensor.

        Args:
            node: the node.
            captured: the strides that it had before decompositions, which may have changed its layout.
        """
        fake = node.meta["val"]
        said = tuple(fake.stride() if captured is None else captured)
        if not _may_differ(fake):
            return said
        if self._corrected is None:
            self._corrected = self._walk()
        found = self._corrected.get(node)
        return found if found is not None and _same_memory(fake.shape, found, said) else said

    def _walk(self) -> dict[torch.fx.Node, Strides]:
        corrected: dict[torch.fx.Node, Strides] = {}
        for node in self._graph.nodes:
            fake, op = node.meta.get("val"), node.target
            if node.op != "call_function" or not isinstance(op, torch._ops.OpOverload) or not _may_differ(fake):
                continue
            is_view = op.is_view or op is torch.ops.aten._unsafe_view.default
            if not is_view and not any(source in corrected for source in node.all_input_nodes):
                continue
            try:
                found = _strides_of_call(node, corrected, on_meta=is_view)
            except Exception as error:  # an operator that needs values
                log.debug("the strides of %s are taken from its FakeTensor: %s", node, error)
                continue
            if found != tuple(fake.stride()) and _same_memory(fake.shape, found, fake.stride()):
                corrected[node] = found
        return corrected


def _may_differ(fake: Any) -> bool:
    """Whether a value is a tensor of known sizes, one of which is 1."""
    return (
        isinstance(fake, torch.Tensor)
        and fake.layout is torch.strided
        and 1 in [size for size in fake.shape if type(size) is int]
        and all(type(number) is int for number in (*fake.shape, *fake.stride()))
    )


def _same_memory(sizes: Sequence[int], a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two strides differ in dimensions of size 1 alone."""
    return len(a) == len(b) and all(size == 1 or s == t for size, s, t in zip(sizes, a, b))


def _strides_of_call(node: torch.fx.Node, corrected: dict[torch.fx.Node, Strides], on_meta: bool) -> Strides:
    """The strides of what a call gives for operands of eager's strides, on the device meta or as FakeTensors.

    Convolutions, and what else has a layout of the device's own, have eager's as FakeTensors alone.
    """

    def convert(fake: torch.Tensor, strides: Optional[Strides] = None) -> torch.Tensor:
        sizes, old = ([int(n) for n in numbers] for numbers in (fake.shape, fake.stride()))
        return torch.empty_strided(sizes, strides or old, dtype=fake.dtype, device="meta" if on_meta else fake.device)

    def operand(source: torch.fx.Node) -> Any:
        value = source.meta["val"]
        if isinstance(value, torch.Tensor):
            return convert(value, corrected.get(source))
        return pytree.tree_map_only(torch.Tensor, convert, value)

    # Python's dispatcher, which is on while AOTAutograd compiles, would take the views of meta tensors as of FakeTensors.
    with torch._C._DisablePythonDispatcher(), contextlib.nullcontext() if on_meta else FakeTensorMode():
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), operand)
        return cast(Callable[..., torch.Tensor], node.target)(*args, **kwargs).stride()
