"""Each prim op is built through its Python class, and verifies."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mlir import ir
from mlir.dialects import func

from lamina._lib import _lamina
from lamina.dialects import prim

F32, BF16, I32, I64, I1 = "f32", "bf16", "i32", "i64", "i1"


def tensor(text: str) -> ir.Type:
    return ir.Type.parse(f"tensor<{text}>")


def exprs(*values: int) -> ir.AffineMapAttr:
    return ir.AffineMapAttr.get(ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(value) for value in values]))


def symbolic(text: str) -> ir.AffineMapAttr:
    return ir.Attribute.parse(f"affine_map<{text}>")


def attr(kind: str, name: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#prim<{kind} <{name}>>")


UNARY_FLOAT = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "erfc",
    "ceil",
    "floor",
    "round",
    "trunc",
    "neg",
    "abs",
    "sign",
]
BINARY_FLOAT = ["add", "sub", "mul", "div", "rem", "pow", "atan2", "max", "min"]
BINARY_INT = ["and", "or", "xor", "shl", "shr", "add", "max"]


def class_of(name: str) -> Callable[..., ir.OpView]:
    return getattr(prim, "".join(part.capitalize() for part in name.split("_")) + "Op")


# Every other op: the types of its operands, and how it is made of them.
OTHERS: dict[str, tuple[list[str], Callable[..., ir.OpView]]] = {
    "compare": (["4xf32", "4xf32"], lambda x, y: prim.CompareOp(attr("comparison", "lt"), x, y)),
    "select": (["4xi1", "4xf32", "4xf32"], lambda p, x, y: prim.SelectOp(p, x, y, results=[x.type])),
    "convert": (["4xf32"], lambda x: prim.ConvertOp(tensor("4xbf16"), x)),
    "bitcast": (["4xf32"], lambda x: prim.BitcastOp(tensor("4xi32"), x)),
    "constant": (
        [],
        lambda: prim.ConstantOp(ir.Attribute.parse("dense<1.0> : tensor<2xf32>"), results=[tensor("2xf32")]),
    ),
    "size": ([], lambda: prim.SizeOp(tensor("i64"), symbolic("()[s0] -> (s0 * 2)"))),
    "iota": ([], lambda: prim.IotaOp(tensor("?x3xi64"), 1, sizes=symbolic("()[s0] -> (s0, 3)"))),
    "broadcast": (["3xf32"], lambda x: prim.BroadcastOp(tensor("2x3xf32"), x, [1])),
    "transpose": (["2x3x4xf32"], lambda x: prim.TransposeOp(x, [2, 0, 1])),
    "reshape": (["2x3xf32"], lambda x: prim.ReshapeOp(tensor("6xf32"), x)),
    "slice": (["8xf32"], lambda x: prim.SliceOp(tensor("3xf32"), x, exprs(1), exprs(7), [2])),
    "pad": (["4xf32", "f32"], lambda x, v: prim.PadOp(tensor("7xf32"), x, v, exprs(1), exprs(2))),
    "concatenate": (["2x3xf32", "4x3xf32"], lambda x, y: prim.ConcatenateOp([x, y], 0)),
    "reverse": (["2x3xf32"], lambda x: prim.ReverseOp(x, [1])),
    "gather": (["9x4xf32", "2x5xi64"], lambda x, i: prim.GatherOp(x, [i], [0])),
    "scatter": (
        ["9x4xf32", "5x4xf32", "5xi64"],
        lambda x, u, i: prim.ScatterOp(x, u, [i], [0], attr("scatter_mode", "sum"), results=[x.type]),
    ),
    "reduce": (["2x3x4xf32"], lambda x: prim.ReduceOp(x, attr("combiner", "max"), [0, 2])),
    "arg_reduce": (["2x3xf32"], lambda x: prim.ArgReduceOp(x, attr("extremum", "min"), 1)),
    "scan": (["2x3xf32"], lambda x: prim.ScanOp(x, attr("combiner", "sum"), 1)),
    "sort": (["2x3xf32"], lambda x: prim.SortOp(x, 1, False)),
    "reduce_window": (
        ["1x8xf32"],
        lambda x: prim.ReduceWindowOp(
            tensor("1x4xf32"), x, attr("combiner", "max"), [1, 3], [1, 2], [1, 1], [0, 1], [0, 1]
        ),
    ),
    "dot_general": (
        ["2x3xbf16", "4x3xbf16"],
        lambda x, y: prim.DotGeneralOp(tensor("2x4xf32"), x, y, [], [], [1], [1]),
    ),
    "convolution": (
        ["1x3x8xf32", "6x3x3xf32"],
        lambda x, w: prim.ConvolutionOp(tensor("1x6x8xf32"), x, w, [1], [1], [1], [1], [1], 1),
    ),
}
CASES = [
    *((name, ["4x5xf32"], class_of(name)) for name in UNARY_FLOAT),
    *((name, ["4x5xbf16"] * 2, class_of(name)) for name in BINARY_FLOAT),
    *((name, ["4x5xi32"] * 2, class_of(name)) for name in BINARY_INT),
    ("not", ["4xi1"], class_of("not")),
    *((name, types, build) for name, (types, build) in OTHERS.items()),
]
# What the result types of the ops that infer theirs should be.
INFERRED = {
    "compare": "4xi1",
    "transpose": "4x2x3xf32",
    "concatenate": "6x3xf32",
    "gather": "2x5x4xf32",
    "reduce": "3xf32",
    "arg_reduce": "2xi64",
    "sort": "2x3xf32",
}


def make_context() -> ir.Context:
    context = ir.Context()
    _lamina.register_dialects(context)
    return context


def build(types: list[str], make: Callable[..., ir.OpView]) -> tuple[ir.Module, ir.OpView]:
    """A module with one function, in which the op is made of the function's arguments."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("f", ir.FunctionType.get([tensor(text) for text in types], []))
        block = function.add_entry_block()
    with ir.InsertionPoint(block):
        made = make(*block.arguments)
        func.ReturnOp([])
    return module, made


@pytest.mark.parametrize(("name", "types", "make"), CASES, ids=[f"{name}-{len(types)}" for name, types, _ in CASES])
def test_builds(name: str, types: list[str], make: Callable[..., ir.OpView]) -> None:
    with make_context(), ir.Location.unknown():
        module, made = build(types, make)
        module.operation.verify()
        assert made.operation.name == f"prim.{name}"
        if name in INFERRED:
            assert made.operation.results[0].type == tensor(INFERRED[name])
        again = ir.Module.parse(str(module))
        assert str(again) == str(module)


def test_every_op_is_covered() -> None:
    classes = {
        value.OPERATION_NAME.removeprefix("prim.")
        for value in vars(prim).values()
        if isinstance(value, type) and getattr(value, "OPERATION_NAME", "").startswith("prim.")
    }
    assert classes == {name for name, _, _ in CASES}


def test_inference_reports_the_constraint() -> None:
    with make_context(), ir.Location.unknown(), pytest.raises(Exception, match="C3: size of dimension 1 is 4"):
        build(["2x3xf32", "2x4xf32"], lambda x, y: prim.ConcatenateOp([x, y], 0))


def test_inference_gives_dynamic_sizes() -> None:
    with make_context(), ir.Location.unknown():
        _, made = build(["?x3xf32", "4x3xf32"], lambda x, y: prim.ConcatenateOp([x, y], 0))
        assert made.operation.results[0].type == tensor("?x3xf32")
