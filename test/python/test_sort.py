"""Sorting on the CPU: order, indices, NaN and ties as eager has them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import lamina

DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def make(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Numbers of which many are equal; floats with NaN, infinities and zeros of both signs."""
    generator = torch.Generator().manual_seed(len(shape))
    numbers = torch.randint(-4, 5, shape, generator=generator)
    if not dtype.is_floating_point:
        return numbers.to(dtype)
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-8])
    chosen = special[torch.randint(0, 6, shape, generator=generator)]
    return torch.where(numbers > 2, chosen, numbers.float()).to(dtype)


def check(function: Callable[..., object], *inputs: torch.Tensor) -> None:
    """Compares with eager, bits and all."""
    torch._dynamo.reset()
    results = torch.compile(function, backend="lamina", options={"fallback": "error"})(*inputs)
    for result, expected in zip(results, function(*inputs), strict=True):
        assert result.dtype == expected.dtype and result.shape == expected.shape
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)
        if result.dtype.is_floating_point:
            zeros = expected == 0
            assert torch.equal(result[zeros].signbit(), expected[zeros].signbit())


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_element_types(dtype: torch.dtype, descending: bool) -> None:
    check(lambda x: torch.sort(x, dim=-1, descending=descending, stable=True), make((5, 67), dtype))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 9), (7, 1, 2), (0, 3, 2), (2, 0, 3), (33, 2, 17)], ids=str)
def test_shapes(shape: tuple[int, ...], dim: int) -> None:
    check(lambda x: torch.sort(x, dim=dim, stable=True), make(shape, torch.float32))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 9, 1000, 1024, 5000])
def test_sizes(size: int) -> None:
    check(lambda x: torch.sort(x, stable=True, descending=True), make((size,), torch.int32))


def test_a_scalar() -> None:
    check(lambda x: torch.sort(x), torch.tensor(3.0))


def test_inputs_that_are_not_contiguous() -> None:
    x = make((12, 20), torch.float32)
    for view in (x.t(), x[::2, 1::3], x.t()[3:], x[:, :1].expand(12, 7), x.flip(1)):
        check(lambda x: torch.sort(x, dim=1, stable=True), view)


def test_what_is_made_of_sorts() -> None:
    x = torch.randperm(7 * 30, generator=torch.Generator().manual_seed(0)).reshape(7, 30).float()
    check(lambda x: (torch.argsort(x, dim=0), torch.argsort(x * -2, stable=True)), x)
    check(lambda x: torch.topk(x, 5), x)
    check(lambda x: torch.topk(x + 1, 3, dim=0, largest=False), x)
    check(lambda x: (torch.sort(x.neg() * 2, dim=1)[0].cumsum(1),), x)


def test_a_size_that_is_dynamic() -> None:
    rows, columns = torch.export.Dim("rows", min=0), torch.export.Dim("columns", min=0)

    class Sort(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.sort(x, dim=1, stable=True)

    program = lamina.compile(Sort(), (make((3, 5), torch.float32),), dynamic_shapes=({0: rows, 1: columns},))
    for shape in ((3, 5), (1, 1), (0, 4), (4, 0), (2, 33), (9, 128)):
        x = make(shape, torch.float32)
        for result, expected in zip(program(x), torch.sort(x, dim=1, stable=True), strict=True):
            torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)
