"""The rules of contractions against PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from check import DTYPES, FLOATS, NUMBERS, check_op, make_data


def dot(batch: list, contract: list, types: str) -> str:
    return f"prim.dot_general %a, %b batch {batch[0]} x {batch[1]} contract {contract[0]} x {contract[1]} : {types}"


# op with T for the element type, PyTorch's function, shapes
DOTS = [
    (dot([[], []], [[1], [0]], "(tensor<3x5xT>, tensor<5x2xT>) -> tensor<3x2xT>"), torch.matmul, [(3, 5), (5, 2)]),
    (dot([[], []], [[1], [0]], "(tensor<3x0xT>, tensor<0x2xT>) -> tensor<3x2xT>"), torch.matmul, [(3, 0), (0, 2)]),
    (dot([[], []], [[0], [0]], "(tensor<1xT>, tensor<1xT>) -> tensor<T>"), torch.dot, [(1,), (1,)]),
    (
        dot([[], []], [[], []], "(tensor<2xT>, tensor<3xT>) -> tensor<2x3xT>"),
        lambda a, b: a[:, None] * b[None],
        [(2,), (3,)],
    ),
    (
        dot([[0], [1]], [[2], [0]], "(tensor<4x2x3xT>, tensor<3x4x5xT>) -> tensor<4x2x5xT>"),
        lambda a, b: torch.bmm(a, b.transpose(0, 1)),
        [(4, 2, 3), (3, 4, 5)],
    ),
    (
        dot([[], []], [[2, 0], [0, 1]], "(tensor<4x2x3xT>, tensor<3x4xT>) -> tensor<2xT>"),
        lambda a, b: (a * b.T[:, None]).sum((0, 2), dtype=a.dtype),
        [(4, 2, 3), (3, 4)],
    ),
]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize(("op", "function", "shapes"), DOTS)
def test_dot_general(op, function, shapes, dtype):
    inputs = [make_data(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes)]
    check_op(op.replace("T>", f"{dtype}>"), function, inputs, exact=False)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_dot_general_to_f32(dtype):
    op = f"({dtype}, {dtype}) -> f32"
    op = dot([[], []], [[1], [0]], f"(tensor<3x5x{dtype}>, tensor<5x2x{dtype}>) -> tensor<3x2xf32>")
    inputs = [make_data(dtype, 3, 5), make_data(dtype, 5, 2)]
    check_op(op, lambda a, b: a.float() @ b.float(), inputs, exact=False)


def test_integer_dot_wraps():
    a = torch.full((1, 3), 100, dtype=torch.int8)
    op = dot([[], []], [[1], [0]], "(tensor<1x3xi8>, tensor<3x1xi8>) -> tensor<1x1xi8>")
    check_op(op, torch.matmul, [a, a.T.contiguous()])


# shapes of input and weight, result shape, then strides, low, high, lhs_dilations, dilations, groups
CONVOLUTIONS = [
    ((2, 3, 7), (4, 3, 3), (2, 4, 4), [2], [1], [1], [1], [1], 1),
    ((2, 4, 6, 5), (6, 2, 3, 2), (2, 6, 4, 3), [1, 1], [0, 0], [0, 0], [1, 1], [1, 2], 2),
    ((1, 3, 5, 4), (3, 1, 3, 3), (1, 3, 5, 4), [1, 1], [1, 1], [1, 1], [1, 1], [1, 1], 3),
    ((1, 2, 4, 3, 5), (2, 2, 2, 2, 2), (1, 2, 3, 2, 2), [1, 1, 2], [0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1], 1),
    ((0, 3, 5), (2, 3, 3), (0, 2, 3), [1], [0], [0], [1], [1], 1),
    ((1, 2, 6), (2, 2, 3), (1, 2, 2), [1], [-1], [-1], [1], [1], 1),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("lhs", "rhs", "result", "strides", "low", "high", "lhs_dilations", "dilations", "groups"), CONVOLUTIONS
)
def test_convolution(dtype, lhs, rhs, result, strides, low, high, lhs_dilations, dilations, groups):
    inputs = [make_data(dtype, *lhs), make_data(dtype, *rhs, seed=1)]
    types = ["tensor<" + "".join(f"{n}x" for n in shape) + f"{dtype}>" for shape in (lhs, rhs, result)]
    op = (
        f"prim.convolution %a, %b strides {strides} low {low} high {high} lhs_dilations {lhs_dilations}"
        f" dilations {dilations} groups {groups} : ({types[0]}, {types[1]}) -> {types[2]}"
    )
    convolve = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(lhs)]

    def expected(a, b):
        padding = [amount for pair in reversed(list(zip(low, high, strict=True))) for amount in pair]
        padded = F.pad(a.double(), padding)
        return convolve(padded, b.double(), stride=strides, dilation=dilations, groups=groups).to(DTYPES[dtype])

    check_op(op, expected, inputs, exact=False)


def test_transposed_convolution():
    op = (
        "prim.convolution %a, %b strides [1, 1] low [1, 1] high [1, 2] lhs_dilations [2, 2] dilations [1, 1] groups 1"
        " : (tensor<1x2x3x4xf32>, tensor<3x2x3x3xf32>) -> tensor<1x3x5x8xf32>"
    )

    def expected(a, b):
        weight = b.transpose(0, 1).flip(2, 3)
        return F.conv_transpose2d(a, weight, stride=2, padding=1, output_padding=(0, 1))

    check_op(op, expected, [make_data("f32", 1, 2, 3, 4), make_data("f32", 3, 2, 3, 3)], exact=False)
