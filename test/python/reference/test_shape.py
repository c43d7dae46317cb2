"""The rules that make or rearrange elements, against PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from check import ALL, CONTEXT, DTYPES, NUMBERS, check_equal, check_op, make_data, run_op

from lamina import dialects, reference

# op with T for the element type, PyTorch's function, shapes of the arguments
CASES = [
    ("prim.broadcast %a dims [1] : tensor<3xT> to tensor<2x3x4xT>", lambda a: a[None, :, None].expand(2, 3, 4), [(3,)]),
    ("prim.broadcast %a dims [] : tensor<T> to tensor<2x0xT>", lambda a: a.expand(2, 0), [()]),
    (
        "prim.broadcast %a dims [0, 2] : tensor<1x2xT> to tensor<1x3x2xT>",
        lambda a: a[:, None].expand(1, 3, 2),
        [(1, 2)],
    ),
    (
        "prim.transpose %a [2, 0, 1] : tensor<2x3x4xT> to tensor<4x2x3xT>",
        lambda a: a.permute(2, 0, 1),
        [(2, 3, 4)],
    ),
    ("prim.transpose %a [] : tensor<T> to tensor<T>", lambda a: a, [()]),
    ("prim.reshape %a : tensor<2x6xT> to tensor<3x1x4xT>", lambda a: a.reshape(3, 1, 4), [(2, 6)]),
    ("prim.reshape %a : tensor<0x6xT> to tensor<3x0xT>", lambda a: a.reshape(3, 0), [(0, 6)]),
    ("prim.reshape %a : tensor<1x1xT> to tensor<T>", lambda a: a.reshape(()), [(1, 1)]),
    (
        "prim.slice %a [1, 0] to [5, 4] step [2, 3] : tensor<6x4xT> to tensor<2x2xT>",
        lambda a: a[1:5:2, 0:4:3],
        [(6, 4)],
    ),
    ("prim.slice %a [2] to [2] step [1] : tensor<2xT> to tensor<0xT>", lambda a: a[2:2], [(2,)]),
    (
        "prim.concatenate %a, %b, %c dim 1 : (tensor<2x1xT>, tensor<2x0xT>, tensor<2x3xT>) -> tensor<2x4xT>",
        lambda a, b, c: torch.cat([a, b, c], 1),
        [(2, 1), (2, 0), (2, 3)],
    ),
    ("prim.reverse %a dims [0, 2] : tensor<2x3x4xT>", lambda a: a.flip(0, 2), [(2, 3, 4)]),
    ("prim.reverse %a dims [] : tensor<2xT>", lambda a: a, [(2,)]),
]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(("op", "function", "shapes"), CASES, ids=[op for op, *_ in CASES])
def test_rearrangement(op, function, shapes, dtype):
    inputs = [make_data(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes)]
    check_op(op.replace("T>", f"{dtype}>"), function, inputs)


@pytest.mark.parametrize("dtype", ALL)
def test_pad(dtype):
    op = f"prim.pad %a, %b low [1, 0] high [0, 2] : tensor<2x3x{dtype}>, tensor<{dtype}> to tensor<3x5x{dtype}>"
    check_op(
        op, lambda a, b: F.pad(a, (0, 2, 1, 0), value=b.item()), [make_data(dtype, 2, 3), make_data(dtype, seed=1)]
    )


@pytest.mark.parametrize("dtype", NUMBERS)
def test_iota(dtype):
    check_op(f"prim.iota 1 : tensor<2x3x{dtype}>", lambda: torch.arange(3).to(DTYPES[dtype]).expand(2, 3), [])


def test_iota_rounds_and_wraps():
    check_op("prim.iota 0 : tensor<300xbf16>", lambda: torch.arange(300, dtype=torch.bfloat16), [])
    check_op("prim.iota 0 : tensor<300xi8>", lambda: torch.arange(300).to(torch.int8), [])


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("dense<[1.5, -0.0, 0x7F800000]> : tensor<3xf32>", torch.tensor([1.5, -0.0, torch.inf])),
        ("dense<[1.5, -0.0, 0xFF80, 0.1]> : tensor<4xbf16>", torch.tensor([1.5, -0.0, -torch.inf, 0.1]).bfloat16()),
        ("dense<[[2.5], [-3.0]]> : tensor<2x1xbf16>", torch.tensor([[2.5], [-3.0]]).bfloat16()),
        ("dense<7.0> : tensor<2x2xbf16>", torch.full((2, 2), 7.0).bfloat16()),
        ("dense<0.5> : tensor<bf16>", torch.tensor(0.5).bfloat16()),
        ("dense<0x7FC0> : tensor<1xbf16>", torch.tensor([torch.nan]).bfloat16()),
        ("dense<0.1> : tensor<2xf16>", torch.tensor([0.1, 0.1]).half()),
        ("dense<[true, false]> : tensor<2xi1>", torch.tensor([True, False])),
        ("dense<false> : tensor<50xi1>", torch.zeros(50, dtype=torch.bool)),
        ("dense<255> : tensor<ui8>", torch.tensor(255, dtype=torch.uint8)),
        ("dense<-9223372036854775808> : tensor<1xi64>", torch.tensor([-(2**63)])),
        ("dense<1.0> : tensor<0x3xbf16>", torch.ones(0, 3).bfloat16()),
    ],
)
def test_constant(literal, expected):
    check_op(f"prim.constant {literal}", lambda: expected, [])


def test_long_bfloat16_constant():
    expected = torch.arange(200).bfloat16()
    words = expected.view(torch.int16).numpy().tobytes().hex().upper()
    check_op(f'prim.constant dense<"0x{words}"> : tensor<200xbf16>', lambda: expected, [])


INDEX = torch.tensor([[2, 0], [1, 1]])
OTHER = torch.tensor([[3, 3], [0, 1]])

GATHERS = [
    ("prim.gather %a[%b] dims [0] : (tensor<3x4xT>, tensor<2x2xi64>) -> tensor<2x2x4xT>", lambda a, i: a[i], [INDEX]),
    ("prim.gather %a[%b] dims [1] : (tensor<3x4xT>, tensor<2x2xi64>) -> tensor<2x2x3xT>", lambda a, i: a.T[i], [OTHER]),
    (
        "prim.gather %a[%b, %c] dims [0, 1] : (tensor<3x4xT>, tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xT>",
        lambda a, i, j: a[i, j],
        [INDEX, OTHER],
    ),
    (
        "prim.gather %a[%b, %c] dims [1, 0] : (tensor<3x4xT>, tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xT>",
        lambda a, j, i: a[i, j],
        [OTHER, INDEX],
    ),
    ("prim.gather %a[%b] dims [0] : (tensor<3x4xT>, tensor<i64>) -> tensor<4xT>", lambda a, i: a[i], [INDEX[0, 0]]),
    (
        "prim.gather %a[%b] dims [0] : (tensor<3x4xT>, tensor<0xi64>) -> tensor<0x4xT>",
        lambda a, i: a[i],
        [INDEX[0, :0]],
    ),
]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize(("op", "function", "indices"), GATHERS)
def test_gather(op, function, indices, dtype):
    check_op(op.replace("T>", f"{dtype}>"), function, [make_data(dtype, 3, 4), *indices])


@pytest.mark.parametrize("index", [-1, 3])
def test_gather_out_of_bounds(index):
    op = "prim.gather %a[%b] dims [0] : (tensor<3xf32>, tensor<1xi64>) -> tensor<1xf32>"
    with pytest.raises(
        reference.ProgramError, match=f'loc\\("-":2:8\\): index {index} is out of bounds for dimension 0'
    ):
        run_op(op, [torch.zeros(3), torch.tensor([index])])


SCATTERS = {
    "assign": lambda a, b, i: a.index_put((i,), b),
    "sum": lambda a, b, i: a.index_add(0, i.flatten(), b.flatten(0, 1)),
    "prod": lambda a, b, i: a.index_reduce(0, i.flatten(), b.flatten(0, 1), "prod"),
    "max": lambda a, b, i: a.index_reduce(0, i.flatten(), b.flatten(0, 1), "amax"),
    "min": lambda a, b, i: a.index_reduce(0, i.flatten(), b.flatten(0, 1), "amin"),
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("mode", SCATTERS)
def test_scatter(mode, dtype):
    type = f"tensor<3x4x{dtype}>"
    op = f"prim.scatter <{mode}> %a, %b[%c] dims [0] : ({type}, tensor<2x2x4x{dtype}>, tensor<2x2xi64>) -> {type}"
    index = torch.tensor([[2, 0], [1, 1]]) if mode != "assign" else torch.tensor([[2, 2], [2, 0]])
    inputs = [make_data(dtype, 3, 4), make_data(dtype, 2, 2, 4, seed=1), index]
    check_op(op, SCATTERS[mode], inputs, exact=dtype not in ("f16", "bf16"))


def test_scatter_two_dims():
    type = "tensor<3x2x4xf32>"
    op = f"prim.scatter <assign> %a, %b[%c, %d] dims [2, 0] : ({type}, tensor<2x2xf32>, tensor<2xi64>, tensor<2xi64>) -> {type}"

    def expected(a, b, j, i):
        result = a.clone()
        result.transpose(0, 1)[:, i, j] = b.T
        return result

    check_op(
        op, expected, [make_data("f32", 3, 2, 4), make_data("f32", 2, 2), torch.tensor([3, 0]), torch.tensor([0, 2])]
    )


def test_symbolic_sizes():
    text = """
      func.func @main(%x: tensor<?x3xf32> {prim.sizes = affine_map<()[s0] -> (s0, 3)>}) -> (tensor<?xf32>, tensor<?x2xi64>, tensor<i64>) {
        %0 = prim.reshape %x sizes [s0 * 3] : tensor<?x3xf32> to tensor<?xf32>
        %1 = prim.slice %0 [s0] to [s0 * 3] step [2] : tensor<?xf32> to tensor<?xf32>
        %2 = prim.iota 0 sizes [s0 ceildiv 2, 2] : tensor<?x2xi64>
        %3 = prim.size [s0 mod 4 + s0 floordiv 2] : tensor<i64>
        return %1, %2, %3 : tensor<?xf32>, tensor<?x2xi64>, tensor<i64>
      }"""
    module = dialects.parse(text, CONTEXT)
    for size in (0, 1, 5):
        x = make_data("f32", size, 3)
        expected = [
            x.flatten()[size::2],
            torch.arange((size + 1) // 2)[:, None].expand(-1, 2),
            torch.tensor(size % 4 + size // 2),
        ]
        for actual, wanted in zip(reference.run(module, reference.from_torch(x)), expected, strict=True):
            check_equal(reference.to_torch(actual), wanted)
