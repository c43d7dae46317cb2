"""Which results a graph's outputs need: what is computed, what is an alias, and the memory order that eager gives each."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union, cast

import sympy
import torch
import torch.fx
import torch.utils._pytree as pytree
from torch.utils._sympy.functions import Max

from .importer import physical_order
from .program import Result, Returned, ViewStep
from .sizes import Size, is_unbacked, to_size, to_sizes
from .strides import EagerStrides

Place = tuple[str, Union[int, str]]
"""A tensor that exists before the call: ("input", leaf) or ("tensor", key)."""


class ResultPlan:
    """Collects the results that the imported function must return.

    Args:
        places: placeholders by name, with the tensor that each is.
        written: placeholders by name that the program writes to; their old value is aliased by nothing.

    Attributes:
        results: what to allocate, in order.
        nodes: the node of each result, with its physical order of dimensions.
        mutated: nodes that are the new value of a tensor.
    """

    def __init__(self, places: Mapping[str, Place], written: frozenset[str] = frozenset()):
        self.places = places
        self.written = written
        self.mutated: dict[torch.fx.Node, Place] = {}
        self.results: list[Result] = []
        self.nodes: list[tuple[torch.fx.Node, tuple[int, ...]]] = []
        self._numbers: dict[torch.fx.Node, int] = {}
        self._strides: Optional[EagerStrides] = None

    def result(self, node: torch.fx.Node, strides: Optional[Sequence[Any]] = None) -> int:
        """The number of the function's result that is this node's value, in memory of eager's strides."""
        if node not in self._numbers:
            fake = node.meta["val"]
            self._numbers[node] = len(self.results)
            if isinstance(fake, torch.Tensor) and fake.layout is torch.strided:
                strides = self._eager_strides(node, strides)
                permutation, dense = layout(fake.shape, strides)
                self.results.append(Result(to_sizes(fake.shape), to_sizes(strides), fake.dtype, permutation, dense))
            else:
                permutation = ()
                self.results.append(Result((), (), None, ()))
            self.nodes.append((node, permutation))
        return self._numbers[node]

    def _eager_strides(self, node: torch.fx.Node, captured: Optional[Sequence[Any]]) -> tuple[Any, ...]:
        if self._strides is None:
            self._strides = EagerStrides(node.graph)
        return self._strides.of(node, captured)

    def returned(self, node: Any, strides: Optional[Sequence[Any]] = None) -> Returned:
        """How a tensor, size or plain value gets to the user."""
        if not isinstance(node, torch.fx.Node):
            return Returned("value", value=node)
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
            size = to_size(value)
            if is_unbacked(size):
                return Returned("result", self.result(node))
            return Returned("size", value=size)
        if not isinstance(value, torch.Tensor):
            return Returned("value", value=value)
        place, steps = self._origin(node)
        if place is not None:
            kind, where = place
            if kind == "input":
                return Returned("input", int(where), views=steps)
            return Returned("tensor", key=str(where), views=steps)
        return Returned("result", self.result(node, strides))

    def _origin(self, node: torch.fx.Node) -> tuple[Optional[Place], tuple[ViewStep, ...]]:
        """The tensor that existed before the call, or is written by it, of which the node is a view, and the views."""
        steps: list[ViewStep] = []
        while True:
            if node in self.mutated:
                return self.mutated[node], tuple(reversed(steps))
            if node.op == "placeholder" or node.name in self.places:
                place = None if node.name in self.written else self.places.get(node.name)
                return place, tuple(reversed(steps))
            step = _view_step(node)
            if step is None:
                return None, ()
            node = step[0]
            steps.append(step[1])


def layout(sizes: Sequence[Any], strides: Sequence[Any]) -> tuple[tuple[int, ...], bool]:
    """The physical order of dimensions, and whether the strides are those of a dense tensor in that order."""
    order = physical_order(sizes, strides)
    expected: Size = 1
    for k in reversed(order):
        size, stride = to_size(sizes[k]), to_size(strides[k])
        if size != 1 and not _same(stride, expected):
            return tuple(range(len(sizes))), False
        expected = expected * size
    return order, True


def _same(a: Size, b: Size) -> bool:
    return a == b or sympy.expand(_without_maxima(sympy.sympify(a)) - b) == 0


def _without_maxima(expr: sympy.Expr) -> sympy.Expr:
    """torch writes max(1, s) in contiguous strides; that matters only for empty tensors."""
    return expr.replace(
        lambda e: isinstance(e, (Max, sympy.Max)) and 1 in e.args and len(e.args) == 2,
        lambda e: next(a for a in e.args if a != 1),
    )


def _view_step(node: torch.fx.Node) -> Optional[tuple[torch.fx.Node, ViewStep]]:
    """If the node is a view of its first argument, that argument and the op to replay."""
    if node.op != "call_function":
        return None
    if node.target is operator.getitem:
        step = _view_step(node.args[0]) if isinstance(node.args[0], torch.fx.Node) else None
        return None if step is None else (step[0], step[1]._replace(item=cast(int, node.args[1])))
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target.is_view:
        return None
    if not node.args or not isinstance(node.args[0], torch.fx.Node):
        return None
    args, kwargs = pytree.tree_map_only(
        torch.fx.Node, lambda n: to_size(n.meta["val"]), (list(node.args[1:]), dict(node.kwargs))
    )
    return node.args[0], ViewStep(node.target, tuple(args), kwargs)
