"""Programs that begin as the text of a prim module, with no PyTorch program behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlir.ir as ir
import sympy
import torch
import torch.fx
import torch.utils._pytree as pytree
from torch.utils._sympy.functions import FloorDiv, PythonMod

from lamina.compiler import copy_module, run_passes
from lamina.errors import CompileError

from .builder import DTYPES, element_type
from .importer import Argument
from .program import Input, Program, Result, Returned
from .sizes import Size, product


def parse_program(text: str, name: str) -> Any:
    """A prim module from its text.

    Args:
        text: MLIR assembly.
        name: what messages call the text.

    Raises:
        CompileError: the text does not parse or verify, or has no function @main with a body.
    """
    from lamina._lib import _lamina
    from lamina.dialects import make_context

    try:
        module = _lamina.parse_module(text, make_context(), name)
    except _lamina.CompilerCrash as error:
        raise CompileError.from_crash(str(error), "prim") from error
    except _lamina.CompilerError as error:
        raise CompileError.from_source(str(error)) from error
    _main(module, name)
    return module


def _main(module: Any, name: str) -> Any:
    for operation in module.body.operations:
        if operation.operation.name == "func.func" and operation.attributes["sym_name"] == ir.StringAttr.get(
            "main", module.context
        ):
            if len(operation.operation.regions[0].blocks):
                return operation
    raise CompileError(f"{name} has no function @main with a body")


def program_of(module: Any, name: str = "the module") -> Program:
    """A program that can be called, of a prim module whose constants become arguments like others.

    Args:
        module: the prim module, which is left as it is.
        name: what messages call it.

    Raises:
        CompileError: an argument or result is no tensor that PyTorch has, or a size has no value.
    """
    module = module.operation.clone()
    main = _main(module, name)
    with module.context:
        dictionaries = list(main.arg_attrs) if "arg_attrs" in main.attributes else [{}] * len(main.arguments)
        symbols: list[sympy.Symbol] = []
        arguments, inputs = [], []
        for number, (value, dictionary) in enumerate(zip(main.arguments, dictionaries)):
            label = (
                ir.StringAttr(dictionary["prim.constant"]).value if "prim.constant" in dictionary else f"arg{number}"
            )
            sizes = _sizes(value.type, dictionary, symbols, f"argument {number} of @main in {name}")
            dtype = _dtype(value.type, f"argument {number} of @main in {name}")
            order = tuple(range(len(sizes)))
            arguments.append(Argument(torch.fx.Graph().placeholder(f"arg{number}"), sizes, dtype, order))
            inputs.append(Input(label, "tensor", sizes, dtype, order))
        _drop_constants(main, dictionaries)
        checks = _strings(main, "prim.checks")
        results = _results(module, symbols, len(main.arguments), name)
        results = results[: len(results) - len(checks)]
        flat = pytree.tree_flatten((tuple(range(len(inputs))), {}))[1]
        output = pytree.tree_flatten(tuple(range(len(results))) if len(results) != 1 else 0)[1]
    return Program(
        module=module,
        arguments=arguments,
        sources=list(range(len(inputs))),
        tensors={},
        inputs=inputs,
        results=results,
        returned=[Returned("result", k) for k in range(len(results))],
        mutations=[],
        checks=checks,
        symbols=symbols,
        ranges=_ranges(main, len(symbols)),
        in_spec=flat,
        out_spec=output,
    )


def _drop_constants(main: Any, dictionaries: Sequence[Any]) -> None:
    """Makes constants arguments like others: their values are not in the text."""
    if any("prim.constant" in dictionary for dictionary in dictionaries):
        kept = [{a.name: a.attr for a in d if a.name != "prim.constant"} for d in dictionaries]
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(entry) for entry in kept])


def _dtype(type: Any, what: str) -> torch.dtype:
    element = ir.RankedTensorType(type).element_type if isinstance(type, ir.RankedTensorType) else None
    for dtype in DTYPES:
        if element == element_type(dtype):
            return dtype
    raise CompileError(f"{what} has the type {type}, which is no tensor of PyTorch's")


def _sizes(type: Any, dictionary: Any, symbols: list[sympy.Symbol], what: str) -> tuple[Size, ...]:
    _dtype(type, what)
    tensor = ir.RankedTensorType(type)
    exprs = ir.AffineMapAttr(dictionary["prim.sizes"]).value.results if "prim.sizes" in dictionary else None
    sizes: list[Size] = []
    for dim in range(tensor.rank):
        if not tensor.is_dynamic_dim(dim):
            sizes.append(tensor.get_dim_size(dim))
        elif exprs is None:
            raise CompileError(f"{what} has a dynamic size and no prim.sizes")
        else:
            sizes.append(_sympy(exprs[dim], symbols))
    return tuple(sizes)


def _sympy(expr: Any, symbols: list[sympy.Symbol]) -> Size:
    """An affine expression over symbols as a size."""
    expr = expr.maybe_downcast()
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineSymbolExpr):
        while len(symbols) <= expr.position:
            symbols.append(sympy.Symbol(f"s{len(symbols)}", integer=True, nonnegative=True))
        return symbols[expr.position]
    a, b = _sympy(expr.lhs, symbols), _sympy(expr.rhs, symbols)
    if isinstance(expr, ir.AffineAddExpr):
        return a + b
    if isinstance(expr, ir.AffineMulExpr):
        return a * b
    if isinstance(expr, ir.AffineModExpr):
        return PythonMod(a, b)
    return FloorDiv(a, b) if isinstance(expr, ir.AffineFloorDivExpr) else FloorDiv(a + b - 1, b)


def _results(module: Any, symbols: list[sympy.Symbol], arguments: int, name: str) -> list[Result]:
    """The results of @main; planning says what their sizes are."""
    planned = copy_module(module)
    run_passes(planned, "lamina-fuse-kernels,lamina-plan-memory", "planned")
    main = _main(planned, name)
    results = []
    with planned.context:
        dictionaries = list(main.arg_attrs) if "arg_attrs" in main.attributes else [{}] * len(main.arguments)
        for value, dictionary in list(zip(main.arguments, dictionaries))[arguments:]:
            what = f"a result of @main in {name}"
            sizes = _sizes(value.type, dictionary, symbols, what)
            strides = tuple(product(sizes[k + 1 :]) for k in range(len(sizes)))
            results.append(Result(sizes, strides, _dtype(value.type, what), tuple(range(len(sizes)))))
    return results


def _strings(main: Any, attribute: str) -> list[str]:
    return (
        [ir.StringAttr(a).value for a in ir.ArrayAttr(main.attributes[attribute])]
        if attribute in main.attributes
        else []
    )


def _ranges(main: Any, count: int) -> list[tuple[int, Any]]:
    ranges: list[tuple[int, Any]] = [(0, None)] * count
    if "prim.symbols" in main.attributes:
        for number, entry in enumerate(list(ir.ArrayAttr(main.attributes["prim.symbols"]))[:count]):
            fields = ir.DictAttr(entry)
            low, high = (ir.IntegerAttr(fields[key]).value if key in fields else None for key in ("min", "max"))
            ranges[number] = (low or 0, high)
    return ranges
