"""What a compiled program is, whatever the target: its prim module, its arguments, its results, and the call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional, Protocol, Union

import sympy
import torch
import torch.utils._pytree as pytree

from .frozen import Frozen
from .importer import Argument
from .sizes import Size


class Executable(Protocol):
    """What a target makes of a program.

    Called with the arguments that are no constants, in the function's order, each contiguous in its physical order; with
    a contiguous tensor for each result of the function (checks included), to be written; and the values of the symbols.
    For a split program (one without a module), inputs are as the caller has them, of any strides, and outputs is a list of
    None, to be filled with the results themselves.
    """

    def __call__(self, inputs: list[torch.Tensor], outputs: list[Any], symbols: list[int]) -> None: ...


@dataclass
class Input:
    """One leaf of the user's arguments.

    Attributes:
        name: what to call it in messages, e.g. ``x`` or ``batch['ids']``.
        kind: "tensor", "size" (a number that is a symbol or an expression of one) or "value" (compared with `value`).
        sizes, dtype, permutation: of a tensor, as in Argument; sizes[0] is a size's expression.
    """

    name: str
    kind: str
    sizes: tuple[Size, ...] = ()
    dtype: Optional[torch.dtype] = None
    permutation: tuple[int, ...] = ()
    value: Any = None


class ViewStep(NamedTuple):
    """A view op of ATen, to be replayed on a real tensor; sizes in its arguments may be expressions."""

    op: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    item: Optional[int] = None


@dataclass
class Result:
    """A result of the function that is a tensor to allocate.

    Attributes:
        sizes: logical sizes.
        strides: eager's strides.
        dtype: its dtype; None of what is no dense tensor (a split program's results may be anything).
        permutation: the function returns it contiguous with sizes ``sizes[permutation[k]]``.
        dense: whether memory of those strides is just that; if not, it is copied into such memory.
    """

    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]
    dtype: Optional[torch.dtype]
    permutation: tuple[int, ...]
    dense: bool = True


@dataclass
class Returned:
    """One leaf of what the user gets.

    Attributes:
        kind: "result" (of the function), "input" (leaf of the user's arguments), "tensor" (the program's own), "size" or "value".
        index: which result or input.
        key: which of the program's own tensors.
        value: of a value; of a size its expression.
        views: view ops that make it of that tensor.
    """

    kind: str
    index: int = 0
    key: str = ""
    value: Any = None
    views: tuple[ViewStep, ...] = ()


@dataclass
class Mutation:
    """After the call, the value of result `index` is copied to an input, or to one of the program's own tensors."""

    index: int
    input: Optional[int] = None
    key: str = ""


@dataclass
class Program:
    """A captured and imported program, independent of any target.

    Attributes:
        module: the prim module; None if the program is split around eager calls.
        arguments: arguments of @main, in order.
        sources: of each argument that is no frozen constant, in order, where a call finds it: the number of a leaf of the
            user's arguments, or the key of a tensor (a buffer that is written to, a weight that is not frozen).
        tensors: the program's own tensors by key: frozen constants, until there is an executable, and others.
        inputs: leaves of the user's arguments.
        results: results of @main less the checks.
        returned: leaves of what the user gets.
        mutations: what is copied back.
        checks: eager's error for each check.
        symbols: torch's symbols, in the order of the function's.
        ranges: smallest and largest value of each symbol (None: unbounded).
        in_spec, out_spec: pytrees of the user's (args, kwargs) and of what the user gets; None for plain lists.
        device: where results are allocated.
        graph: the functional ATen graph that was imported, if there is one.
        frozen: the user's own tensors that are constants, which no call may find changed.
    """

    module: Any
    arguments: list[Argument]
    sources: list[Union[int, str]]
    tensors: dict[str, torch.Tensor]
    inputs: list[Input]
    results: list[Result]
    returned: list[Returned]
    mutations: list[Mutation]
    checks: list[str]
    symbols: list[sympy.Symbol]
    ranges: list[tuple[int, Optional[int]]]
    in_spec: Optional[pytree.TreeSpec]
    out_spec: Optional[pytree.TreeSpec]
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    graph: Optional[torch.fx.GraphModule] = None
    frozen: list[Frozen] = field(default_factory=list)

    def own_bytes(self) -> int:
        """Bytes of the program's own tensors: weights, buffers, constants."""
        sources = iter(self.sources)
        own = {}
        for argument in self.arguments:
            key = argument.constant if argument.constant is not None else next(sources)
            if isinstance(key, str):
                own[key] = math.prod(int(size) for size in argument.sizes) * argument.dtype.itemsize
        return sum(own.values())

    def drop_constants(self) -> None:
        """Forgets the frozen constants: an executable has those that it reads, and most are read only to be packed."""
        keys = {source for source in self.sources if isinstance(source, str)}
        keys |= {mutation.key for mutation in self.mutations} | {returned.key for returned in self.returned}
        self.tensors = {key: tensor for key, tensor in self.tensors.items() if key in keys}
