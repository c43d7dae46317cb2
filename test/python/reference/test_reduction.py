"""The rules of reductions, scans and sorting, against PyTorch."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from check import ALL, CONTEXT, DTYPES, FLOATS, NUMBERS, check_op, make_data, run_op

from lamina import dialects, reference

REDUCTIONS = {
    "sum": lambda a, dims: a.sum(dims, dtype=a.dtype) if dims else a,
    "prod": lambda a, dims: multiply(a, dims),
    "max": lambda a, dims: a.amax(dims) if dims else a,
    "min": lambda a, dims: a.amin(dims) if dims else a,
    "any": lambda a, dims: a.any(dims) if dims else a,
    "all": lambda a, dims: a.all(dims) if dims else a,
}


def multiply(a: torch.Tensor, dims: list[int]) -> torch.Tensor:
    for dim in sorted(dims, reverse=True):
        a = a.prod(dim, dtype=torch.float32 if a.dtype in (torch.float16, torch.bfloat16) else a.dtype)
    return a


def get_types(combiner: str) -> list[str]:
    return {"sum": NUMBERS, "prod": NUMBERS, "any": ["i1"], "all": ["i1"]}.get(combiner, ALL)


PAIRS = [pytest.param(name, dtype, id=f"{name}-{dtype}") for name in REDUCTIONS for dtype in get_types(name)]


def with_special_values(a: torch.Tensor) -> torch.Tensor:
    """Returns the floats with NaN and infinities in some of their places."""
    if a.is_floating_point() and a.numel() > 20:
        a.flatten()[[3, 11, 17]] = torch.tensor([math.nan, math.inf, -math.inf], dtype=a.dtype)
    return a


@pytest.mark.parametrize(("dims", "result"), [([0], "3x4x"), ([2, 0], "3x"), ([0, 1, 2], ""), ([], "2x3x4x")])
@pytest.mark.parametrize(("combiner", "dtype"), PAIRS)
def test_reduce(combiner, dtype, dims, result):
    a = with_special_values(make_data(dtype, 2, 3, 4))
    op = f"prim.reduce <{combiner}> %a dims {dims} : tensor<2x3x4x{dtype}> to tensor<{result}{dtype}>"
    check_op(op, lambda a: REDUCTIONS[combiner](a, dims).to(DTYPES[dtype]), [a], exact=False)


@pytest.mark.parametrize(("combiner", "dtype"), PAIRS)
def test_reduce_nothing_gives_identity(combiner, dtype):
    kind = DTYPES[dtype]
    limits = (-math.inf, math.inf) if dtype in FLOATS else (False, True)
    if dtype not in (*FLOATS, "i1"):
        limits = torch.iinfo(kind).min, torch.iinfo(kind).max
    identity = {"sum": 0, "prod": 1, "max": limits[0], "min": limits[1], "any": False, "all": True}[combiner]
    op = f"prim.reduce <{combiner}> %a dims [1] : tensor<2x0x{dtype}> to tensor<2x{dtype}>"
    check_op(op, lambda a: torch.full((2,), identity, dtype=kind), [make_data(dtype, 2, 0)])


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_sums_accumulate_in_f32(dtype):
    op = f"prim.reduce <sum> %a dims [0] : tensor<5000x{dtype}> to tensor<{dtype}>"
    assert run_op(op, [torch.ones(5000, dtype=DTYPES[dtype])])[0] == torch.tensor(5000).to(DTYPES[dtype])


@pytest.mark.parametrize("dtype", ["i8", "ui8", "i64"])
def test_sums_wrap(dtype):
    a = torch.full((3,), torch.iinfo(DTYPES[dtype]).max, dtype=DTYPES[dtype])
    check_op(
        f"prim.reduce <sum> %a dims [0] : tensor<3x{dtype}> to tensor<{dtype}>", lambda a: a.sum(0, dtype=a.dtype), [a]
    )


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("extremum", ["max", "min"])
def test_arg_reduce(extremum, dtype):
    a = make_data(dtype, 3, 50)
    if dtype in FLOATS:
        a[0, 7] = a[0, 30] = math.nan
        a[1, :] = math.inf
    op = f"prim.arg_reduce <{extremum}> %a dim 1 : tensor<3x50x{dtype}> to tensor<3xi64>"

    def expected(a):
        a = a.to(torch.int8) if dtype == "i1" else a
        return torch.argmax(a, 1) if extremum == "max" else torch.argmin(a, 1)

    check_op(op, expected, [a])


def test_arg_reduce_nothing():
    text = """
      func.func @main(%x: tensor<2x?xf32> {prim.sizes = affine_map<()[s0] -> (2, s0)>}) -> tensor<2xi64> {
        %0 = prim.arg_reduce <max> %x dim 1 : tensor<2x?xf32> to tensor<2xi64>
        return %0 : tensor<2xi64>
      }"""
    with pytest.raises(reference.ProgramError, match="dimension 1 has size 0"):
        reference.run(dialects.parse(text, CONTEXT), reference.from_torch(torch.zeros(2, 0)))


SCANS = {
    "sum": lambda a: a.cumsum(1, dtype=a.dtype),
    "prod": lambda a: a.cumprod(1, dtype=a.dtype),
    "max": lambda a: a.cummax(1).values,
    "min": lambda a: a.cummin(1).values,
    "any": lambda a: a.cummax(1).values,
    "all": lambda a: a.cummin(1).values,
}


@pytest.mark.parametrize("shape", [(3, 4, 2), (3, 0, 2), (1, 1, 1)])
@pytest.mark.parametrize(("combiner", "dtype"), PAIRS)
def test_scan(combiner, dtype, shape):
    a = with_special_values(make_data(dtype, *shape))
    op = f"prim.scan <{combiner}> %a dim 1 : tensor<{shape[0]}x{shape[1]}x{shape[2]}x{dtype}>"
    check_op(op, SCANS[combiner], [a], exact=False)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("descending", ["true", "false"])
def test_sort(descending, dtype):
    a = make_data(dtype, 3, 40)
    if dtype in FLOATS:
        a[0, [3, 7]] = math.nan
        a[1, [5, 6]] = torch.tensor([0.0, -0.0], dtype=a.dtype)
        a[2] = a[2].round()
    op = f"prim.sort %a dim 1 descending {descending} : tensor<3x40x{dtype}>"
    check_op(
        op,
        lambda a: torch.sort(a, dim=1, descending=descending == "true", stable=True),
        [a],
        results=[f"tensor<3x40x{dtype}>", "tensor<3x40xi64>"],
    )


def windows(a: torch.Tensor, combiner: str, low: int, high: int) -> torch.Tensor:
    """Returns the combinations over windows of 3 with stride 2 along dimension 1, from PyTorch's own windows."""
    kind = a.dtype
    limits = (-math.inf, math.inf)
    if not kind.is_floating_point:
        limits = (False, True) if kind == torch.bool else (torch.iinfo(kind).min, torch.iinfo(kind).max)
    fill = {"sum": 0, "prod": 1, "max": limits[0], "min": limits[1], "any": False, "all": True}[combiner]
    if low + high + a.shape[1] < 3:
        return a.new_zeros(a.shape[0], 0)
    padded = torch.cat([a.new_full((len(a), low), fill), a, a.new_full((len(a), high), fill)], 1)
    return REDUCTIONS[combiner](padded.unfold(1, 3, 2), [2]).to(kind)


@pytest.mark.parametrize(("size", "low", "high", "count"), [(7, 1, 1, 4), (6, 0, 0, 2), (1, 1, 1, 1), (1, 0, 0, 0)])
@pytest.mark.parametrize(("combiner", "dtype"), PAIRS)
def test_reduce_window(combiner, dtype, size, low, high, count):
    op = (
        f"prim.reduce_window <{combiner}> %a window [1, 3] strides [1, 2] dilations [1, 1] low [0, {low}] high [0, {high}]"
        f" : tensor<2x{size}x{dtype}> to tensor<2x{count}x{dtype}>"
    )
    check_op(op, lambda a: windows(a, combiner, low, high), [make_data(dtype, 2, size)], exact=False)


def test_reduce_window_is_max_pool():
    op = (
        "prim.reduce_window <max> %a window [1, 1, 2, 3] strides [1, 1, 2, 1] dilations [1, 1, 2, 1]"
        " low [0, 0, 1, 1] high [0, 0, 1, 1] : tensor<2x3x6x7xf32> to tensor<2x3x3x7xf32>"
    )
    check_op(op, lambda a: F.max_pool2d(a, (2, 3), (2, 1), (1, 1), (2, 1)), [make_data("f32", 2, 3, 6, 7)])
