"""Prints the errors of sums and products against float64, Lamina's beside eager's: the table of docs/numerics.md.

An error is the largest absolute difference over the largest absolute value of the exact result.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

import lamina

CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[tuple[int, ...], ...], float]] = {
    "product, K = 512": (torch.matmul, ((64, 512), (512, 256)), 0.0),
    "product, K = 4608": (torch.matmul, ((64, 4608), (4608, 256)), 0.0),
    "sum of rows of 4096": (lambda x: x.sum(1), ((4096, 4096),), 1.0),
    "sum of columns of 4096": (lambda x: x.sum(0), ((4096, 1024),), 1.0),
    "sum of 16 M elements": (lambda x: x.sum(), ((4096, 4096),), 1.0),
}


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., torch.Tensor]):
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


def main() -> None:
    print("| what | Lamina | eager |\n|---|---|---|")
    for name, (function, shapes, shift) in CASES.items():
        torch.manual_seed(0)
        args = tuple(torch.randn(shape) + shift for shape in shapes)
        exact = function(*(x.double() for x in args))
        results = lamina.compile(Function(function), args)(*args), function(*args)
        errors = [((result - exact).abs().max() / exact.abs().max()).item() for result in results]
        print(f"| {name} | {errors[0]:.1e} | {errors[1]:.1e} |")


if __name__ == "__main__":
    main()
