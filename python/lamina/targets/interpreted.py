"""Kernels in Triton IR run by the interpreter, with their host functions: numbers without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class InterpretedExecutable:
    """Runs @main of a module of Triton kernels in the interpreter, which checks every address.

    Args:
        module: in the phase ``ttir``.
        constants: tensors by the keys of the arguments that are constants.
    """

    def __init__(self, module: Any, constants: dict[str, torch.Tensor]):
        from lamina.reference.triton import TritonInterpreter
        from lamina.reference.values import from_torch
        from lamina.targets.cpu import _evaluator, _read_entry

        self.module = module
        self._interpreter = TritonInterpreter(module)
        entries = {name: _read_entry(op) for name, op in _functions(module)}
        known = {key: from_torch(tensor) for key, tensor in constants.items()}
        if "init" in entries:
            entry = entries["init"]
            results = _allocate(
                self.module, "init", len(entry.arguments), [_evaluator(size)(()) for size in entry.sizes]
            )
            self._interpreter.call("init", [known[key] for key in entry.arguments if key is not None] + results)
            known.update({f"init.{i}": result for i, result in enumerate(results)})
        self._constants = [None if key is None else known[key] for key in entries["main"].arguments]

    def __call__(self, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], symbols: Sequence[int]) -> None:
        """Runs @main: inputs are the arguments that are no constants, outputs are written."""
        from lamina.reference.values import from_torch, to_torch

        given = iter(inputs)
        arrays = [from_torch(next(given)) if constant is None else constant for constant in self._constants]
        results = [from_torch(output) for output in outputs]
        self._interpreter.call("main", [*arrays, *results])
        for output, result in zip(outputs, results, strict=True):
            output.detach().copy_(to_torch(result).reshape(output.shape))


def _functions(module: Any) -> list[tuple[str, Any]]:
    from mlir import ir

    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    return [(ir.StringAttr(op.attributes["sym_name"]).value, op) for op in functions]


def _allocate(module: Any, function: str, first: int, sizes: Sequence[int]) -> list[Any]:
    """Arrays for the results of a host function, whose arguments they are from `first` on; all sizes are static."""
    import numpy as np

    from lamina.reference.values import get_dtype

    (op,) = [op for name, op in _functions(module) if name == function]
    types = [argument.type for argument in list(op.arguments)[first:]]
    return [np.empty(tuple(type.shape), get_dtype(type)) for type in types[: len(sizes)]]
