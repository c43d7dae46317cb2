"""The reference target: runs a program's prim module with the NumPy interpreter, to check all else against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from lamina.frontend.program import Program


class ReferenceExecutable:
    """Interprets @main of a prim module."""

    def __init__(self, program: Program):
        from lamina.reference import Interpreter, from_torch

        self.program = program
        self.interpreter = Interpreter(program.module)
        self.constants = [
            None
            if a.constant is None
            else from_torch(program.tensors[a.constant].detach().permute(a.permutation).contiguous())
            for a in program.arguments
        ]

    def __call__(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor], symbols: list[int]) -> None:
        from lamina.reference import ProgramError, from_torch, to_torch

        given = iter(inputs)
        arrays = [from_torch(next(given).detach()) if c is None else c for c in self.constants]
        try:
            results = self.interpreter.call("main", arrays, symbols)
        except ProgramError as error:
            raise RuntimeError(str(error)) from error
        for output, result in zip(outputs, results, strict=True):
            output.detach().copy_(to_torch(result).reshape(output.shape))


class ReferenceTarget:
    """The target named ``reference``."""

    name = "reference"

    def compile(self, program: Program) -> ReferenceExecutable:
        return ReferenceExecutable(program)
