"""The launch plan: what the host functions of a planned module launch, with which memory, as plain data.

It is read from the module's operations alone. A value of the host lies in an argument of the function or in the arena, at an
offset in bytes; that is also what the CPU's host functions are made of (lib/Transforms/Lowering/LowerHost.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from lamina.errors import CompileError, find_place

from .expressions import Expr, make, of_map, product, substitute

ARENA = "arena"


@dataclass
class _Place:
    base: Any  # the number of an argument, or ARENA
    offset: Expr


def read_extents(module: Any) -> dict[str, list[Expr]]:
    """For each argument of each `kernel.func`, how many elements lie between its first and its last, over its symbols.

    Args:
        module: in the phase ``planned``; later phases have lost the kernels' shapes.
    """
    from mlir import ir

    extents = {}
    for op in _operations(module, "kernel.func"):
        attributes = op.attributes
        types = list(ir.FunctionType(ir.TypeAttr(attributes["function_type"]).value).inputs)
        dictionaries = _argument_attributes(op, len(types))
        extents[_name(op)] = [_extent(type, attrs) for type, attrs in zip(types, dictionaries)]
    return extents


def read_hosts(module: Any, extents: dict[str, list[Expr]]) -> dict[str, dict[str, Any]]:
    """The plan of each host function.

    Args:
        module: in the phase ``ttir``: host functions as planned, kernels as `tt.func`s with their grids.
        extents: of the same module, from read_extents.

    Raises:
        CompileError: a host function has an operation that a plan cannot say, such as a call that PyTorch runs.
    """
    kernels = {_name(op): op for op in _operations(module, "tt.func")}
    return {_name(op): _read_host(op, kernels, extents) for op in _operations(module, "func.func")}


def _read_host(op: Any, kernels: dict[str, Any], extents: dict[str, list[Expr]]) -> dict[str, Any]:
    from mlir import ir

    attributes = op.attributes
    block = op.regions[0].blocks[0]
    arguments = list(block.arguments)
    results = ir.IntegerAttr(attributes["kernel.results"]).value if "kernel.results" in attributes else 0
    dictionaries = _argument_attributes(op, len(arguments))
    first = len(arguments) - results
    places = {argument: _Place(number, 0) for number, argument in enumerate(arguments)}
    launches = [launch for inner in block.operations if (launch := _step(inner.operation, places, kernels, extents))]
    return {
        "constants": [_constant(attrs) for attrs in dictionaries[:first]],
        "results": [
            {"bytes": _bytes(argument.type, attrs), "dtype": str(argument.type.element_type)}
            for argument, attrs in zip(arguments[first:], dictionaries[first:])
        ],
        "arena": of_map(attributes["kernel.arena"])[0] if "kernel.arena" in attributes else 0,
        "launches": launches,
    }


def _step(
    op: Any, places: dict[Any, _Place], kernels: dict[str, Any], extents: dict[str, list[Expr]]
) -> Optional[dict[str, Any]]:
    """The launch that an operation of the host is, or None once `places` has its result."""
    if op.name == "kernel.alloc":
        places[op.results[0]] = _Place(ARENA, of_map(op.attributes["offset"])[0])
    elif op.name == "kernel.view":
        source = places[op.operands[0]]
        offset = product([of_map(op.attributes["offset"])[0], element_bytes(op.operands[0].type.element_type)])
        places[op.results[0]] = _Place(source.base, make("+", source.offset, offset))
    elif op.name == "kernel.launch":
        return _launch(op, places, kernels, extents)
    elif op.name != "func.return":
        place = find_place(str(op.location))
        raise CompileError(
            f"a package cannot hold {op.name}, which PyTorch or a library runs",
            op=place.op,
            location=place.location,
            hint="rewrite the line so that it can be compiled.",
            module=place.module,
        )
    return None


def _launch(
    op: Any, places: dict[Any, _Place], kernels: dict[str, Any], extents: dict[str, list[Expr]]
) -> dict[str, Any]:
    from mlir import ir

    name = ir.FlatSymbolRefAttr(op.attributes["kernel"]).value
    operands = list(op.operands)
    inputs, outputs = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    if outputs != len(op.results):
        raise ValueError(f"the launch of @{name} has no memory for its outputs")
    symbols = of_map(op.attributes["symbols"])
    for result, destination in zip(op.results, operands[inputs:]):
        places[result] = places[destination]
    grid = product([substitute(count, symbols) for count in of_map(kernels[name].attributes["kernel.grid"])])
    return {
        "kernel": name,
        "grid": grid,
        "arguments": [
            {"base": places[value].base, "offset": places[value].offset, "extent": substitute(extent, symbols)}
            for value, extent in zip(operands, extents[name], strict=True)
        ],
        "symbols": symbols,
        "line": find_place(str(op.location)).location,
    }


def read_signature(function: Any) -> dict[str, Any]:
    """What a launch must know of a `tt.func`: the element types that its pointers point at, and the types of its scalars."""
    from mlir import ir

    types = [str(type) for type in ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs]
    pointers = [type.partition("<")[2].rstrip(">") for type in types if type.startswith("!tt.ptr")]
    return {"pointers": pointers, "scalars": types[len(pointers) :]}


# ---- attributes


def _operations(module: Any, name: str) -> list[Any]:
    return [op.operation for op in module.body.operations if op.operation.name == name]


def _name(op: Any) -> str:
    from mlir import ir

    return ir.StringAttr(op.attributes["sym_name"]).value


def _argument_attributes(op: Any, count: int) -> list[Any]:
    return list(op.attributes["arg_attrs"]) if "arg_attrs" in op.attributes else [{}] * count


def _constant(attributes: Any) -> Optional[str]:
    from mlir import ir

    return ir.StringAttr(attributes["prim.constant"]).value if "prim.constant" in attributes else None


def _sizes(type: Any, attributes: Any) -> list[Expr]:
    exprs = of_map(attributes["prim.sizes"]) if "prim.sizes" in attributes else []
    return [exprs[i] if type.is_dynamic_dim(i) else type.get_dim_size(i) for i in range(type.rank)]


def _bytes(type: Any, attributes: Any) -> Expr:
    return product([element_bytes(type.element_type), *_sizes(type, attributes)])


def _extent(type: Any, attributes: Any) -> Expr:
    """One more than the position of the last element; where a size is 0, a number that is not too small."""
    sizes = _sizes(type, attributes)
    if "kernel.strides" not in attributes:
        return product(sizes)
    strides = of_map(attributes["kernel.strides"])
    steps = [product([make("+", size, -1), stride]) for size, stride in zip(sizes, strides)]
    return make("max", 0, make("+", 1, *steps)) if steps else 1


def element_bytes(element: Any) -> int:
    """Bytes of an element in memory."""
    return (element.width + 7) // 8
