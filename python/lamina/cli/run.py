"""``lamina run``: compiles a program, runs it, and compares it with PyTorch."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click

from .errors import UserError
from .options import program_options, request_of
from .output import Progress, table, write_file
from .sources import Source, open_source

if TYPE_CHECKING:
    import torch


@click.command("run")
@program_options
@click.option("--target", metavar="NAME", default="cpu", show_default=True, help="The target (see `lamina targets`).")
@click.option(
    "--compare",
    type=click.Choice(["eager", "reference"]),
    help="Prints how far the results are from those of PyTorch, or of the NumPy interpreter of prim; exit code 1 if "
    "further than torch.testing allows.",
)
@click.option("-o", "--output", metavar="FILE", help="A .npz file for the outputs, as out0, out1, ...")
def run_command(target: str, compare: Optional[str], output: Optional[str], **program: Any) -> int:
    """Compiles and runs the program of FILE, which is as for `lamina compile`.

    Without --input, a .pt2 file runs on the example arguments in it, and a .mlir file on random ones.

    \b
    Examples:
      lamina run model.py:Net --input f32[32,512]
      lamina run model.py:Net --input x.npy --compare eager -o out.npz
      lamina run module.mlir --compare reference
    """
    from lamina.targets import target_class

    target_class(target)
    if output is not None and not output.endswith(".npz"):
        raise click.BadParameter(f"{output!r} does not end in .npz", param_hint="-o")
    progress = Progress()
    with progress.step("loading"):
        source = open_source(request_of(**program))
    other = _other(source, compare)
    args, kwargs = source.arguments()
    with progress.step("compiling"):
        compiled = source.compile(target)
    with progress.step("running"):
        results = _call(compiled, args, kwargs, "the compiled program")
    outputs = _leaves(results)
    print(_described(outputs))
    if output is not None:
        _save(Path(output), outputs)
    if other is None:
        return 0
    with progress.step(f"running {compare}"):
        expected = _leaves(_call(other(), args, kwargs, str(compare)))
    return _compare(outputs, expected, str(compare))


def _other(source: Source, compare: Optional[str]) -> Optional[Callable[[], Callable[..., Any]]]:
    """What makes the program that is compared with."""
    if compare is None:
        return None
    if compare == "reference":
        return lambda: source.compile("reference")
    eager = source.eager
    if eager is None:
        raise UserError(f"{source.name} is no PyTorch program; use --compare reference")
    return lambda: eager


def _call(function: Callable[..., Any], args: tuple, kwargs: dict, what: str) -> Any:
    """Calls a program on copies, as it may write to its arguments.

    Raises:
        UserError: it raises.
    """
    import torch
    import torch.utils._pytree as pytree

    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda t: t.clone(), (args, kwargs))
    try:
        with torch.no_grad():
            return function(*args, **kwargs)
    except Exception as error:
        raise UserError(f"{what} raised {type(error).__name__}: {error}") from error


def _leaves(value: Any) -> list[tuple[str, Any]]:
    """The leaves of what a program returned, with their places in it."""
    import torch.utils._pytree as pytree

    return [(pytree.keystr(path), leaf) for path, leaf in pytree.tree_flatten_with_path(value)[0]]


def _described(outputs: list[tuple[str, Any]]) -> str:
    """A line for each output: name, type, and its first values."""
    import torch

    rows = []
    for number, (place, value) in enumerate(outputs):
        name = f"out{number}{place}"
        if isinstance(value, torch.Tensor):
            dtype = str(value.dtype).removeprefix("torch.")
            values = ", ".join(_number(v) for v in value.detach().flatten()[:4].tolist())
            rows.append(
                [name, f"{dtype}[{','.join(map(str, value.shape))}]", values + (", ..." if value.numel() > 4 else "")]
            )
        else:
            rows.append([name, type(value).__name__, repr(value)[:80]])
    return table(rows) if rows else "no outputs"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _save(path: Path, outputs: list[tuple[str, Any]]) -> None:
    import numpy as np
    import torch

    arrays = {}
    for number, (_, value) in enumerate(outputs):
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu()
            # NumPy has no bfloat16; float32 holds each of its values
            arrays[f"out{number}"] = (value.float() if value.dtype is torch.bfloat16 else value).numpy()
        else:
            arrays[f"out{number}"] = np.asarray(value)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    write_file(path, buffer.getvalue())


def _compare(outputs: list[tuple[str, Any]], expected: list[tuple[str, Any]], what: str) -> int:
    """Prints a line for each output; 1 if any differs."""
    import torch

    if len(outputs) != len(expected):
        print(f"differs: {len(outputs)} outputs, {what} has {len(expected)}")
        return 1
    rows, code = [], 0
    for number, ((place, value), (_, other)) in enumerate(zip(outputs, expected)):
        name = f"out{number}{place}"
        try:
            torch.testing.assert_close(value, other, equal_nan=True)
            verdict = "equal" if _maximum(value, other) == 0 else "close"
        except (AssertionError, TypeError, ValueError) as error:
            verdict, code = f"differs: {str(error).splitlines()[0]}", 1
        rows.append([name, f"largest error {_maximum(value, other):.3g}", verdict])
    print(f"compared with {what}:")
    print(table(rows, "  ") if rows else "  no outputs")
    return code


def _maximum(value: Any, other: Any) -> float:
    """The largest absolute difference; NaN only where one of the two is not a number and the other is."""
    import torch

    if not isinstance(value, torch.Tensor) or not isinstance(other, torch.Tensor) or value.shape != other.shape:
        return (
            0.0
            if type(value) is type(other) and not isinstance(value, torch.Tensor) and value == other
            else float("nan")
        )
    a, b = difference_pair(value, other)
    equal = (a == b) | (a.isnan() & b.isnan())
    return torch.where(equal, 0.0, (a - b).abs()).max().item() if a.numel() else 0.0


def difference_pair(value: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both in float64."""
    return value.detach().double(), other.detach().double()
