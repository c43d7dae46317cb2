"""lamina-expand-math against f64: special values, denormals, random bits and dense ranges, within a bound in ulp."""

import numpy as np
import pytest
import torch

from math_harness import SIGMOID, Loop, ulp_errors, unary

# name: (f64 reference, bound in ulp, ranges to walk densely)
UNARY = {
    "exp": (torch.exp, 1.0, [(-104, 89), (-1, 1), (-104, -87)]),
    "exp2": (torch.exp2, 1.0, [(-150, 129), (-1, 1)]),
    "expm1": (torch.expm1, 1.6, [(-18, 89), (-1, 1)]),
    "log": (torch.log, 1.0, [(0, 4), (0.7, 1.5), (0, 1e-37)]),
    "log2": (torch.log2, 1.1, [(0, 4), (0.7, 1.5), (0, 1e-37)]),
    "log10": (torch.log10, 1.1, [(0, 4), (0.7, 1.5), (0, 1e-37)]),
    "log1p": (torch.log1p, 1.6, [(-1, 4), (-0.1, 0.1)]),
    "tanh": (torch.tanh, 1.6, [(-10, 10), (0.5, 0.6)]),
    "sinh": (torch.sinh, 1.8, [(-90, 90), (-2, 2)]),
    "cosh": (torch.cosh, 1.6, [(-90, 90), (-2, 2)]),
    "erf": (torch.erf, 1.3, [(-4.5, 4.5), (0.85, 1.1)]),
    "atan": (torch.atan, 1.6, [(-4, 4), (-100, 100)]),
    "sin": (torch.sin, 1.6, [(-10, 10), (-131072, 131072)]),
    "cos": (torch.cos, 1.6, [(-10, 10), (-131072, 131072)]),
    "rsqrt": (lambda x: 1 / torch.sqrt(x), 1.6, [(0, 4)]),
}


def special_values() -> np.ndarray:
    """Zeros, denormals, the ends of every binade, infinities, NaN, quarters and their neighbours, of both signs."""
    info = np.finfo(np.float32)
    powers = np.ldexp(np.float32(1), np.arange(-149, 128)).astype(np.float32)
    near = np.concatenate([np.arange(0, 200, 0.25), [np.pi / 2, np.pi, np.log(2), info.max]]).astype(np.float32)
    values = np.concatenate([powers, near, [0, info.smallest_subnormal, info.tiny, np.inf, np.nan]]).astype(np.float32)
    with np.errstate(over="ignore"):
        above, below = np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf))
    values = np.concatenate([values, above, below])
    return np.concatenate([values, -values])


def inputs(ranges: list[tuple[float, float]]) -> np.ndarray:
    """Special values, 2^20 random bit patterns and 2^17 points of every range."""
    random = np.random.default_rng(0).integers(0, 2**32, 2**20, dtype=np.uint32).view(np.float32)
    dense = [np.linspace(low, high, 2**17, dtype=np.float32) for low, high in ranges]
    return np.concatenate([special_values(), random, *dense])


def worst(values: np.ndarray, exact: torch.Tensor, *arguments: np.ndarray) -> str:
    errors = ulp_errors(values, exact.numpy())
    at = int(np.argmax(errors))
    return errors[at], f"{errors[at]} ulp at {[a[at] for a in arguments]}: {values[at]} for {exact[at].item()}"


@pytest.mark.parametrize("name", UNARY)
def test_unary_is_within_its_bound(name):
    reference, bound, ranges = UNARY[name]
    x = inputs(ranges)
    error, message = worst(unary(name)(x), reference(torch.from_numpy(x).double()), x)
    assert error <= bound, message


@pytest.mark.parametrize("name", UNARY)
def test_every_width_gives_the_same_bits(name):
    x = np.resize(inputs([(-8, 8)]), 2**14)
    x[::3] = np.linspace(-8, 8, len(x[::3]))
    wide = unary(name)(x)
    for lanes in (0, 3, 8, 64):
        assert np.array_equal(unary(name, lanes=lanes)(x), wide, equal_nan=True), lanes


def test_sigmoid_is_within_its_bound():
    x = inputs([(-110, 100), (-8, 8)])
    error, message = worst(Loop(SIGMOID)(x), torch.sigmoid(torch.from_numpy(x).double()), x)
    assert error <= 2, message


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Pairs of special values, of random bit patterns, and of ordinary numbers, the powers of which are finite."""
    some = np.array([0, 0.5, 1, 1.5, 2, 3, 1e-40, 1e38, 16777215, 16777216, 33554433, np.inf], np.float32)
    some = np.concatenate([some, -some, [np.float32(np.nan)]])
    a, b = (m.ravel() for m in np.meshgrid(some, some))
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 2**32, (2, 2**18), dtype=np.uint32).view(np.float32)
    ordinary = generator.uniform(0, 10, 2**18).astype(np.float32), generator.uniform(-40, 40, 2**18).astype(np.float32)
    near = (
        generator.uniform(0.99, 1.01, 2**16).astype(np.float32),
        generator.uniform(-9e3, 9e3, 2**16).astype(np.float32),
    )
    whole = generator.uniform(-10, 10, 2**16).astype(np.float32), generator.integers(-30, 30, 2**16).astype(np.float32)
    return tuple(np.concatenate(part) for part in zip((a, b), bits, ordinary, near, whole))


@pytest.mark.parametrize("name, reference, bound", [("powf", torch.pow, 0.51), ("atan2", torch.atan2, 2.0)])
def test_binary_is_within_its_bound(name, reference, bound):
    a, b = pairs()
    values = Loop(f"%r = math.{name} %a, %b : TYPE", operands=2)(a, b)
    error, message = worst(values, reference(torch.from_numpy(a).double(), torch.from_numpy(b).double()), a, b)
    assert error <= bound, message


LIBM = {
    "acos": torch.acos, "acosh": torch.acosh, "asin": torch.asin, "asinh": torch.asinh, "atan": torch.atan,
    "atanh": torch.atanh, "cbrt": lambda x: torch.from_numpy(np.cbrt(x.numpy())), "cos": torch.cos, "cosh": torch.cosh,
    "erf": torch.erf, "erfc": torch.erfc, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log": torch.log,
    "log10": torch.log10, "log1p": torch.log1p, "log2": torch.log2, "sin": torch.sin, "sinh": torch.sinh,
    "tan": torch.tan, "tanh": torch.tanh, "rsqrt": torch.rsqrt, "sqrt": torch.sqrt, "absf": torch.abs,
    "ceil": torch.ceil, "floor": torch.floor, "roundeven": torch.round, "trunc": torch.trunc,
}  # fmt: skip


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("name", LIBM)
def test_every_op_compiles_in_both_types(name, element, lanes):
    kind = np.float32 if element == "f32" else np.float64
    x = np.concatenate([np.linspace(-3, 3, 512), np.linspace(0, 1, 512), [np.inf, -np.inf, np.nan, 0.0, -0.0]]).astype(
        kind
    )
    values = unary(name, element=element, lanes=lanes)(x)
    exact = LIBM[name](torch.from_numpy(x).double()).numpy()
    np.testing.assert_allclose(values, exact, rtol=1e-14 if element == "f64" else 3e-7, atol=1e-300)


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("name, reference", [("powf", np.power), ("atan2", np.arctan2), ("copysign", np.copysign)])
def test_binary_ops_compile_in_f64(name, reference, lanes):
    a, b = np.linspace(0.1, 3, 1024), np.linspace(-3, 3, 1024)
    values = Loop(f"%r = math.{name} %a, %b : TYPE", operands=2, element="f64", lanes=lanes)(a, b)
    np.testing.assert_allclose(values, reference(a, b), rtol=1e-14)
