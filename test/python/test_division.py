"""Division by what does not change along a row: products with a reciprocal, with the bits of the division."""

import numpy as np
import pytest
import torch

import lamina


class ByRow(torch.nn.Module):
    def forward(self, x: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return x / d


def same_bits(a: torch.Tensor, b: torch.Tensor) -> None:
    nan = torch.isnan(a) & torch.isnan(b)
    assert torch.equal(torch.where(nan, 0, a.view(torch.int32)), torch.where(nan, 0, b.view(torch.int32)))


def check(x: np.ndarray, d: np.ndarray) -> None:
    arguments = (torch.from_numpy(x), torch.from_numpy(d))
    same_bits(lamina.compile(ByRow(), arguments)(*arguments), ByRow()(*arguments))


def with_exponents(rng: np.random.Generator, shape: tuple[int, ...], low: int, high: int) -> np.ndarray:
    """Random signs and mantissas, many of them nearly all zeros or ones, where quotients come near halves of units."""
    mantissa = rng.integers(0, 1 << 23, shape, dtype=np.uint32)
    near = rng.integers(0, 4, shape, dtype=np.uint32)
    edge = rng.integers(0, 16, shape, dtype=np.uint32)
    mantissa = np.where(near == 0, edge, np.where(near == 1, (1 << 23) - 1 - edge, mantissa)).astype(np.uint32)
    exponent = rng.integers(low + 127, high + 128, shape, dtype=np.uint32)
    sign = rng.integers(0, 2, shape, dtype=np.uint32)
    return (sign << 31 | exponent << 23 | mantissa).view(np.float32)


def test_common_exponents():
    rng = np.random.default_rng(0)
    check(with_exponents(rng, (2000, 1024), -40, 40), with_exponents(rng, (2000, 1), -32, 32))


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 100])
def test_any_bits(columns):
    """NaN, infinities, zeros, denormals and the borders of the range in which products do."""
    rng = np.random.default_rng(columns)
    x = rng.integers(0, 1 << 32, (3000, columns), dtype=np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 2.0**-126, 2.0**-64, 2.0**64, 3.4e38], np.float32)
    x = np.where(rng.random(x.shape) < 0.3, rng.choice(special, x.shape), x)
    d = np.where(
        rng.random((3000, 1)) < 0.5,
        rng.choice(np.append(special, np.float32([2.0**-32, 2.0**32, -1.0])), (3000, 1)),
        with_exponents(rng, (3000, 1), -40, 40),
    )
    check(x, d.astype(np.float32))
