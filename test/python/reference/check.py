"""Runs one op in the reference interpreter and in PyTorch, and compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import torch

from lamina import dialects, reference

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "ui8": torch.uint8,
    "i1": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
FLOATS = ["f64", "f32", "f16", "bf16"]
INTS = ["i64", "i32", "i16", "i8", "ui8"]
NUMBERS = FLOATS + INTS
ALL = [*NUMBERS, "i1"]

TOLERANCES = {"f64": 1e-12, "f32": 1e-5, "f16": 4e-3, "bf16": 3e-2}
"""Relative to the result's largest elements, for results whose order of computation is free."""

CONTEXT = dialects.make_context()


def get_type(tensor: torch.Tensor) -> str:
    """Returns the MLIR type of a tensor."""
    return "tensor<" + "".join(f"{size}x" for size in tensor.shape) + NAMES[tensor.dtype] + ">"


def make_function(op: str, inputs: Sequence[torch.Tensor], results: Sequence[str]) -> str:
    """Returns a function @main of one op on the arguments %a, %b, ..."""
    args = ", ".join(f"%{name}: {get_type(tensor)}" for name, tensor in zip("abcdefgh", inputs, strict=False))
    values = ", ".join("%r" if len(results) == 1 else f"%r#{i}" for i in range(len(results)))
    count = "" if len(results) == 1 else f":{len(results)}"
    types = ", ".join(results)
    return f"func.func @main({args}) -> ({types}) {{\n  %r{count} = {op}\n  return {values} : {types}\n}}"


def run_op(op: str, inputs: Sequence[torch.Tensor], results: Sequence[str] | None = None) -> list[torch.Tensor]:
    """Runs an op on the arguments %a, %b, ...; its result has the last type in its text unless `results` says."""
    results = results or [re.findall(r"tensor<[^>]*>", op)[-1]]
    module = dialects.parse(make_function(op, inputs, results), CONTEXT)
    return [reference.to_torch(each) for each in reference.run(module, *map(reference.from_torch, inputs))]


def check_equal(actual: torch.Tensor, expected: torch.Tensor, exact: bool = True) -> None:
    """Asserts equal types, shapes and elements: bit for bit but for NaN's payload, or to the type's tolerance."""
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if not expected.dtype.is_floating_point or expected.numel() == 0:
        assert torch.equal(actual, expected), f"{actual} != {expected}"
        return
    tolerance = 0.0 if exact else TOLERANCES[NAMES[expected.dtype]]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    if exact:
        numbers = ~expected.isnan()
        assert torch.equal(actual[numbers].signbit(), expected[numbers].signbit()), "signs of zero differ"


def check_op(
    op: str,
    function: Callable[..., torch.Tensor | Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    exact: bool = True,
    results: Sequence[str] | None = None,
) -> None:
    """Asserts that an op and a PyTorch function agree on the inputs."""
    expected = function(*inputs)
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    for actual, wanted in zip(run_op(op, inputs, results), expected, strict=True):
        check_equal(actual, wanted, exact)


def make_data(dtype: str, *shape: int, seed: int = 0) -> torch.Tensor:
    """Returns arbitrary elements: normal floats, small integers, bools."""
    generator = torch.Generator().manual_seed(seed)
    if dtype in FLOATS:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(DTYPES[dtype])
    low, high = {"i1": (0, 2), "ui8": (0, 20)}.get(dtype, (-10, 10))
    return torch.randint(low, high, shape, generator=generator).to(DTYPES[dtype])
