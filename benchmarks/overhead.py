"""What a call of a compiled program costs beyond its kernels: the checks of its arguments, its results, its launches.

The functions are so small that their kernels take nanoseconds; all that is measured is the call.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import torch
import torch.nn as nn

LIMIT = 10e-6


class Chain(nn.Module):
    """Row softmaxes of different dimensions in turn, each a kernel of its own."""

    def __init__(self, length: int):
        super().__init__()
        self.length = length

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in range(self.length):
            x = x.softmax(step % 2)
        return x


def _cases() -> dict[str, tuple[Callable[..., Any], tuple, Any]]:
    """By name a function, its arguments and dynamic_shapes."""
    x = torch.randn(16)
    rows = torch.export.Dim("rows", min=1, max=1 << 20)
    linear = nn.Linear(8, 8).eval()
    return {
        "one argument": (lambda x: x * 2 + 1, (x,), None),
        "four arguments": (lambda a, b, c, d: a * b + c * d, (x,) * 4, None),
        "four results": (lambda x: (x + 1, x + 2, x + 3, x + 4), (x,), None),
        "a dynamic size": (lambda x: x * 2 + 1, (torch.randn(4, 4),), {"x": {0: rows}}),
        "frozen weights": (linear, (torch.randn(1, 8),), None),
        "8 launches": (Chain(8), (torch.randn(4, 4),), None),
    }


def seconds(call: Callable[[], Any], blocks: int, count: int = 2000) -> float:
    """Of a call: the least of the blocks' means, which other processes disturb least."""
    call()
    means = []
    for _ in range(blocks):
        start = time.perf_counter()
        for _ in range(count):
            call()
        means.append((time.perf_counter() - start) / count)
    return min(means)


def _parts(program: Any, arguments: tuple, blocks: int) -> dict[str, float]:
    """Seconds of the call, and of what results, the executable (with what it prepares) and native code take of it."""
    executable = program.executable
    seen: list[tuple] = []
    native: list[tuple] = []

    class Library:
        """Keeps what the executable hands to native code."""

        def call(self, *values: Any) -> None:
            native.append(values)
            library.call(*values)

    class Spy:
        """Keeps what the call hands to the executable."""

        def __call__(self, inputs: list, outputs: list, symbols: list) -> None:
            seen.append((inputs, outputs, symbols))
            executable(inputs, outputs, symbols)

    from lamina.frontend.call import generate

    generate(program.program, Spy())(arguments)
    library, executable._library = executable._library, Library()
    executable(*seen[0])
    executable._library = library
    outputs = seen[0][1]
    return {
        "call": seconds(lambda: program(*arguments), blocks),
        "results": seconds(lambda: [torch.empty_strided(o.shape, o.stride()) for o in outputs], blocks),
        "executable": seconds(lambda: executable(*seen[0]), blocks),
        "native": seconds(lambda: library.call(*native[0]), blocks),
    }


@click.command(help=__doc__, epilog="Exit code 1: a call of an ahead-of-time program took more than 10 microseconds.")
@click.option("--blocks", default=20, help="Blocks of 2000 calls; the best counts.")
@click.option("--jit/--no-jit", default=True, help="Measure torch.compile with this backend and with the default one.")
def main(blocks: int, jit: bool) -> None:
    import lamina
    from lamina.frontend.dynamo import backend

    heads = ["call", "results", "executable", "native", "eager", "torch.compile", "inductor"]
    click.echo(f"{'microseconds of a call':24}" + "".join(f"{head:>14}" for head in heads))
    worst = 0.0
    for name, (function, arguments, dynamic) in _cases().items():
        with torch.no_grad():
            program = lamina.compile(function, arguments, dynamic_shapes=dynamic)
            figures = _parts(program, arguments, blocks)
            figures["eager"] = seconds(partial(function, *arguments), blocks)
            if jit:
                for column, choice in (("torch.compile", backend), ("inductor", "inductor")):
                    torch.compiler.reset()
                    compiled = torch.compile(function, backend=choice, dynamic=dynamic is not None)
                    figures[column] = seconds(partial(compiled, *arguments), blocks)
        worst = max(worst, figures["call"])
        click.echo(f"{name:24}" + "".join(f"{1e6 * figures[h]:14.2f}" if h in figures else f"{'':14}" for h in heads))
    click.echo(
        f"The dearest call of an ahead-of-time program: {1e6 * worst:.2f} us, the limit is {1e6 * LIMIT:.0f} us."
    )
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
