"""The elementwise rules against PyTorch, on the special values of each type."""

from __future__ import annotations

import math

import pytest
import torch
from check import ALL, DTYPES, FLOATS, INTS, NUMBERS, check_op, make_data, run_op

from lamina import reference

INTS_AND_BOOL = [*INTS, "i1"]

# name, PyTorch's function, element types, whether equal bit for bit
UNARY = [
    ("neg", torch.neg, NUMBERS, True),
    ("abs", torch.abs, NUMBERS, True),
    ("sign", torch.sign, NUMBERS, True),
    ("not", torch.bitwise_not, INTS_AND_BOOL, True),
    ("exp", torch.exp, FLOATS, False),
    ("exp2", torch.exp2, FLOATS, False),
    ("expm1", torch.expm1, FLOATS, False),
    ("log", torch.log, FLOATS, False),
    ("log2", torch.log2, FLOATS, False),
    ("log10", torch.log10, FLOATS, False),
    ("log1p", torch.log1p, FLOATS, False),
    ("sqrt", torch.sqrt, FLOATS, False),  # eager may use a library whose f64 root is a unit off
    ("rsqrt", torch.rsqrt, FLOATS, False),
    ("sin", torch.sin, FLOATS, False),
    ("cos", torch.cos, FLOATS, False),
    ("tan", torch.tan, FLOATS, False),
    ("asin", torch.asin, FLOATS, False),
    ("acos", torch.acos, FLOATS, False),
    ("atan", torch.atan, FLOATS, False),
    ("sinh", torch.sinh, FLOATS, False),
    ("cosh", torch.cosh, FLOATS, False),
    ("tanh", torch.tanh, FLOATS, False),
    ("asinh", torch.asinh, FLOATS, False),
    ("acosh", torch.acosh, FLOATS, False),
    ("atanh", torch.atanh, FLOATS, False),
    ("erf", torch.erf, FLOATS, False),
    ("ceil", torch.ceil, FLOATS, True),
    ("floor", torch.floor, FLOATS, True),
    ("round", torch.round, FLOATS, True),
    ("trunc", torch.trunc, FLOATS, True),
]
BINARY = [
    ("add", torch.add, NUMBERS, True),
    ("sub", torch.sub, NUMBERS, True),
    ("mul", torch.mul, NUMBERS, True),
    ("div", torch.div, FLOATS, True),
    ("pow", torch.pow, FLOATS, False),
    ("pow", torch.pow, INTS, True),
    ("atan2", torch.atan2, FLOATS, False),
    ("and", torch.bitwise_and, INTS_AND_BOOL, True),
    ("or", torch.bitwise_or, INTS_AND_BOOL, True),
    ("xor", torch.bitwise_xor, INTS_AND_BOOL, True),
    ("shl", torch.bitwise_left_shift, INTS, True),
    ("shr", torch.bitwise_right_shift, INTS, True),
]
COMPARISONS = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge}


def get_special_values(dtype: str) -> torch.Tensor:
    """Returns the values at which functions of the type turn: zeros, extremes, NaN, and some between."""
    kind = DTYPES[dtype]
    if dtype == "i1":
        return torch.tensor([False, True])
    if dtype in INTS:
        info = torch.iinfo(kind)
        values = [
            info.min,
            info.min + 1,
            -8,
            -7,
            -3,
            -2,
            -1,
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            9,
            16,
            31,
            63,
            info.max - 1,
            info.max,
        ]
        return torch.tensor([value for value in values if info.min <= value <= info.max], dtype=kind)
    info = torch.finfo(kind)
    values = [0.0, 1.0, 0.5, 1.5, 2.5, 0.3, 3.7, 7.0, 20.0, 100.0, 1e-3, info.tiny, info.smallest_normal, info.max]
    values += [-value for value in values] + [math.inf, -math.inf, math.nan]
    return torch.tensor(values, dtype=torch.float64).to(kind)


def get_pairs(dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns all pairs of special values."""
    pairs = torch.cartesian_prod(get_special_values(dtype), get_special_values(dtype))
    return pairs[:, 0].contiguous(), pairs[:, 1].contiguous()


def expand(rows: list) -> list:
    """Returns a pytest parameter for each row and element type."""
    return [
        pytest.param(name, function, dtype, exact, id=f"{name}-{dtype}")
        for name, function, dtypes, exact in rows
        for dtype in dtypes
    ]


@pytest.mark.parametrize(("name", "function", "dtype", "exact"), expand(UNARY))
def test_unary(name, function, dtype, exact):
    x = get_special_values(dtype)
    check_op(f"prim.{name} %a : tensor<{len(x)}x{dtype}>", function, [x], exact)


@pytest.mark.parametrize(("name", "function", "dtype", "exact"), expand(BINARY))
def test_binary(name, function, dtype, exact):
    x, y = get_pairs(dtype)
    check_op(f"prim.{name} %a, %b : tensor<{len(x)}x{dtype}>", function, [x, y], exact)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_remainder(dtype):
    x, y = get_pairs(dtype)
    usual = ~(x.float() / y.float()).isinf() | x.isinf() | (y == 0)  # eager's vector code gives NaN beyond that
    x, y = x[usual], y[usual]
    check_op(f"prim.rem %a, %b : tensor<{len(x)}x{dtype}>", torch.fmod, [x, y])


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(("name", "function"), [("max", torch.maximum), ("min", torch.minimum)])
def test_extremum(name, function, dtype):
    x, y = get_pairs(dtype)
    differ = (x != y) if dtype in FLOATS else torch.ones(len(x), dtype=torch.bool)  # of two zeros either may come
    x, y = x[differ], y[differ]
    check_op(f"prim.{name} %a, %b : tensor<{len(x)}x{dtype}>", function, [x, y])


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize(
    ("name", "function"), [("div", lambda x, y: torch.div(x, y, rounding_mode="trunc")), ("rem", torch.fmod)]
)
def test_integer_division(name, function, dtype):
    x, y = get_pairs(dtype)
    defined = (y != 0) & ~((x == torch.iinfo(x.dtype).min) & (y == -1))
    x, y = x[defined], y[defined]
    check_op(f"prim.{name} %a, %b : tensor<{len(x)}x{dtype}>", function, [x, y])


@pytest.mark.parametrize("name", ["div", "rem"])
def test_division_by_zero(name):
    with pytest.raises(reference.ProgramError, match=r'loc\("-":2:8\): ZeroDivisionError'):
        run_op(f"prim.{name} %a, %a : tensor<2xi32>", [torch.tensor([1, 0], dtype=torch.int32)])


def test_lowest_divided_by_minus_one_wraps():
    x, y = torch.tensor([-128], dtype=torch.int8), torch.tensor([-1], dtype=torch.int8)
    assert run_op("prim.div %a, %b : tensor<1xi8>", [x, y])[0].tolist() == [-128]
    assert run_op("prim.rem %a, %b : tensor<1xi8>", [x, y])[0].tolist() == [0]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", COMPARISONS)
def test_compare(name, dtype):
    x, y = get_pairs(dtype)
    op = f"prim.compare <{name}> %a, %b : tensor<{len(x)}x{dtype}>"
    check_op(op, COMPARISONS[name], [x, y], results=[f"tensor<{len(x)}xi1>"])


@pytest.mark.parametrize("dtype", ALL)
def test_select(dtype):
    x, y = get_pairs(dtype)
    predicate = make_data("i1", len(x))
    op = f"prim.select %a, %b, %c : tensor<{len(x)}xi1>, tensor<{len(x)}x{dtype}>"
    check_op(op, torch.where, [predicate, x, y])


@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("source", ALL)
def test_convert(source, target):
    x = get_special_values(source)
    if source in FLOATS and target in INTS:
        info = torch.iinfo(DTYPES[target])
        x = x[(x.double() > max(info.min, -(2**53)) - 1.0) & (x.double() < min(info.max, 2**53) + 1.0)]
    op = f"prim.convert %a : tensor<{len(x)}x{source}> to tensor<{len(x)}x{target}>"
    check_op(op, lambda x: x.to(DTYPES[target]), [x])


@pytest.mark.parametrize(
    ("source", "target"),
    [("f64", "i64"), ("i64", "f64"), ("f32", "i32"), ("i32", "f32"), ("f16", "i16"), ("i16", "bf16"), ("bf16", "f16")],
)
def test_bitcast(source, target):
    x = get_special_values(source)
    op = f"prim.bitcast %a : tensor<{len(x)}x{source}> to tensor<{len(x)}x{target}>"
    check_op(op, lambda x: x.view(DTYPES[target]), [x])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (1, 1), (2, 3, 1, 2)])
@pytest.mark.parametrize("dtype", ALL)
def test_shapes(shape, dtype):
    x, y = make_data(dtype, *shape), make_data(dtype, *shape, seed=1)
    type = "tensor<" + "".join(f"{size}x" for size in shape) + f"{dtype}>"
    check_op(f"prim.max %a, %b : {type}", torch.maximum, [x, y])
