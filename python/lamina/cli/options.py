"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .inputs import InputType
from .sources import Request


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """FILE and the options that say what to capture; `request_of` takes them."""
    decorators = [
        click.argument("file"),
        click.option(
            "--input",
            "--inputs",
            "inputs",
            type=InputType(),
            multiple=True,
            metavar="[NAME=]SPEC",
            help="An argument: f32[32,512], i64[8]:1000 (numbers below 1000), x.npy or a number. Give one for each.",
        ),
        click.option("--inputs-from", metavar="FILE.py:FUNC", help="A function that returns the arguments."),
        click.option(
            "--dynamic",
            multiple=True,
            metavar="ARG:DIM=NAME[:MIN..MAX]",
            help="A size that may change between calls, such as x:0=batch.",
        ),
        click.option(
            "--seed", type=click.IntRange(0), default=0, show_default=True, help="Of weights and random inputs."
        ),
        click.option("--no-freeze", is_flag=True, help="Weights are read at each call, not folded and packed once."),
        click.option(
            "--fallback",
            type=click.Choice(["eager", "error"]),
            default="error",
            show_default=True,
            help="What becomes of an operator that cannot be compiled: PyTorch runs it, or it is an error.",
        ),
        click.option(
            "--schedule",
            metavar="FILE",
            help="Choices by which kernels for a GPU are compiled, as `python -m lamina_runtime.tune` measured them.",
        ),
    ]
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def request_of(
    file: str, inputs: Any, inputs_from: Any, dynamic: Any, seed: int, no_freeze: bool, fallback: str, schedule: Any
) -> Request:
    """What `program_options` parsed."""
    return Request(file, tuple(inputs), inputs_from, tuple(dynamic), not no_freeze, fallback, seed, schedule)
