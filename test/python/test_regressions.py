"""Programs that were once compiled wrong: results, and the memory around arguments and results."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.export import Dim

import lamina
from lamina.reference.values import ELEMENT_TYPES
from random_programs import TARGETS, check
from strategies import Program


def make_program(signature: str, body: str, args: list[np.ndarray], symbols: list[int] | None = None) -> Program:
    """A module with the function `@main(signature {body}`."""
    text = f"module {{\n  func.func @main({signature} {{\n{body}\n  }}\n}}\n"
    return Program(text, args, [None] * len(args), symbols or [])


DYNAMIC = "{prim.sizes = affine_map<()[s0] -> (s0)>}"

# What reads elements that are not there: a value of no elements, at the end of memory or at no address at all.
EMPTY = {
    "pad": (
        f"%x: tensor<?xf64> {DYNAMIC}, %p: tensor<f64>) -> tensor<?xf64>",
        """%0 = prim.slice %x [1] to [s0] step [1] : tensor<?xf64> to tensor<?xf64>
           %1 = prim.pad %0, %p low [1] high [2] : tensor<?xf64>, tensor<f64> to tensor<?xf64>
           return %1 : tensor<?xf64>""",
        [np.full([1], 2.5), np.array(3.0)],
        [1],
    ),
    "pad of a reshape": (
        "%x: tensor<?x6xf32> {prim.sizes = affine_map<()[s0] -> (s0, 6)>}, %p: tensor<f32>) -> tensor<3x?xf32>",
        """%0 = prim.reshape %x sizes [3, s0 * 2] : tensor<?x6xf32> to tensor<3x?xf32>
           %1 = prim.pad %0, %p low [0, 20] high [0, 2] : tensor<3x?xf32>, tensor<f32> to tensor<3x?xf32>
           return %1 : tensor<3x?xf32>""",
        [np.zeros([0, 6], np.float32), np.array(3, np.float32)],
        [0],
    ),
    "concatenate": (
        f"%x: tensor<?xf32> {DYNAMIC}, %y: tensor<40xf32>) -> tensor<?xf32>",
        """%0 = prim.reverse %x dims [0] : tensor<?xf32>
           %1 = prim.concatenate %0, %y dim 0 : (tensor<?xf32>, tensor<40xf32>) -> tensor<?xf32>
           return %1 : tensor<?xf32>""",
        [np.zeros([0], np.float32), np.arange(40, dtype=np.float32)],
        [0],
    ),
    "reduce_window": (
        f"%x: tensor<?xi32> {DYNAMIC}) -> tensor<?xi32>",
        """%0 = prim.reduce_window <max> %x window [2] strides [1] dilations [1] low [1] high [1]
             : tensor<?xi32> to tensor<?xi32>
           return %0 : tensor<?xi32>""",
        [np.zeros([0], np.int32)],
        [0],
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EMPTY)
def test_values_without_elements_are_not_read(name: str, target: str) -> None:
    check(make_program(*EMPTY[name]), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source,result", [("i32", "i16"), ("i64", "i32"), ("i32", "i8"), ("i64", "i8")])
def test_a_last_vector_of_one_lane_is_narrow(source: str, result: str, target: str) -> None:
    body = f"""%0 = prim.convert %x : tensor<33x{source}> to tensor<33x{result}>
               return %0 : tensor<33x{result}>"""
    array = np.arange(33, dtype=f"int{source[1:]}")
    check(make_program(f"%x: tensor<33x{source}>) -> tensor<33x{result}>", body, [array]), target)


BOOLS = {
    "scatter": (
        "%u: tensor<4xi1>, %i: tensor<4xi64>, %o: tensor<5xi1>) -> tensor<5xi1>",
        """%0 = prim.scatter <assign> %o, %u[%i] dims [0] : (tensor<5xi1>, tensor<4xi1>, tensor<4xi64>) -> tensor<5xi1>
           return %0 : tensor<5xi1>""",
        [np.array([True, False, False, True]), np.array([4, 1, 0, 2]), np.ones(5, bool)],
    ),
    "scan": (
        "%x: tensor<4x3xi1>) -> (tensor<4x3xi1>, tensor<4x3xi1>)",
        """%0 = prim.scan <all> %x dim 1 : tensor<4x3xi1>
           %1 = prim.scan <any> %x dim 0 : tensor<4x3xi1>
           return %0, %1 : tensor<4x3xi1>, tensor<4x3xi1>""",
        [np.arange(12).reshape(4, 3) % 5 != 2],
    ),
    "pad of a dynamic size": (
        f"%x: tensor<?xi1> {DYNAMIC}, %p: tensor<i1>) -> tensor<?xi1>",
        """%0 = prim.pad %x, %p low [1] high [2] : tensor<?xi1>, tensor<i1> to tensor<?xi1>
           return %0 : tensor<?xi1>""",
        [np.array([True]), np.array(False)],
        [1],
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", BOOLS)
def test_bools_are_bytes_in_memory(name: str, target: str) -> None:
    check(make_program(*BOOLS[name]), target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "ui8", "i1"])
def test_reads_and_writes_at_a_distance(dtype: str, target: str) -> None:
    # Gathers by indices and by strides, with a last vector that is not full.
    body = f"""%0 = prim.gather %x[%i] dims [0] : (tensor<40x{dtype}>, tensor<37xi64>) -> tensor<37x{dtype}>
               %1 = prim.transpose %y [1, 0] : tensor<5x11x{dtype}> to tensor<11x5x{dtype}>
               %2 = prim.slice %x [1] to [40] step [3] : tensor<40x{dtype}> to tensor<13x{dtype}>
               return %0, %1, %2 : tensor<37x{dtype}>, tensor<11x5x{dtype}>, tensor<13x{dtype}>"""
    signature = f"%x: tensor<40x{dtype}>, %i: tensor<37xi64>, %y: tensor<5x11x{dtype}>)"
    element = ELEMENT_TYPES[dtype]
    numbers = np.arange(55) % 7 % (2 if dtype == "i1" else 7)
    args = [numbers[:40].astype(element), np.arange(37) * 11 % 40, numbers.reshape(5, 11).astype(element)]
    program = make_program(f"{signature} -> (tensor<37x{dtype}>, tensor<11x5x{dtype}>, tensor<13x{dtype}>)", body, args)
    check(program, target)


@pytest.mark.parametrize("target", TARGETS)
def test_reductions_that_start_alike(target: str) -> None:
    body = """%0 = prim.arg_reduce <max> %x dim 0 : tensor<5xf32> to tensor<i64>
              %1 = prim.arg_reduce <max> %y dim 0 : tensor<5xf32> to tensor<i64>
              return %0, %1 : tensor<i64>, tensor<i64>"""
    x = np.array([3, 1, 5, 2, 5], np.float32)
    program = make_program("%x: tensor<5xf32>, %y: tensor<5xf32>) -> (tensor<i64>, tensor<i64>)", body, [x, x[::-1]])
    check(program, target)


def test_scans_of_many_dynamic_dimensions() -> None:
    # Slices of one row along the scan, of tiles of one row: which of the two sizes of 1 is gone is not to be guessed.
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        n = x.shape[0]
        indices = torch.arange(n)[None, None, None, :].expand(4, n, n, n)
        return indices.cumsum(2), indices.cummin(2)[0]

    program = lamina.compile(function, (torch.randn(7),), dynamic_shapes={"x": {0: Dim("n", min=3)}})
    for size in (3, 5, 9):
        x = torch.randn(size)
        torch.testing.assert_close(program(x), function(x), rtol=0, atol=0)


def flattened(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = x.flatten(1).relu()
    return y @ w, y, x.relu().permute(0, 2, 3, 1).reshape(4, -1) @ v


@pytest.mark.parametrize("frozen", [False, True])
def test_a_reshape_that_is_read_and_returned(frozen: bool) -> None:
    args = torch.randn(4, 3, 2, 2), torch.randn(12, 5), torch.randn(12, 3)
    compiled = lamina.compile(flattened, args) if frozen else torch.compile(flattened, backend="lamina")
    for actual, expected in zip(compiled(*args), flattened(*args), strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("count", [1, 3, 7])
def test_training_of_the_head_of_a_network(count: int, dynamic: bool) -> None:
    # Numbers that are computed from sizes, 1 / (n h w), reach what PyTorch runs between compiled parts.
    nn = torch.nn
    layers = [
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.LayerNorm(16),
        nn.Linear(16, 5),
        nn.ReLU(),
    ]
    model = nn.Sequential(*layers[:count])
    other = copy.deepcopy(model)
    torch._dynamo.reset()
    compiled = torch.compile(other, backend="lamina", dynamic=dynamic)
    x = torch.randn(3, 4, 4, 4, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    expected, actual = model(x), compiled(y)
    torch.testing.assert_close(actual, expected)
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    (actual * weight).sum().backward()
    torch.testing.assert_close(y.grad, x.grad, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(other.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)


ADDRESSED = {
    "a strided argument": (lambda x: x.as_strided((6,), (1,), 0) * 2, lambda: torch.arange(6.0)[::2]),
    "an argument with an offset": (lambda x: x.as_strided((2, 2), (2, 1)) * 2, lambda: torch.arange(9.0)[3:]),
    "an absolute offset": (lambda x: x.as_strided((2, 2), (2, 1), 1) * 2, lambda: torch.arange(9.0)[3:]),
    "more than the argument": (lambda x: x.as_strided((6,), (1,)) * 2, lambda: torch.arange(9.0)[:4]),
    "a transposed result": (lambda x: (x.t() + 1).as_strided((6,), (1,)), lambda: torch.arange(6.0).view(2, 3)),
    "a slice": (lambda x: x[:, :2].as_strided((4,), (1,)) + 1, lambda: torch.arange(12.0).view(3, 4)),
    "a slice of a result": (
        lambda x: (x + 1)[1:, 2:].as_strided((2, 2), (2, 1)),
        lambda: torch.arange(12.0).view(3, 4),
    ),
    "a piece of a result": (lambda x: (x + 1).split(2)[1].as_strided((5,), (1,), 2), lambda: torch.arange(12.0)),
    "a transposed argument": (lambda x: x.as_strided((4,), (2,), 1) * 2, lambda: torch.arange(12.0).view(3, 4).t()),
    "beside an eager call": (
        lambda x: torch.linalg.svdvals((x.t() + 1)[1:].as_strided((2, 2), (3, 1))) + x.as_strided((2,), (1,)),
        lambda: torch.arange(12.0).view(4, 3)[:, 1:],
    ),
    "a write": (lambda x: x.as_strided((3,), (2,), 1).fill_(5.0), lambda: torch.arange(9.0)),
    "a write into a transposed argument": (
        lambda x: x.as_strided((3,), (2,), 1).fill_(5.0),
        lambda: torch.arange(12.0).view(3, 4).t(),
    ),
    "a write into a slice": (
        lambda x: x.as_strided((2,), (4,), 1).fill_(5.0),
        lambda: torch.arange(12.0).view(3, 4)[:, :2],
    ),
}


@pytest.mark.parametrize("name", ADDRESSED)
@pytest.mark.filterwarnings("ignore:Lamina cannot compile")
def test_as_strided_addresses_the_storage(name):
    torch._dynamo.reset()
    function, argument = ADDRESSED[name]
    mine, theirs = argument(), argument()
    got = torch.compile(function, backend="lamina")(mine)
    torch.testing.assert_close(got, function(theirs))
    torch.testing.assert_close(mine, theirs)


def test_as_strided_writes_no_memory_of_others():
    torch._dynamo.reset()
    with pytest.raises(lamina.CompileError, match="not the tensor's own"):
        torch.compile(lambda x: x.as_strided((2,), (2,), 1).fill_(5.0), backend="lamina")(torch.arange(12.0)[::2])


def test_as_strided_of_an_argument_that_starts_elsewhere_later():
    def f(x):
        return x.as_strided((2, 2), (2, 1), 1) * 2

    compiled = lamina.compile(f, (torch.arange(6.0),))
    torch.testing.assert_close(compiled(torch.arange(6.0)), f(torch.arange(6.0)))
    with pytest.raises(ValueError, match="does not start where its storage does"):
        compiled(torch.arange(9.0)[3:])


HALF, INF, NAN = torch.float16, float("inf"), float("nan")
WIDE = torch.tensor([70000, 3, 2049, -70000])
MIXED = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "floor_divide": torch.floor_divide,
    "fmod": torch.fmod,
    "remainder": torch.remainder,
    "xlogy": torch.xlogy,
    "pow": torch.pow,
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "where": lambda a, b: torch.where(a > 1, a, b),
    "maximum": torch.maximum,
    "fmax": torch.fmax,
    "copysign": torch.copysign,
    "hypot": torch.hypot,
    "greater": torch.gt,
    "scaled": lambda a, b: torch.add(a, b, alpha=2),
    "from": torch.rsub,
    "addcmul": lambda a, b: torch.addcmul(a, b, a),
}


def compiled_anew(function, *args):
    torch._dynamo.reset()
    return torch.compile(function, backend="lamina")(*args)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_integers_are_rounded_to_16_bits_as_in_eager(dtype):
    x = torch.tensor([0.5, 2, 1, 3], dtype=dtype)
    kinds = {
        "tensor": (x, WIDE),
        "one": (x, WIDE[:1]),
        "0-d": (x, WIDE[0]),
        "first": (WIDE, x),
        "first 0-d": (WIDE[0], x),
    }

    def all_of(a, b):
        return [function(a, b) for function in MIXED.values()]

    for kind, args in kinds.items():
        for name, got, expected in zip(MIXED, compiled_anew(all_of, *args), all_of(*args)):
            assert got.dtype == expected.dtype
            # one rounding of the function itself may differ
            torch.testing.assert_close(
                got,
                expected,
                equal_nan=True,
                rtol=2e-3 if dtype is HALF else 1e-2,
                atol=1e-7,
                msg=lambda m, what=f"{name} {kind}": f"{what}: {m}",
            )


@pytest.mark.parametrize(
    "x, exponent",
    [
        (torch.tensor(1e-30), torch.tensor(140)),
        (torch.tensor(0.0), torch.tensor(1000)),
        (torch.tensor([1e-38, 3e-39, 0.0, 1.5]), torch.tensor([200, -8, 5000, -5000])),
        (torch.tensor([1e-300, 1e300, 3.0, 7.0], dtype=torch.float64), torch.tensor([1100, -2050, -1075, -3000])),
        (torch.tensor([1e-3, 6e4], dtype=HALF), torch.tensor([20, -20], dtype=torch.int8)),
        (torch.tensor([2, 3]), torch.tensor([140, -1])),
        (torch.tensor([1e-30, 2.0]), torch.tensor([140.0, 0.5])),
    ],
)
def test_ldexp(x, exponent):
    expected = torch.ldexp(x, exponent)
    torch.testing.assert_close(compiled_anew(torch.ldexp, x, exponent), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16, torch.float32])
def test_roots_of_negative_zero_and_infinity(dtype):
    x = torch.tensor([-INF, -0.0, 0.0, INF, 4.0, NAN, -1.0], dtype=dtype)

    def f(x):
        return x**0.5, x**-0.5

    for got, expected in zip(compiled_anew(f, x), f(x)):
        torch.testing.assert_close(got, expected, equal_nan=True)
        assert torch.equal(got.signbit() & ~got.isnan(), expected.signbit() & ~expected.isnan())


@pytest.mark.parametrize("padding", [(2, 2, 0, 1), (3, 2, 1, 1), (2, 1, 1, 2), (3, 1, 1, 2)])
@pytest.mark.parametrize("values", ["-inf", "nan"])
def test_windows_of_infinities_and_nan(padding, values):
    x = torch.full((1, 2, 6, 5), -INF)
    if values == "nan":
        x[0, 0, 1, 1] = x[0, 0, 0, 0] = x[0, 1, 4, 4] = NAN
        x[0, 1, 2, 2] = 3

    def f(x):
        values, indices = torch.nn.functional.max_pool2d(x, *padding, return_indices=True)
        return values, indices

    (got, got_indices), (expected, indices) = compiled_anew(f, x), f(x)
    torch.testing.assert_close(got, expected, equal_nan=True)
    assert torch.equal(got_indices, indices)
    mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    compiled_anew(lambda x: f(x)[0] * 2, mine).sum().backward()
    f(theirs)[0].mul(2).sum().backward()
    assert torch.equal(mine.grad, theirs.grad)


def test_the_zero_of_an_extreme_is_the_element_at_its_index():
    def f(x):
        return [*x.max(1), *x.min(1), *x.cummax(1), *x.cummin(1)]

    x = torch.tensor([[0.0, -0.0, 0.0], [-0.0, 0.0, -0.0], [NAN, 0.0, 1.0], [1.0, NAN, 2.0]])
    for got, expected in zip(compiled_anew(f, x), f(x)):
        torch.testing.assert_close(got, expected, equal_nan=True)
        if got.is_floating_point():
            assert torch.equal(got.signbit() & ~got.isnan(), expected.signbit() & ~expected.isnan())


def test_negatives_of_memory():
    z = torch.tensor([1 + 2j, 3 - 4j])
    with pytest.warns(UserWarning, match="Lamina cannot compile"):
        torch.testing.assert_close(compiled_anew(lambda z: z.conj().imag * 2, z), z.conj().imag * 2)
    x = torch._neg_view(torch.arange(4.0))
    torch.testing.assert_close(compiled_anew(lambda x: x * 2 + 1, x), x * 2 + 1)
    program = lamina.compile(lambda x: x * 2 + 1, (torch.arange(4.0),))
    torch.testing.assert_close(program(x), x * 2 + 1)


TRUTHS = torch.tensor([True, False])
WRONG = {
    "max of nothing": (torch.max, torch.empty(0)),
    "min of nothing": (torch.min, torch.empty(0, 3)),
    "full of bytes": (lambda x: torch.full_like(x, 300), torch.ones(2, dtype=torch.int8)),
    "fill of bytes": (lambda x: x.clone().fill_(300), torch.ones(2, dtype=torch.int8)),
    "fill of halves": (lambda x: x.clone().fill_(1e6), torch.ones(2, dtype=HALF)),
    "fill of NaN": (lambda x: torch.full_like(x, NAN), torch.ones(2, dtype=torch.int32)),
    "masked fill": (lambda x: x.masked_fill(x > 0, 1e6), torch.ones(2, dtype=HALF)),
    "frac": (torch.frac, torch.ones(2, dtype=torch.int64)),
    "floor": (torch.floor, TRUTHS),
    "ceil": (torch.ceil, TRUTHS),
    "round": (torch.round, TRUTHS),
    "trunc": (torch.trunc, TRUTHS),
    "abs": (torch.abs, TRUTHS),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore:Lamina cannot compile")
def test_errors_of_eager_are_raised(name):
    function, x = WRONG[name]
    with pytest.raises(Exception) as expected:
        function(x)
    with pytest.raises(Exception) as raised:
        compiled_anew(lambda x: function(x), x)
    assert str(expected.value) in str(raised.value)


@pytest.mark.parametrize("value, dtype", [(-1, torch.uint8), (INF, HALF), (1.5, torch.int8), (300, torch.bool)])
def test_numbers_that_fill_a_tensor(value, dtype):
    x = torch.zeros(3, dtype=dtype)
    assert torch.equal(compiled_anew(lambda x: torch.full_like(x, value), x), torch.full_like(x, value))


def test_wrong_arguments_of_compile():
    for target in (None, 3):
        with pytest.raises(TypeError, match="target"):
            lamina.compile(torch.sin, (torch.ones(2),), target=target)
    for args in (None, torch.ones(2)):
        with pytest.raises(TypeError, match="tuple"):
            lamina.compile(torch.sin, args)
