"""Arguments for a model, from the command line: random tensors by type and shape, .npy files, numbers."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import click

from .errors import UserError

if TYPE_CHECKING:
    import torch

_DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u8": "uint8", "i1": "bool", "bool": "bool",
}  # fmt: skip
_LONG = {long: short for short, long in _DTYPES.items()}
_TENSOR = re.compile(r"(?P<dtype>[a-z]+\d*)\[(?P<sizes>[\d,\sx]*)\](?::(?P<below>\d+))?")
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<rest>.*)", re.DOTALL)


def dtype_name(dtype: Any) -> str:
    """The name of a torch dtype as a user writes it."""
    return _LONG[str(dtype).removeprefix("torch.")]


MOST_ELEMENTS = 1 << 33


@dataclass(frozen=True)
class InputSpec:
    """One argument as the user wrote it.

    Attributes:
        text: as it was written.
        name: the parameter's name, or None for the next one by position.
        dtype, sizes: of a random tensor.
        below: integers are drawn from 0 up to this, exclusive.
        file: a .npy file.
        value: a number, if it is neither.
    """

    text: str
    name: Optional[str] = None
    dtype: Optional[str] = None
    sizes: tuple[int, ...] = ()
    below: Optional[int] = None
    file: Optional[Path] = None
    value: Any = None


class InputType(click.ParamType):
    """``[name=]f32[2,3]``, ``[name=]i64[2,3]:1000``, ``[name=]x.npy``, or a number."""

    name = "input"

    def convert(self, value: Any, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> InputSpec:
        if isinstance(value, InputSpec):
            return value
        named = _NAMED.fullmatch(value)
        name, rest = (named["name"], named["rest"]) if named else (None, value)
        if rest.endswith(".npy"):
            return InputSpec(value, name, file=Path(rest))
        match = _TENSOR.fullmatch(rest)
        if match:
            dtype = _DTYPES.get(match["dtype"], match["dtype"] if match["dtype"] in _LONG else None)
            if dtype is None:
                self.fail(f"{value!r}: {match['dtype']} is none of {', '.join(_DTYPES)}", param, ctx)
            sizes = tuple(int(size) for size in re.split(r"[,x\s]+", match["sizes"].strip(", ")) if size)
            count = 1
            for size in sizes:
                count *= size
            if count > MOST_ELEMENTS:
                self.fail(f"{value!r} has {count} elements, more than the {MOST_ELEMENTS} that are allowed", param, ctx)
            below = int(match["below"]) if match["below"] else None
            if below == 0:
                self.fail(f"{value!r}: there is no number from 0 up to 0", param, ctx)
            return InputSpec(value, name, dtype, sizes, below)
        try:
            number = ast.literal_eval(rest.capitalize() if rest in ("true", "false", "none") else rest)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            number = self
        if not isinstance(number, (bool, int, float, type(None))):
            self.fail(
                f"{value!r} is none of: f32[2,3], i64[2,3]:1000, x.npy, a number; each after NAME= if wanted",
                param,
                ctx,
            )
        return InputSpec(value, name, value=number)


def make_inputs(specs: tuple[InputSpec, ...], seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments by position and by name.

    Raises:
        UserError: a file cannot be read, or a name is given twice.
    """
    import torch

    generator = torch.Generator().manual_seed(seed % (1 << 64))
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for spec in specs:
        value = _make(spec, generator)
        if spec.name is None:
            if named:
                raise UserError(f"--input {spec.text} has no name but follows one that has")
            positional.append(value)
        elif spec.name in named:
            raise UserError(f"--input {spec.name}= is given twice")
        else:
            named[spec.name] = value
    return tuple(positional), named


def _make(spec: InputSpec, generator: torch.Generator) -> Any:
    import torch

    if spec.file is not None:
        return _load(spec.file)
    if spec.dtype is None:
        return spec.value
    dtype = getattr(torch, spec.dtype)
    return random_tensor(spec.sizes, dtype, generator, spec.below)


def random_tensor(
    sizes: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator, below: Optional[int] = None
) -> torch.Tensor:
    """Normal floats, integers from 0 up to `below` (by default 10), or truths."""
    import torch

    if dtype is torch.bool:
        return torch.randint(0, 2, sizes, generator=generator).bool()
    if dtype.is_floating_point:
        return torch.randn(sizes, generator=generator, dtype=torch.float32).to(dtype)
    most = min(below or 10, torch.iinfo(dtype).max)
    return torch.randint(0, most, sizes, generator=generator, dtype=torch.int64).to(dtype)


def _load(path: Path) -> torch.Tensor:
    """The tensor of a .npy file; objects, which would be unpickled, are refused.

    Raises:
        UserError: it cannot be read.
    """
    import numpy as np
    import torch

    try:
        array = np.load(path, allow_pickle=False)
        if not isinstance(array, np.ndarray):
            raise ValueError("it holds several arrays")
        return torch.from_numpy(np.array(array.astype(array.dtype.newbyteorder("=")), order="C"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from error
    except Exception as error:
        raise UserError(f"{path} is no .npy file of numbers: {error}") from error
