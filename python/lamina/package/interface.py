"""How a package is called: a captured program's arguments, results, aliases and mutations, as plain data.

The counterpart that calls it is lamina_runtime.call; for programs in this process it is lamina.frontend.call.
"""

from __future__ import annotations

import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional

import sympy
import torch
import torch.utils._pytree as pytree

from lamina.errors import CompileError
from lamina.frontend.program import Input, Program, Result, Returned
from lamina.frontend.results import physical_order

from .expressions import Expr, of_size


def read_interface(program: Program, signature: Optional[inspect.Signature]) -> dict[str, Any]:
    """The ``call`` of a plan.

    Args:
        program: the program; of a part of one, arguments are by position.
        signature: the model's, so that arguments are taken by name or by position alike.

    Raises:
        CompileError: a value, size or structure that plain data cannot say.
    """
    names = {symbol: number for number, symbol in enumerate(program.symbols)}
    reader = _Reader(program, names)
    reader.check_aliases()
    return {
        "symbols": [{"min": low, "max": high} for low, high in program.ranges],
        "parameters": list(signature.parameters) if signature is not None else None,
        "arguments": _flat(len(program.inputs)) if program.in_spec is None else structure(program.in_spec),
        "inputs": [reader.input(spec) for spec in program.inputs],
        "sources": reader.sources(),
        "tensors": {key: {"order": order} for key, order in reader.own_orders().items()},
        "results": [reader.result(result) for result in program.results],
        "checks": list(program.checks),
        "mutations": [
            {"result": m.index, **({"input": m.input} if m.input is not None else {"tensor": m.key})}
            for m in program.mutations
        ],
        "returned": [reader.returned(returned) for returned in program.returned],
        "returns": {"kind": "list", "children": [None] * len(program.returned)}
        if program.out_spec is None
        else structure(program.out_spec),
    }


def own_tensors(program: Program) -> dict[str, torch.Tensor]:
    """The tensors that a call reads, writes or returns beside its arguments and the constants, in the order of their memory."""
    reader = _Reader(program, {})
    return {
        key: program.tensors[key].detach().permute(order).contiguous() for key, order in reader.own_orders().items()
    }


class _Reader:
    def __init__(self, program: Program, names: Mapping[sympy.Symbol, int]):
        self.program = program
        self.names = names

    def sizes(self, sizes: Sequence[Any]) -> list[Expr]:
        return [of_size(size, self.names) for size in sizes]

    def input(self, spec: Input) -> dict[str, Any]:
        common = {"name": spec.name, "kind": spec.kind}
        if spec.kind == "tensor":
            if spec.dtype is None:
                raise CompileError(f"the argument {spec.name} is no dense tensor, which no package can take")
            return {**common, "sizes": self.sizes(spec.sizes), "dtype": _dtype(spec.dtype)}
        if spec.kind == "size":
            return {**common, "size": of_size(spec.sizes[0], self.names)}
        return {**common, "value": value(spec.value, f"the argument {spec.name}")}

    def sources(self) -> list[dict[str, Any]]:
        """Of each argument of @main that is no constant: where it comes from, and the order of its dimensions in memory."""
        arguments = [argument for argument in self.program.arguments if argument.constant is None]
        return [
            {
                **({"input": source} if isinstance(source, int) else {"tensor": source}),
                "order": list(argument.permutation),
            }
            for argument, source in zip(arguments, self.program.sources)
        ]

    def own_orders(self) -> dict[str, list[int]]:
        keys = [source for source in self.program.sources if isinstance(source, str)]
        keys += [mutation.key for mutation in self.program.mutations if mutation.input is None]
        keys += [returned.key for returned in self.program.returned if returned.kind == "tensor"]
        return {
            key: list(physical_order(tensor.shape, tensor.stride()))
            for key in dict.fromkeys(keys)
            for tensor in [self.program.tensors[key]]
        }

    def check_aliases(self) -> None:
        """A tensor of the program's own that is written to must share memory with no other: a package stores each apart."""
        storages: dict[int, str] = {}
        written = {mutation.key for mutation in self.program.mutations if mutation.input is None}
        for key in self.own_orders():
            place = self.program.tensors[key].untyped_storage().data_ptr()
            other = storages.setdefault(place, key)
            if other != key and written & {key, other}:
                raise CompileError(f"the tensors {other} and {key} share memory and are written to", hint="clone one.")

    def result(self, result: Result) -> dict[str, Any]:
        if result.dtype is None:
            raise CompileError("the program returns a number that depends on data, which no package can")
        return {
            "sizes": self.sizes(result.sizes),
            "strides": self.sizes(result.strides),
            "dtype": _dtype(result.dtype),
            "order": list(result.permutation),
            "dense": result.dense,
        }

    def returned(self, returned: Returned) -> dict[str, Any]:
        views = [
            {
                "op": str(step.op),
                "arguments": [self.argument(a) for a in step.args],
                "named": {name: self.argument(a) for name, a in step.kwargs.items()},
                "item": step.item,
            }
            for step in returned.views
        ]
        if returned.kind == "size":
            return {"kind": "size", "size": of_size(returned.value, self.names)}
        if returned.kind == "value":
            return {"kind": "value", "value": value(returned.value, "what the program returns")}
        where = {"key": returned.key} if returned.kind == "tensor" else {"index": returned.index}
        return {"kind": returned.kind, **where, "views": views}

    def argument(self, argument: Any) -> Any:
        """An argument of a view op: a size, a value, or a list of them."""
        read = argument_reader(
            lambda each: {"size": of_size(each, self.names)} if isinstance(each, sympy.Expr) else None
        )
        return read(argument)


def argument_reader(special: Callable[[Any], Optional[dict[str, Any]]]) -> Callable[[Any], dict[str, Any]]:
    """What makes an argument of an operator JSON: a value, a list, or what `special` says it is, where that is not None."""

    def read(argument: Any) -> dict[str, Any]:
        found = special(argument)
        if found is not None:
            return found
        if isinstance(argument, (list, tuple)):
            return {"list": [read(each) for each in argument]}
        return {"value": value(argument, "an argument of an operator")}

    return read


def _flat(count: int) -> dict[str, Any]:
    """The structure of so many arguments by position."""
    positional = {"kind": "tuple", "children": [None] * count}
    return {"kind": "tuple", "children": [positional, {"kind": "dict", "keys": [], "children": []}]}


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def value(given: Any, what: str) -> Any:
    """A value that is no tensor, as JSON: None, truth, number and text as they are, others as {type: text}.

    Raises:
        CompileError: it is of another type.
    """
    if given is None or isinstance(given, (bool, int, str)):
        return given
    if isinstance(given, float):
        return given if math.isfinite(given) else {"float": str(given)}
    if isinstance(given, complex):
        return {"complex": [value(given.real, what), value(given.imag, what)]}
    for type in (torch.dtype, torch.layout, torch.memory_format):
        if isinstance(given, type):
            return {type.__name__: str(given).removeprefix("torch.")}
    if isinstance(given, torch.device):
        return {"device": True}  # the one that the package runs on
    raise CompileError(f"{what} is {given!r}, which a package cannot hold")


def structure(spec: pytree.TreeSpec) -> Any:
    """A pytree as JSON; lamina_runtime.structure takes values apart and puts them together by it.

    Raises:
        CompileError: the tree has a node of a class that plain data cannot say.
    """
    if spec.is_leaf():
        return None
    children = [structure(child) for child in spec.children()]
    if spec.type in (tuple, list):
        return {"kind": spec.type.__name__, "children": children}
    context = spec.context
    if spec.type in (dict, OrderedDict):
        return {"kind": "dict", "keys": [value(key, "a key of a dictionary") for key in context], "children": children}
    fields = getattr(context, "_fields", None) or getattr(spec.type, "_fields", None)
    if fields is None and isinstance(context, (list, tuple)) and all(isinstance(name, str) for name in context):
        fields = context
        kind = "fields"
    else:
        kind = "namedtuple"
    if fields is not None and len(fields) == len(children):
        name = context.__name__ if isinstance(context, type) else getattr(spec.type, "__name__", "Fields")
        return {"kind": kind, "name": name, "keys": list(fields), "children": children}
    raise CompileError(
        f"an argument or result is a {getattr(spec.type, '__name__', spec.type)}, which a package cannot hold",
        hint="use tensors, tuples, lists and dictionaries.",
    )
