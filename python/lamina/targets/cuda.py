"""The CUDA target: kernels as Triton IR, compiled for a named chip on a machine that need not have a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lamina.compiler import copy_module
from lamina.errors import CompileError
from lamina.targets.phases import PhasedTarget, fused_passes
from lamina.targets.triton import CompiledKernel, compile_ttir, verify_ttir

if TYPE_CHECKING:
    import torch

    from lamina.frontend.program import Program

__all__ = ["CUDADescription", "CUDATarget", "CompiledKernel", "InterpretedExecutable", "compile_ttir", "verify_ttir"]


@dataclass(frozen=True)
class CUDADescription:
    """What the compiler knows of a chip.

    Attributes:
        sm: its compute capability, 90 for sm_90.
        shared_memory: bytes of it that one program may have.
        multiprocessors: of the largest product with this chip.
        max_warps: that one program may have.
        size_hint: the size assumed for a dimension of which nothing is known.
    """

    sm: int
    shared_memory: int
    multiprocessors: int
    max_warps: int = 32
    size_hint: int = 128

    @staticmethod
    def of(name: str) -> CUDADescription:
        """The chip of a name such as ``sm_90``.

        Raises:
            ValueError: it is not known.
        """
        if name not in CHIPS:
            raise ValueError(f"the chips are {', '.join(CHIPS)}")
        return CHIPS[name]


CHIPS = {
    "sm_80": CUDADescription(80, 163 << 10, 108),
    "sm_86": CUDADescription(86, 99 << 10, 84),
    "sm_89": CUDADescription(89, 99 << 10, 142),
    "sm_90": CUDADescription(90, 227 << 10, 132),
    "sm_100": CUDADescription(100, 227 << 10, 148),
    "sm_120": CUDADescription(120, 99 << 10, 188),
}


class CUDATarget(PhasedTarget):
    """The target named ``cuda``.

    Args:
        chip: its name, such as ``sm_90``.
    """

    name = "cuda"
    emits = ("ttir", "ttgir", "ptx", "cubin")

    def __init__(self, chip: str = "sm_90"):
        self.description = CUDADescription.of(chip)

    def phases(self) -> list[tuple[str, str]]:
        """Names of the phases from `prim` on, and the passes that make each from the one before."""
        clean = "canonicalize,cse"
        return [
            # Fewer programs than this leave multiprocessors without one.
            ("fused", fused_passes(2 * self.description.multiprocessors, self.description.size_hint)),
            ("planned", "lamina-plan-memory"),
            ("linalg", f"kernel.func(lamina-convert-prim-to-linalg,{clean})"),
            (
                "tiled",
                "kernel.func(lamina-tile-kernels{block-tiles=true pointwise-elements=1024 reduce-elements=1024 "
                f"vector-lanes=16}},{clean})",
            ),
            ("ttir", f"lamina-convert-tiled-to-triton,tt.func({clean},loop-invariant-code-motion)"),
        ]

    def emit_ttir(self, module: Any, after: str = "prim") -> dict[str, str]:
        """Kernels of a module, which is changed, by their names: each a module in generic form, which Triton reads.

        Raises:
            CompileError: a pass failed.
        """
        for _ in self.lower(module, after):
            pass
        return {name: _to_text(function) for name, function in _kernels(module)}

    def emit(self, module: Any, kind: str) -> str | bytes:
        """The kernels of a prim module, which is changed: in order, as text of a stage; one kernel alone as a cubin.

        Raises:
            CompileError: a pass or Triton failed; or there is not one kernel for a cubin.
        """
        for _ in self.lower(module):
            pass
        if kind == "ttir":
            return "\n".join(_to_text(function) for _, function in _kernels(module))
        kernels = self.compile_kernels(module, after="ttir")
        if kind != "cubin":
            return "\n".join(kernel.asm[kind] for kernel in kernels.values())
        if len(kernels) != 1:
            raise CompileError(f"the program has {len(kernels)} kernels; one cubin has one")
        return next(iter(kernels.values())).cubin

    def compile_kernels(self, module: Any, after: str = "prim") -> dict[str, CompiledKernel]:
        """Machine code of all kernels of a module, which is changed.

        Raises:
            CompileError: a pass or Triton failed, or a kernel needs more shared memory than the chip has.
        """
        for _ in self.lower(module, after):
            pass
        result = {}
        for name, function in _kernels(module):
            kernel = compile_ttir(_to_text(function), self.description.sm, self.choose_warps(function))
            if kernel.shared > self.description.shared_memory:
                raise CompileError(
                    f"the kernel {name} needs {kernel.shared} bytes of shared memory, too many for sm_{kernel.sm}"
                )
            result[name] = kernel
        return result

    def choose_warps(self, function: Any) -> int:
        """Warps for a `tt.func`: one for each 512 elements of its largest block, 4 to 16."""
        from mlir import ir

        largest = 1

        def visit(op: Any) -> Any:
            nonlocal largest
            for result in op.results:
                if isinstance(result.type, ir.RankedTensorType):
                    count = 1
                    for size in result.type.shape:
                        count *= size
                    largest = max(largest, count)
            return ir.WalkResult.ADVANCE

        function.walk(visit)
        return min(16, self.description.max_warps, max(4, 1 << max(0, (largest // 512) - 1).bit_length()))

    def compile(self, program: Program) -> Any:
        """Not possible yet: a compiled program has no way to a device.

        Raises:
            CompileError: always.
        """
        raise CompileError(
            "programs for CUDA can be compiled to machine code but not be launched",
            hint="CUDATarget.compile_kernels makes the kernels, CUDATarget.interpret runs them without a GPU.",
        )

    def interpret(self, program: Program) -> InterpretedExecutable:
        """An executable that runs the program's Triton IR in the interpreter; its prim module is left as it is."""
        module = copy_module(program.module)
        for _ in self.lower(module):
            pass
        constants = {
            argument.constant: program.tensors[argument.constant].detach().permute(argument.permutation).contiguous()
            for argument in program.arguments
            if argument.constant is not None
        }
        return InterpretedExecutable(module, constants)


def _kernels(module: Any) -> list[tuple[str, Any]]:
    """Names and ops of a module's kernels."""
    from mlir import ir

    functions = [op.operation for op in module.body.operations if op.operation.name == "tt.func"]
    return [(ir.StringAttr(function.attributes["sym_name"]).value, function) for function in functions]


def _to_text(function: Any) -> str:
    """One kernel as a module in generic form, without the attributes that are for launches."""
    from mlir import ir

    with function.context, ir.Location.unknown():
        module = ir.Module.create()
        copy = function.clone(ir.InsertionPoint(module.body)).operation
        for name in list(copy.attributes):
            key = name if isinstance(name, str) else name.name
            if key.startswith("kernel."):
                del copy.attributes[key]
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=False)


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
